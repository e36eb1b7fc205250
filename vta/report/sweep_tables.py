"""Tables of a sweep for a terminal."""

from collections.abc import Iterator, Sequence

from rich import box
from rich.table import Table

from ..sweep.area import held_out
from ..sweep.objectives import AREA, OBJECTIVES
from ..sweep.pareto import front
from ..sweep.results import Point, Results

MOST_ROWS = 25  # of one workload; points.csv has them all


def front_tables(results: Results) -> Iterator[Table]:
    """For each workload the points that no other one beats in every objective."""
    kept = front(results.points, results.objectives)
    for workload in dict.fromkeys(point.workload for point in kept):
        points = [point for point in kept if point.workload == workload]
        of = sum(point.workload == workload for point in results.points)
        yield _table(results, points, f"{workload}: {len(points)} of {of} points on the front")


def area_lines(results: Results) -> Iterator[str]:
    """How far off the area model is, where area is an objective, and what synthesis says."""
    family = results.spec["area"]
    used = [name for name in AREA if name in results.objectives]
    if used:
        found = held_out(family)
        off = ", ".join(f"{name} {found['error'].get(name, 0):.0%}" for name in used)
        yield (
            f"area: a model of {len(found['machines'])} machines synthesised for {family}; median "
            f"error on a machine it has not seen: {off}"
        )
    shown: set[str | None] = set()
    for point in results.points:
        if point.synthesis is not None and point.machine_hash not in shown:
            shown.add(point.machine_hash)
            pairs = (
                f"{name} {point.synthesis[name]:,g} (model {point.area[name]:,g})" for name in AREA
            )
            yield f"synthesis of point {point.index}'s machine: {', '.join(pairs)}"


def failure_lines(results: Results) -> list[str]:
    """How many points failed, and for each reason one that did."""
    failed = [point for point in results.points if not point.ok]
    if not failed:
        return []
    first: dict[str, Point] = {}
    for point in failed:
        first.setdefault((point.error or "").partition(";")[0], point)
    reasons = "one reason" if len(first) == 1 else f"{len(first)} reasons"
    count = f"{len(failed)} of {len(results.points)} points failed, for {reasons}"
    shown = [f"  point {point.index}: {reason}" for reason, point in list(first.items())[:5]]
    return [count, *shown, *(["  ..."] if len(first) > 5 else [])]


def _table(results: Results, points: Sequence[Point], title: str) -> Table:
    more = f", the first {MOST_ROWS} here" if len(points) > MOST_ROWS else ""
    table = Table(title=title + more, box=box.SIMPLE_HEAD)
    table.add_column("point", justify="right")
    axes = list(dict.fromkeys(name for point in points for name in point.axes))
    for name in axes:
        table.add_column(name.replace(".", "\n"), justify="right")
    for name, direction in results.objectives.items():
        unit = OBJECTIVES[name].unit
        table.add_column(f"{name} {'↓' if direction == 'min' else '↑'}\n{unit}", justify="right")
    for point in points[:MOST_ROWS]:
        table.add_row(
            str(point.index),
            *(str(point.axes[name]).lower() for name in axes),
            *(_number(point.objectives[name]) for name in results.objectives),
        )
    return table


def _number(value: float) -> str:
    if isinstance(value, int) or value.is_integer():
        return f"{value:,.0f}"
    return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"
