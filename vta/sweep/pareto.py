"""Which points are worth building: those that no other one beats in everything."""

from collections.abc import Mapping, Sequence

from .results import Point


def front(points: Sequence[Point], objectives: Mapping[str, str]) -> list[Point]:
    """The finished points of each workload that no other point of it dominates, by index.

    A point dominates another one if it is at least as good in every objective and better in one;
    equal points are all kept. ``objectives``: name → ``min`` or ``max``.
    """
    groups: dict[str, list[tuple[tuple[float, ...], Point]]] = {}
    for point in points:
        if point.ok:
            costs = tuple(
                point.objectives[name] * (1 if which == "min" else -1)
                for name, which in objectives.items()
            )
            groups.setdefault(point.workload, []).append((costs, point))
    kept: list[Point] = []
    for group in groups.values():
        best: list[tuple[tuple[float, ...], Point]] = []
        # What dominates a point sorts before it, so looking back is enough.
        for costs, point in sorted(group, key=lambda item: (item[0], item[1].index)):
            if not any(_dominates(other, costs) for other, _ in best):
                best.append((costs, point))
        kept += [point for _, point in best]
    return sorted(kept, key=lambda point: point.index)


def _dominates(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    return a != b and all(x <= y for x, y in zip(a, b, strict=True))
