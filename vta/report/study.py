"""Points to be looked at together, from the results of a sweep or from saved runs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vta_isa.counters import attribution
from vta_isa.errors import VtaError
from vta_isa.machine import Machine, load_machine
from vta_isa.suggest import did_you_mean
from vta_isa.version import __version__

from ..figures import Stalls
from ..saved_run import SavedLayer, SavedRun, read_runs
from ..sweep import Results, read_results
from ..sweep.keys import COMPILE, flat, nested
from ..sweep.objectives import AREA, OBJECTIVES, derived
from ..sweep.results import OK, LayerResult
from ..sweep.results import Point as SweptPoint

Value = int | float | str | bool | None

AXIS, FIGURE, AREAS = "axis", "figure", "area"  # what a column is
# Of every finished point, whether the sweep asked for them or not.
FIGURES = (
    *("cycles", "time_us", "utilization", "gmacs_per_second", "over_bound", "dram_bytes"),
    *("macs_per_cycle", "sram_bytes"),
)
# What is paid for speed.
COSTS = (*AREA, "sram_bytes", "dram_bytes")
_UNITS = {"clock": "Hz", "axi.burst_beats": "beat", "axi.outstanding_reads": "burst"}
_SYNTHESIS = "synthesis."


class ReportError(VtaError):
    """A report that cannot be made of what was given."""


@dataclass(frozen=True)
class Column:
    """One value of every point. ``better`` is ``min``, ``max``, or empty where neither is."""

    key: str
    kind: str
    unit: str = ""
    better: str = ""
    sentence: str = ""


@dataclass(frozen=True)
class StudyLayer:
    """One run of a layer; ``causes`` is ``{stage: {cause: cycles}}``, adding up to ``cycles``."""

    name: str
    count: int
    macs: int
    cycles: int
    bound_cycles: int
    bound_limit: str
    utilization: float
    dram_read_bytes: int
    dram_write_bytes: int
    causes: Stalls


@dataclass(frozen=True)
class StudyPoint:
    """One machine with one workload. ``values`` by the keys of columns, those it has;
    ``machine`` is the whole description by dotted keys."""

    label: str
    workload: str
    status: str
    error: str
    values: dict[str, Value]
    machine: dict[str, Any]
    layers: tuple[StudyLayer, ...]

    @property
    def ok(self) -> bool:
        return self.status == OK

    def load_machine(self) -> Machine:
        """The machine of a finished point."""
        described = {
            key: value for key, value in self.machine.items() if not key.startswith(f"{COMPILE}.")
        }
        return load_machine(nested(described))


@dataclass(frozen=True)
class Study:
    """``columns`` are those in which at least one point has a value."""

    title: str
    about: str
    columns: tuple[Column, ...]
    points: tuple[StudyPoint, ...]
    version: str = __version__

    @property
    def workloads(self) -> list[str]:
        """In the order of their first points."""
        return list(dict.fromkeys(point.workload for point in self.points))

    def column(self, key: str) -> Column:
        for column in self.columns:
            if column.key == key:
                return column
        keys = [column.key for column in self.columns]
        raise ReportError(f"no point has a value {key!r}{did_you_mean(key, keys)}")

    def numeric(self) -> list[Column]:
        """Columns whose values are numbers."""
        return [
            column
            for column in self.columns
            if all(
                isinstance(point.values[column.key], int | float)
                and not isinstance(point.values[column.key], bool)
                for point in self.points
                if point.values.get(column.key) is not None
            )
        ]

    def pareto_axes(self, x: str | None = None, y: str | None = None) -> tuple[str, str]:
        """The columns of the Pareto plot: those named, else the first objective against a cost."""
        numeric = [column.key for column in self.numeric()]
        for key in (x, y):
            if key is not None and self.column(key).key not in numeric:
                raise ReportError(f"{key} has words for values, and a plot needs numbers")
        figures = [column.key for column in self.columns if column.kind != AXIS]
        varying = [
            key
            for key in figures
            if key in numeric
            and len({point.values.get(key) for point in self.points if point.ok}) > 1
        ]
        costs = [key for key in varying if key in COSTS]
        x = x or next(key for key in (*varying, *figures) if key != y)
        y = y or next(key for key in (*costs, *varying, *figures) if key != x)
        return x, y

    def point(self, label: str) -> StudyPoint:
        """The point with this label; the ``#`` of one of a sweep may be left out."""
        labels = [point.label for point in self.points]
        for point in self.points:
            if point.label in (label, f"#{label}"):
                return point
        raise ReportError(f"there is no point {label!r}{did_you_mean(label, labels)}")

    def of(self, workload: str) -> list[StudyPoint]:
        """The finished points of one workload."""
        return [point for point in self.points if point.workload == workload and point.ok]

    def varied(self) -> list[Column]:
        """Axes with more than one value."""
        return [
            column
            for column in self.columns
            if column.kind == AXIS
            and len({repr(point.values.get(column.key)) for point in self.points}) > 1
        ]


def read_study(paths: Sequence[str | Path]) -> Study:
    """The results in one folder of ``vta sweep``, or any number of files of ``vta run --json``."""
    folders = [path for path in paths if Path(path).is_dir()]
    if folders and len(paths) > 1:
        raise ReportError(
            f"{folders[0]} is the folder of a sweep and stands alone; give one folder, or files of "
            "`vta run --json`"
        )
    if folders:
        return study_of_sweep(read_results(folders[0]))
    runs = [(path, label, run) for path in paths for label, run in read_runs(path)]
    return study_of_runs([(_labelled(path, label), run) for path, label, run in runs])


def study_of_sweep(results: Results) -> Study:
    """Every finished or failed point of a sweep."""
    spec = results.spec
    points = tuple(_swept(point) for point in results.points)
    done = f"{len(results.points):,} of {results.planned:,} points"
    about = f"{spec['about']}; {done}" if spec.get("about") else done
    axes = list(dict.fromkeys(name for point in results.points for name in point.axes))
    better = results.objectives
    return Study(str(spec["name"]), about, tuple(_columns(points, axes, better)), points)


def study_of_runs(runs: Sequence[tuple[str, SavedRun]]) -> Study:
    """Runs by label. Axes are the keys in which their machines differ, and virtual threads."""
    descriptions = [flat(run.description) for _, run in runs]
    differing = [
        key
        for key in dict.fromkeys(key for description in descriptions for key in description)
        if len({repr(description.get(key)) for description in descriptions}) > 1
    ]
    points = tuple(
        StudyPoint(
            label=label,
            workload=run.workload,
            status=OK,
            error="",
            values={key: _plain(description.get(key)) for key in differing}
            | {"compile.vthreads": run.vthreads, "device": run.device}
            | _figures(layers, run.load_machine()),
            machine=description,
            layers=layers,
        )
        for (label, run), description in zip(runs, descriptions, strict=True)
        for layers in [tuple(_study_layer(layer, layer.causes) for layer in run.layers)]
    )
    axes = [*differing, "compile.vthreads", "device"]
    title = ", ".join(dict.fromkeys(run.workload for _, run in runs))
    about = ", ".join(label for label, _ in runs)
    return Study(title, about, tuple(_columns(points, axes, {})), points)


def _labelled(path: str | Path, label: str) -> str:
    return f"{Path(path).stem} {label}".strip()


def _swept(point: SweptPoint) -> StudyPoint:
    layers = tuple(_study_layer(layer, attribution(layer.counters)) for layer in point.layers)
    values: dict[str, Value] = {key: _plain(value) for key, value in point.axes.items()}
    if point.status == OK:
        values |= _figures(layers, load_machine(point.machine)) | point.objectives | point.area
        values |= {f"{_SYNTHESIS}{key}": value for key, value in (point.synthesis or {}).items()}
    machine = flat(point.machine) | flat(point.compile, "compile.")
    return StudyPoint(
        label=f"#{point.index}",
        workload=point.workload,
        status=point.status,
        error=point.error or "",
        values=values,
        machine=machine,
        layers=layers,
    )


def _study_layer(layer: LayerResult | SavedLayer, causes: Stalls) -> StudyLayer:
    return StudyLayer(
        name=layer.name,
        count=layer.count,
        macs=layer.macs,
        cycles=layer.cycles,
        bound_cycles=layer.bound_cycles,
        bound_limit=layer.bound_limit,
        utilization=layer.utilization,
        dram_read_bytes=layer.dram_read_bytes,
        dram_write_bytes=layer.dram_write_bytes,
        causes=causes,
    )


def _figures(layers: Iterable[StudyLayer], machine: Machine) -> dict[str, Value]:
    """``FIGURES`` of a whole workload."""
    listed = list(layers)
    cycles = sum(layer.count * layer.cycles for layer in listed)
    macs = sum(layer.count * layer.macs for layer in listed)
    bound = sum(layer.count * layer.bound_cycles for layer in listed)
    seconds = cycles / machine.clock
    sizes = derived(flat(machine.model_dump(mode="json")))
    return {
        "cycles": cycles,
        "time_us": 1e6 * seconds,
        "utilization": macs / (cycles * machine.macs_per_cycle) if cycles else 0.0,
        "gmacs_per_second": macs / seconds / 1e9 if seconds else 0.0,
        "over_bound": cycles / bound if bound else 0.0,
        "dram_bytes": sum(
            layer.count * (layer.dram_read_bytes + layer.dram_write_bytes) for layer in listed
        ),
        "macs_per_cycle": sizes["macs_per_cycle"],
        "sram_bytes": sizes["sram_bytes"],
    }


def _columns(
    points: Sequence[StudyPoint], axes: Sequence[str], better: Mapping[str, str]
) -> Iterator[Column]:
    """Axes, then objectives as the sweep names them, then what every point has, then areas."""
    present = {key for point in points for key in point.values}
    for key in axes:
        yield Column(key, AXIS, unit=_unit(key))
    for key in dict.fromkeys((*better, *FIGURES)):
        if key in present and key not in axes and key not in AREA:
            yield _figure(key, FIGURE, better)
    for key in AREA:
        if key in present:
            yield _figure(key, AREAS, better)
    for key in sorted(key for key in present if key.startswith(_SYNTHESIS)):
        known = OBJECTIVES.get(key.removeprefix(_SYNTHESIS))
        yield Column(key, AREAS, known.unit if known else "", "min", "by synthesis")


def _figure(key: str, kind: str, better: Mapping[str, str]) -> Column:
    known = OBJECTIVES[key]
    return Column(key, kind, known.unit, better.get(key, known.direction.value), known.sentence)


def _unit(key: str) -> str:
    if key.startswith("sram."):
        return "byte"
    if key.endswith("_bits"):
        return "bit"
    if key.endswith("_latency"):
        return "cycle"
    return _UNITS.get(key, "")


def _plain(value: object) -> Value:
    """A cell: a number or a word."""
    return value if isinstance(value, bool | int | float | str) or value is None else str(value)
