"""A sweep file says what it means, or is told line by line what is wrong with it."""

from pathlib import Path
from typing import Any

import pytest

from vta.sweep import SweepError, load_sweep
from vta.sweep.points import planned_points
from vta_isa.presets import preset_names

LAYER = {"name": "a", "kind": "dense", "m": 4, "k": 8, "n": 8}
LEAST: dict[str, Any] = {
    "base": "tiny",
    "workloads": [{"name": "one", "layers": [LAYER]}],
    "objectives": ["cycles"],
}


def values(axes: dict[str, Any], key: str) -> list[Any]:
    (axis,) = (a for a in load_sweep(LEAST | {"axes": axes}).axes if a.name == key)
    return axis.as_json()


def test_presets_load_and_have_points() -> None:
    assert preset_names("sweeps") == ["bandwidth", "gemm-shapes", "tiny"]
    for name in preset_names("sweeps"):
        sweep = load_sweep(name)
        assert sweep.name == name
        assert len(planned_points(sweep)) > 50


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([64, 32], [64, 32]),
        ({"from": 32, "to": 128, "times": 2}, [32, 64, 128]),
        ({"from": 32, "to": 127, "times": 2}, [32, 64]),
        ({"from": 32, "to": 32, "times": 2}, [32]),
    ],
)
def test_lists_and_ranges_give_values_in_order(given: object, expected: list[int]) -> None:
    assert values({"axi.data_bits": given}, "axi.data_bits") == expected


def test_a_range_may_be_added_up_and_may_miss_its_end() -> None:
    axes = {"memory.read_latency": {"from": 8, "to": 40, "step": 15}}
    assert values(axes, "memory.read_latency") == [8, 23, 38]


def test_values_have_units_as_in_a_machine_description() -> None:
    axes = {"sram.wgt": {"from": "512 B", "to": "2 KiB", "times": 2}, "clock": ["1.5 MHz"]}
    assert values(axes, "sram.wgt") == [512, 1024, 2048]
    assert values(axes, "clock") == [1_500_000]


def test_tied_keys_change_together() -> None:
    axes = {
        "gemm.block": [4, 8],
        "axi.data_bits, axi.burst_beats": [[32, 8], [64, 4]],
        "sram.inp, sram.acc": ["512 B"],
    }
    points = planned_points(load_sweep(LEAST | {"axes": axes}))
    seen = [
        (
            *(point.machine["gemm"][key] for key in ("block_in", "block_out")),
            *(point.machine["axi"][key] for key in ("data_bits", "burst_beats")),
            *(point.machine["sram"][key] for key in ("inp", "acc")),
        )
        for point in points
    ]
    assert seen == [
        (block, block, *bus, 512, 512) for block in (4, 8) for bus in ((32, 8), (64, 4))
    ]
    assert points[-1].axes == {
        "gemm.block": 8,
        "axi.data_bits": 64,
        "axi.burst_beats": 4,
        "sram.inp": 512,
        "sram.acc": 512,
    }


def test_compile_options_are_axes_too() -> None:
    points = planned_points(load_sweep(LEAST | {"axes": {"compile.vthreads": [False, True]}}))
    assert [point.compile["vthreads"] for point in points] == [False, True]


def test_objectives_without_a_direction_have_their_natural_one() -> None:
    sweep = load_sweep(LEAST | {"objectives": ["cycles", "utilization", "compute_wait_dram"]})
    assert [str(which) for which in sweep.objectives.values()] == ["min", "max", "min"]


def test_the_digest_changes_with_what_matters_only() -> None:
    digest = load_sweep(LEAST).digest
    assert load_sweep(LEAST | {"about": "words"}).digest == digest
    assert load_sweep(LEAST | {"axes": {}}).digest == digest
    changes: list[dict[str, Any]] = [
        {"axes": {"gemm.batch": [1]}},
        {"base": "default"},
        {"objectives": {"cycles": "max"}},
        {"where": ["gemm.batch == 1"]},
        {"compile": {"vthreads": False}},
        {"time_limit": 7},
        {"workloads": [{"name": "one", "layers": [LAYER | {"m": 5}]}]},
    ]
    digests = [load_sweep(LEAST | change).digest for change in changes]
    assert len({digest, *digests}) == len(changes) + 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"axes": {"gem.block": [4]}}, "unknown axis 'gem.block'; did you mean 'gemm.block'?"),
        ({"axes": {"name": ["a"]}}, "unknown axis 'name'"),
        (
            {"axes": {"gemm.batch": []}},
            "axes.gemm.batch: [] gives no value; write a list, or a range",
        ),
        ({"axes": {"gemm.batch": 4}}, "axes.gemm.batch: 4 gives no value"),
        (
            {"axes": {"gemm.batch": [3]}},
            "gemm.batch = 3 is not a power of two; the nearest are 2 and 4",
        ),
        ({"axes": {"gemm.batch": ["x"]}}, "gemm.batch = 'x' is not a whole number"),
        ({"axes": {"gemm.batch": [True]}}, "gemm.batch = True is not a whole number"),
        ({"axes": {"sram.inp": ["4 kB"]}}, "unknown unit 'kB'"),
        ({"axes": {"types.inp": ["int9"]}}, "types.inp = 'int9' is not allowed; did you mean"),
        ({"axes": {"gemm.batch": [1, 1]}}, "axes.gemm.batch: 1 is given twice"),
        ({"axes": {"gemm.block, gemm.block_in": [4]}}, "gemm.block_in is set twice"),
        (
            {"axes": {"gemm.block": [4], "gemm.block_in": [8]}},
            "gemm.block_in is set by gemm.block already",
        ),
        ({"axes": {"gemm.batch, alu.tensor_interval": [[1]]}}, "[1] has 1 values for 2 keys"),
        (
            {"axes": {"gemm.batch": {"from": 1, "too": 4}}},
            "unknown key 'too' of a range; did you mean 'to'?",
        ),
        ({"axes": {"gemm.batch": {"from": 1}}}, "a range without 'to'"),
        (
            {"axes": {"gemm.batch": {"from": 1, "to": 4}}},
            "either step (added) or times (multiplied)",
        ),
        (
            {"axes": {"gemm.batch": {"from": 1, "to": 4, "times": 1}}},
            "times = 1 from 1 never arrives",
        ),
        ({"axes": {"gemm.batch": {"from": 1, "to": 4, "step": 0}}}, "step = 0 never arrives"),
        (
            {"axes": {"gemm.batch": {"from": 4, "to": 1, "step": 1}}},
            "range from 4 to 1 is empty; swap its ends",
        ),
        ({"axes": {"clock": {"from": 1, "to": 10**9, "step": 1}}}, "an axis has at most 10,000"),
        ({"objectives": ["cycels"]}, "unknown objective 'cycels'; did you mean 'cycles'"),
        (
            {"objectives": {"cycles": "low"}},
            "objectives.cycles = 'low' is no direction; use min or max",
        ),
        ({"objectives": []}, "objectives: none is given"),
        ({"objectives": ["cycles", "cycles"]}, "objective 'cycles' is given twice"),
        ({"compile": {"vthread": True}}, "unknown key 'vthread'; did you mean 'vthreads'?"),
        ({"compile": {"tile_candidates": 0}}, "compile.tile_candidates = 0 is not allowed"),
        ({"workloads": []}, "workloads = [] is not allowed"),
        ({"workloads": ["resnet"]}, "did you mean 'resnet18'?"),
        (
            {"workloads": ["matmul/square", "matmul/square"]},
            "a second workload is named 'matmul/square'",
        ),
        ({"base": "tinny"}, "did you mean the preset 'tiny'?"),
        ({"axis": {}}, "unknown key 'axis'; did you mean 'axes'?"),
        ({"sample": "some"}, "sample = 'some' is not allowed: give grid, {random: N, seed: S}"),
        ({"sample": {"random": 0}}, "sample.random = 0 is not allowed"),
        ({"sample": {"random": 3, "latin_hypercube": 3}}, "either random: N or latin_hypercube: N"),
        ({"sample": {"randon": 3}}, "unknown key 'sample.randon'; did you mean 'random'?"),
        ({"time_limit": 0}, "time_limit = 0 is not allowed"),
        ({"area": "virtex"}, "area = 'virtex' is not allowed"),
        ({"where": ["gemm.batch <"]}, "where: 'gemm.batch <' does not parse"),
    ],
)
def test_what_is_wrong_is_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(SweepError) as caught:
        load_sweep(LEAST | change)
    assert message in str(caught.value)


def test_every_problem_is_told_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(
        "base: tiny\n"
        "axes:\n"
        "  gemm.blok: [4]\n"
        "  axi.data_bits: [32, 48]\n"
        "where:\n"
        "  - gemm.batch == 1\n"
        "  - exit()\n"
        "workloads: [matmul/square]\n"
        "objectives: [cycels]\n"
    )
    with pytest.raises(SweepError) as caught:
        load_sweep(path)
    head, *rest = str(caught.value).splitlines()
    assert head == f"{path}: 4 problems"
    assert [line.strip().partition(":")[0] for line in rest] == [
        "line 3",
        "line 4",
        "line 7",
        "line 9",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("base: [", "line 1"),
        ("base: tiny\nbase: tiny\n", "line 2: key 'base' is given twice"),
        ("- 1\n", "holds no mapping of keys; the keys are name, about, base"),
        ("", "holds no mapping of keys"),
    ],
)
def test_what_is_no_sweep_file_is_said_so(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(SweepError) as caught:
        load_sweep(path)
    assert str(caught.value).startswith(str(path))
    assert message in str(caught.value)


def test_a_file_that_is_not_there_is_answered_with_the_presets() -> None:
    with pytest.raises(SweepError, match="did you mean the preset 'bandwidth'"):
        load_sweep("bandwith")


def test_machines_and_workloads_by_path_are_relative_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text("base: tiny\ngemm: {batch: 2}\n")
    (tmp_path / "work.yaml").write_text(
        "layers:\n  - {name: r, kind: relu, length: 8}\n  - {name: s, kind: relu, length: 9}\n"
    )
    path = tmp_path / "mine.yaml"
    path.write_text("base: base.yaml\nworkloads: [work.yaml, work.yaml/s]\nobjectives: [cycles]\n")
    sweep = load_sweep(path)
    assert sweep.base["gemm"]["batch"] == 2
    assert [workload.name for workload in sweep.workloads] == ["work", "work/s"]
    assert sweep.name == "mine"
