"""Two runs side by side: pairs of layers, sums, and the settings in which they differ."""

import json
from pathlib import Path

import pytest
from fake_compiler import FakeCompiler

from vta import run
from vta.run_diff import NotComparable, RunDiff, diff_runs
from vta.saved_run import RunFileError, SavedRun, read_run, saved
from vta_isa.counters import CAUSES

THREE = {
    "name": "three",
    "layers": [
        {"name": "a", "kind": "dense", "m": 2, "k": 8, "n": 8},
        {"name": "b", "kind": "dense", "m": 4, "k": 8, "n": 8, "count": 3},
        {"name": "c", "kind": "relu", "length": 40},
    ],
}


def ran(layers: str = "abc", machine: object = "tiny", **options: object) -> SavedRun:
    chosen = [each for each in THREE["layers"] if each["name"] in layers]
    workload = {**THREE, "layers": chosen}
    return saved(run(workload, machine, compile_with=FakeCompiler(), **options))


def both() -> tuple[SavedRun, SavedRun, RunDiff]:
    first, second = ran(), ran(machine={"name": "wide", "gemm": {"block_out": 32}}, vthreads=False)
    return first, second, diff_runs(first, second)


def test_layers_are_paired_and_counted() -> None:
    first, second, diff = both()
    assert [layer.name for layer in diff.layers] == ["a", "b", "c"]
    for layer, one, other in zip(diff.layers, first.layers, second.layers, strict=True):
        assert layer.cycles == (one.cycles, other.cycles)
        assert layer.change == other.cycles - one.cycles
        assert layer.causes["load"]["wait_compute"] == (
            one.stalls["load"]["wait_compute"],
            other.stalls["load"]["wait_compute"],
        )


def test_the_total_is_that_of_the_runs() -> None:
    first, second, diff = both()
    assert diff.total.cycles == (first.total.cycles, second.total.cycles)
    assert diff.total.utilization == (first.total.utilization, second.total.utilization)
    assert diff.total.dram_read_bytes == (
        first.total.dram_read_bytes,
        second.total.dram_read_bytes,
    )
    for stage, causes in CAUSES.items():
        for cause in causes:
            assert diff.total.causes[stage][cause] == (
                first.total.causes[stage][cause],
                second.total.causes[stage][cause],
            )


@pytest.mark.parametrize("stage", CAUSES)
def test_the_changes_of_a_stage_add_up_to_the_change_of_cycles(stage: str) -> None:
    saved_runs = [
        saved(run("vector-add/ragged", {"memory": {"read_latency": latency}}))
        for latency in (8, 100)
    ]
    diff = diff_runs(*saved_runs)
    assert diff.total.change > 0
    assert sum(change for _, change in diff.total.changes(stage)) == diff.total.change


def test_largest_changes_come_first() -> None:
    *_, diff = both()
    changes = [abs(change) for _, change in diff.total.changes("compute")]
    assert changes == sorted(changes, reverse=True)
    assert 0 not in changes


def test_settings_are_those_that_differ() -> None:
    *_, diff = both()
    assert diff.settings["gemm.block_out"] == (4, 32)
    assert diff.settings["vthreads"] == (True, False)
    assert "device" not in diff.settings
    assert "workload" not in diff.settings
    assert diff_runs(ran(), ran()).settings == {}


def test_layers_of_one_side_are_listed_and_not_summed() -> None:
    diff = diff_runs(ran("ab"), ran("bc"))
    assert diff.only == (("a",), ("c",))
    assert [layer.name for layer in diff.layers] == ["b"]
    assert diff.total.cycles[0] == 3 * diff.layers[0].cycles[0]


def test_runs_without_a_common_layer_are_refused() -> None:
    with pytest.raises(NotComparable, match=r"one ran three \(a\), two ran three \(b, c\): no lay"):
        diff_runs(ran("a"), ran("bc"), ("one", "two"))


def test_layers_of_one_name_that_compute_something_else_are_refused() -> None:
    other = {**THREE, "layers": [{"name": "b", "kind": "dense", "m": 8, "k": 8, "n": 8}]}
    second = saved(run(other, "tiny", compile_with=FakeCompiler()))
    with pytest.raises(NotComparable, match=r"layer b is 3 x 256 MACs in A and 1 x 512 in B"):
        diff_runs(ran("b"), second)


def test_json_goes_there_and_back() -> None:
    data = both()[2].as_json()
    assert json.loads(json.dumps(data)) == data


def test_a_saved_run_is_the_run(tmp_path: Path) -> None:
    report = run(THREE, "tiny", compile_with=FakeCompiler())
    (tmp_path / "run.json").write_text(json.dumps(report.as_json()))
    read = read_run(tmp_path / "run.json")
    assert read == saved(report)
    assert read.load_machine() == report.machine
    for layer, expected in zip(read.layers, report.layers, strict=True):
        assert (layer.cycles, layer.busy) == (expected.figures.cycles, expected.figures.busy)
        for causes in layer.causes.values():
            assert sum(causes.values()) == layer.cycles


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "run.json: invalid JSON"),
        ("\x00", "run.json: invalid JSON"),
        ("[]", "run.json: input should be an object"),
        ("{}", "run.json: version: field required"),
        ('{"version": 1}', "run.json: version: input should be a valid string"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(RunFileError) as refusal:
        read_run(tmp_path / "run.json")
    assert message in str(refusal.value)
    assert str(refusal.value).endswith("give a file that `vta run --json FILE` wrote")


def test_a_missing_figure_is_named(tmp_path: Path) -> None:
    content = run(THREE, "tiny", compile_with=FakeCompiler()).as_json()
    del content["layers"][1]["busy"]
    (tmp_path / "run.json").write_text(json.dumps(content))
    with pytest.raises(RunFileError, match=r"layers\.1\.busy: field required"):
        read_run(tmp_path / "run.json")
