"""What a sweep wrote is read back, in the same words, in the same order."""

from pathlib import Path

import pytest

import vta
from vta.sweep import SweepError, csv_text, front, read_results, run_sweep

SPEC = {
    "name": "small",
    "base": "tiny",
    "axes": {"gemm.block": [4, 256], "memory.read_latency": [8, 40]},
    "workloads": [
        {"name": "one", "layers": [{"name": "a", "kind": "dense", "m": 4, "k": 8, "n": 8}]},
        {
            "name": "two",
            "layers": [
                {"name": "b", "kind": "dense", "m": 4, "k": 8, "n": 8, "count": 3},
                {"name": "c", "kind": "relu", "length": 40},
            ],
        },
    ],
    "objectives": {"cycles": "min", "utilization": "max", "compute_wait_load": "min"},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sweep") / "out"
    run_sweep(SPEC, path)
    return path


def test_points_come_in_the_order_of_the_file_with_workloads_innermost(folder: Path) -> None:
    points = read_results(folder).points
    assert [point.index for point in points] == list(range(8))
    assert [(p.axes["gemm.block"], p.axes["memory.read_latency"], p.workload) for p in points] == [
        (block, latency, workload)
        for block in (4, 256)
        for latency in (8, 40)
        for workload in ("one", "two")
    ]


def test_a_point_has_the_figures_that_vta_run_gives(folder: Path) -> None:
    for point in read_results(folder).points[:4]:
        spec = next(each for each in SPEC["workloads"] if each["name"] == point.workload)
        report = vta.run(spec, point.machine)
        assert point.machine_hash == report.machine.hash
        assert point.cycles == point.objectives["cycles"] == report.total.cycles
        assert point.objectives["utilization"] == report.total.utilization
        for layer, expected in zip(point.layers, report.layers, strict=True):
            figures = expected.figures
            assert (layer.name, layer.count, layer.cycles) == (
                expected.name,
                expected.count,
                figures.cycles,
            )
            assert (layer.bound_cycles, layer.bound_limit) == (figures.bound_cycles, expected.limit)
            assert layer.dram_read_bytes == figures.dram_read_bytes
            assert layer.counters["cycles"] == layer.cycles
            stall = layer.counters["compute_wait_load"]
            assert stall == figures.stalls["compute"]["wait_load"]


def test_a_counter_as_an_objective_counts_each_layer_as_often_as_it_runs(folder: Path) -> None:
    point = read_results(folder).points[1]
    expected = sum(layer.count * layer.counters["compute_wait_load"] for layer in point.layers)
    assert point.objectives["compute_wait_load"] == expected


def test_a_machine_that_cannot_be_is_a_row_with_the_reason(folder: Path) -> None:
    for point in read_results(folder).points[4:]:
        assert (point.status, point.cycles, point.layers) == ("error", None, ())
        assert "gemm.block" in point.error or "entry" in point.error


def test_the_front_has_no_point_of_which_another_one_is_better(folder: Path) -> None:
    results = read_results(folder)
    kept = {point.index for point in front(results.points, results.objectives)}
    finished = [point for point in results.points if point.ok]

    def beats(a, b) -> bool:
        pairs = [
            (a.objectives[name], b.objectives[name], 1 if which == "min" else -1)
            for name, which in results.objectives.items()
        ]
        return all(s * x <= s * y for x, y, s in pairs) and any(x != y for x, y, _ in pairs)

    assert kept == {
        point.index
        for point in finished
        if not any(beats(o, point) for o in finished if o.workload == point.workload)
    }


def test_the_table_has_a_line_per_point_and_no_wall_time(folder: Path) -> None:
    head, *lines = csv_text(read_results(folder)).splitlines()
    assert len(lines) == 8
    assert "wall" not in head
    assert head.startswith("point,workload,status,gemm.block,memory.read_latency,cycles,")


def test_a_folder_without_results_is_named(tmp_path: Path) -> None:
    with pytest.raises(SweepError, match=r"holds no results.sqlite; name a folder that"):
        read_results(tmp_path)
