"""Two runs side by side: which layers take other times, and what the cycles went to instead."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from vta_isa.counters import CAUSES
from vta_isa.errors import VtaError

from .saved_run import SavedFigures, SavedLayer, SavedRun
from .sweep.keys import flat

Pair = tuple[int, int]  # of the first run, of the second


class NotComparable(VtaError):
    """Two runs with nothing in common."""


@dataclass(frozen=True)
class FiguresDiff:
    """The same work on both sides. ``causes`` is ``{stage: {cause: pair of cycles}}``; in every
    stage the changes of all causes add up to the change of ``cycles``."""

    name: str
    count: int
    cycles: Pair
    bound_cycles: Pair
    utilization: tuple[float, float]
    dram_read_bytes: Pair
    dram_write_bytes: Pair
    causes: dict[str, dict[str, Pair]]

    @property
    def change(self) -> int:
        """Cycles the second run takes more."""
        return self.cycles[1] - self.cycles[0]

    def changes(self, stage: str) -> list[tuple[str, int]]:
        """Causes whose cycles changed in ``stage``, and by how many, the largest first."""
        moved = [(cause, b - a) for cause, (a, b) in self.causes[stage].items() if a != b]
        return sorted(moved, key=lambda each: -abs(each[1]))

    def as_json(self) -> dict[str, object]:
        return {
            "name": self.name,
            "count": self.count,
            "cycles": list(self.cycles),
            "change": self.change,
            "bound_cycles": list(self.bound_cycles),
            "utilization": list(self.utilization),
            "dram_read_bytes": list(self.dram_read_bytes),
            "dram_write_bytes": list(self.dram_write_bytes),
            "causes": {
                stage: {cause: list(pair) for cause, pair in causes.items()}
                for stage, causes in self.causes.items()
            },
        }


@dataclass(frozen=True)
class RunDiff:
    """``settings`` are the keys in which the runs differ: of the machine (``gemm.block_out``),
    ``workload``, ``device``, ``vthreads``. ``only`` are layers that one of the two does not have;
    ``total`` counts those of both, each as often as the network runs it."""

    names: tuple[str, str]
    settings: dict[str, tuple[Any, Any]]
    layers: tuple[FiguresDiff, ...]
    only: tuple[tuple[str, ...], tuple[str, ...]]
    total: FiguresDiff

    def as_json(self) -> dict[str, object]:
        """Plain data that ``json`` writes and reads back unchanged."""
        return {
            "runs": list(self.names),
            "settings": {key: list(pair) for key, pair in self.settings.items()},
            "layers": [layer.as_json() for layer in self.layers],
            "only": [list(names) for names in self.only],
            "total": self.total.as_json(),
        }


def diff_runs(first: SavedRun, second: SavedRun, names: tuple[str, str] = ("A", "B")) -> RunDiff:
    """What differs between two runs; layers are paired by name.

    ``names`` are what messages and tables call the two. Raises NotComparable where no layer is in
    both, or one of the same name is another computation.
    """
    theirs = {layer.name: layer for layer in second.layers}
    pairs = [(layer, theirs[layer.name]) for layer in first.layers if layer.name in theirs]
    if not pairs:
        raise NotComparable(
            f"{names[0]} ran {first.workload} ({_listed(first)}), {names[1]} ran {second.workload} "
            f"({_listed(second)}): no layer is in both; compare runs of one workload"
        )
    for one, other in pairs:
        if (one.macs, one.count) != (other.macs, other.count):
            raise NotComparable(
                f"layer {one.name} is {one.count} x {one.macs:,} MACs in {names[0]} and "
                f"{other.count} x {other.macs:,} in {names[1]}; compare runs of one workload"
            )
    ours = {layer.name for layer in first.layers}
    return RunDiff(
        names=names,
        settings=dict(_settings(first, second)),
        layers=tuple(_of(one, other, one.name, one.count) for one, other in pairs),
        only=(
            tuple(layer.name for layer in first.layers if layer.name not in theirs),
            tuple(layer.name for layer in second.layers if layer.name not in ours),
        ),
        total=_sum(pairs, first, second),
    )


def _of(one: SavedFigures, other: SavedFigures, name: str, count: int) -> FiguresDiff:
    both = (one.causes, other.causes)
    return FiguresDiff(
        name=name,
        count=count,
        cycles=(one.cycles, other.cycles),
        bound_cycles=(one.bound_cycles, other.bound_cycles),
        utilization=(one.utilization, other.utilization),
        dram_read_bytes=(one.dram_read_bytes, other.dram_read_bytes),
        dram_write_bytes=(one.dram_write_bytes, other.dram_write_bytes),
        causes={
            stage: {cause: (both[0][stage][cause], both[1][stage][cause]) for cause in causes}
            for stage, causes in CAUSES.items()
        },
    )


def _sum(
    pairs: list[tuple[SavedLayer, SavedLayer]], first: SavedRun, second: SavedRun
) -> FiguresDiff:
    parts = [_of(one, other, one.name, one.count) for one, other in pairs]

    def weighted(values: Iterator[tuple[int, Pair]]) -> Pair:
        listed = list(values)
        return (
            sum(count * pair[0] for count, pair in listed),
            sum(count * pair[1] for count, pair in listed),
        )

    cycles = weighted((part.count, part.cycles) for part in parts)
    macs = sum(one.count * one.macs for one, _ in pairs)
    peaks = (first.load_machine().macs_per_cycle, second.load_machine().macs_per_cycle)
    use = tuple(
        macs / (taken * peak) if taken else 0.0 for taken, peak in zip(cycles, peaks, strict=True)
    )
    return FiguresDiff(
        name="total",
        count=1,
        cycles=cycles,
        bound_cycles=weighted((part.count, part.bound_cycles) for part in parts),
        utilization=(use[0], use[1]),
        dram_read_bytes=weighted((part.count, part.dram_read_bytes) for part in parts),
        dram_write_bytes=weighted((part.count, part.dram_write_bytes) for part in parts),
        causes={
            stage: {
                cause: weighted((part.count, part.causes[stage][cause]) for part in parts)
                for cause in causes
            }
            for stage, causes in CAUSES.items()
        },
    )


def _settings(first: SavedRun, second: SavedRun) -> Iterator[tuple[str, tuple[Any, Any]]]:
    sides = [
        {
            "workload": run.workload,
            "device": run.device,
            "vthreads": run.vthreads,
            **flat(run.description),
        }
        for run in (first, second)
    ]
    for key in dict.fromkeys((*sides[0], *sides[1])):
        pair = (sides[0].get(key), sides[1].get(key))
        if pair[0] != pair[1]:
            yield key, pair


def _listed(run: SavedRun) -> str:
    names = [layer.name for layer in run.layers]
    return ", ".join(names[:4]) + (", ..." if len(names) > 4 else "")
