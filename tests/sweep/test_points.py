"""Which points a sweep has, and that they are always the same."""

from collections import Counter
from typing import Any

import pytest

from vta.sweep import SweepError, load_sweep
from vta.sweep.points import PlannedPoint, planned_points

LEAST: dict[str, Any] = {
    "base": "tiny",
    "workloads": ["matmul/single", "matmul/vector"],
    "objectives": ["cycles"],
}
AXES = {
    "memory.read_latency": {"from": 1, "to": 20, "step": 1},
    "memory.write_latency": {"from": 1, "to": 30, "step": 1},
}
VAST = {
    f"{key}": {"from": 1, "to": 9000, "step": 1}
    for key in ("memory.read_latency", "memory.write_latency", "memory.jitter", "clock")
}


def cells(points: list[PlannedPoint]) -> list[tuple[Any, ...]]:
    return [tuple(point.axes.values()) for point in points if point.workload == 0]


def plan(**changes: Any) -> list[PlannedPoint]:
    return planned_points(load_sweep(LEAST | changes))


def test_a_grid_has_every_combination_with_the_last_axis_fastest() -> None:
    points = plan(axes=AXES)
    assert cells(points) == [(a, b) for a in range(1, 21) for b in range(1, 31)]
    assert [point.workload for point in points[:4]] == [0, 1, 0, 1]
    assert [point.index for point in points] == list(range(1200))


def test_without_axes_there_is_the_base() -> None:
    (one, two) = plan()
    assert (one.axes, one.workload, two.workload) == ({}, 0, 1)
    assert one.machine == load_sweep(LEAST).base


def test_where_keeps_what_every_condition_holds_for() -> None:
    conditions = ["memory.read_latency < memory.write_latency", "memory.write_latency % 7 == 0"]
    expected = [(a, b) for a in range(1, 21) for b in range(1, 31) if a < b and b % 7 == 0]
    assert cells(plan(axes=AXES, where=conditions)) == expected


def test_where_knows_numbers_that_follow_from_the_description() -> None:
    axes = {"gemm.block": [4, 8], "gemm.batch": [1, 2]}
    (point, _) = plan(
        axes=axes, where=["macs_per_cycle > 64", "sram_bytes == 3072", "bus_bytes == 4"]
    )
    assert point.axes == {"gemm.block": 8, "gemm.batch": 2}


def test_where_knows_keys_that_a_description_leaves_out() -> None:
    axes = {"gemm.packing": [1, 2]}
    assert cells(plan(axes=axes, where=["gemm.packing == 1"])) == [(1,)]
    assert len(cells(plan(axes=axes, where=["not extensions.alu_requantize"]))) == 2


def test_a_random_sample_is_a_part_of_the_grid_and_depends_on_its_seed() -> None:
    sample = {"random": 50, "seed": 3}
    points = plan(axes=AXES, sample=sample)
    assert points == plan(axes=AXES, sample=sample)
    chosen = cells(points)
    assert len(set(chosen)) == len(chosen) == 50
    assert chosen == sorted(chosen)
    assert set(chosen) <= {(a, b) for a in range(1, 21) for b in range(1, 31)}
    assert chosen != cells(plan(axes=AXES, sample=sample | {"seed": 4}))


def test_a_random_sample_has_as_many_as_where_leaves() -> None:
    where = ["memory.read_latency == 5"]
    assert len(cells(plan(axes=AXES, where=where, sample={"random": 20}))) == 20
    assert len(cells(plan(axes=AXES, where=where, sample={"random": 31}))) == 30


def test_spaces_far_too_large_to_list_can_be_sampled() -> None:
    points = plan(axes=VAST, sample={"random": 40, "seed": 1})
    assert len(set(cells(points))) == 40
    assert points == plan(axes=VAST, sample={"random": 40, "seed": 1})
    with pytest.raises(SweepError, match=r"too many points; .* use sample: {random: N}"):
        plan(axes=VAST)


def test_a_latin_hypercube_covers_every_axis_evenly() -> None:
    chosen = cells(plan(axes=AXES, sample={"latin_hypercube": 60, "seed": 9}))
    # 60 strips: 3 on every one of 20 values and 2 on every one of 30, less cells that coincide.
    for axis, (length, times) in enumerate(((20, 3), (30, 2))):
        counts = Counter(cell[axis] for cell in chosen)
        assert set(counts) == set(range(1, length + 1))
        assert max(counts.values()) <= times
    assert chosen == cells(plan(axes=AXES, sample={"latin_hypercube": 60, "seed": 9}))


@pytest.mark.parametrize("sample", ["grid", {"random": 5}, {"latin_hypercube": 5}])
def test_a_sweep_of_no_point_is_refused(sample: object) -> None:
    with pytest.raises(SweepError, match=r"no point is left; where drops all 600 of them"):
        plan(axes=AXES, where=["memory.read_latency > 20"], sample=sample)
