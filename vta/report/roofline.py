"""The roofline plot of a run: what each layer reaches of what machine and memory allow.

The picture of the VTA report's Figure 15. Across: operations per byte on the busier of the two DRAM
channels; up: operations per second at the machine's clock. A multiply-accumulate is two operations.
"""

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from vta_isa.machine import Machine

from ..job import Comparison, RunReport

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Point = tuple[float, float]  # operations per byte, GOPS
Points = dict[str, Point]  # by layer
Line = tuple[Point, Point]
Box = tuple[float, float, float, float]  # left, bottom, right, top


def draw(result: RunReport | Comparison) -> bytes:
    """A PNG. Of a comparison, an arrow leads from each layer's point without virtual threads to
    the one with them. Layers without multiplications are left out: they have no place on it.
    """
    compared = isinstance(result, Comparison)
    report = result.threaded if isinstance(result, Comparison) else result
    machine = report.machine
    before = _points(result.without if isinstance(result, Comparison) else report, machine)
    after = _points(report, machine)
    figure, axes, edges = _below_the_roof(
        f"{report.workload.name} on {machine.name}", machine, [*before.values(), *after.values()]
    )
    if compared:
        _scatter(axes, before, vthreads=False)
        for name, end in after.items():
            axes.annotate(
                "", end, before[name], arrowprops={"arrowstyle": "->", "color": "#999999"}
            )
    _scatter(axes, after, vthreads=report.vthreads)
    figure.draw_without_rendering()  # the layout, which labels are placed in, is made by drawing
    _label(axes, after, [*((before[name], after[name]) for name in after), *edges])
    if after:
        axes.legend(loc="lower right", frameon=False)
    return _png(figure)


def draw_places(title: str, machine: Machine, layers: Mapping[str, "Work"]) -> bytes:
    """A PNG of layers by name, whoever measured them."""
    places = {name: place(work, machine) for name, work in layers.items()}
    points = {name: point for name, point in places.items() if point is not None}
    figure, axes, edges = _below_the_roof(title, machine, [*points.values()])
    across, up = [x for x, _ in points.values()], [y for _, y in points.values()]
    axes.scatter(across, up, s=26, color="#1f6f8b", marker="D")
    figure.draw_without_rendering()
    _label(axes, points, edges)
    return _png(figure)


def _below_the_roof(
    title: str, machine: Machine, points: Sequence[Point]
) -> "tuple[Figure, Axes, list[Line]]":
    """Empty axes around ``points``, the roof drawn, and its two lines."""
    # Without pyplot: no global state, no display, and quick to import.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator, NullFormatter

    figure = Figure(figsize=(9, 6), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.set(xscale="log", yscale="log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("operations per byte on the busier DRAM channel")
    axes.set_ylabel(f"GOPS at {machine.clock / 1e6:g} MHz")
    axes.set_title(title, loc="left")
    axes.grid(which="major", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)

    peak, bandwidth = roof(machine)
    ridge = peak / bandwidth
    across = [x for x, _ in points] or [ridge]
    up = [y for _, y in points] or [peak]
    left, right = min(*across, ridge) / 2, max(*across, ridge) * 2
    edges = [(left, left * bandwidth), (ridge, peak), (right, peak)]
    axes.plot([x for x, _ in edges], [y for _, y in edges], color="black", linewidth=1.2)
    axes.set(xlim=(left, right), ylim=(min(*up, left * bandwidth) / 1.5, peak * 1.6))
    axes.annotate(
        f"{peak:.4g} GOPS",
        (right, peak),
        xytext=(-4, 4),
        textcoords="offset points",
        ha="right",
    )
    axes.annotate(
        f"{bandwidth:.4g} GB/s",
        (left, left * bandwidth),
        xytext=(10, 0),
        textcoords="offset points",
        va="center",
    )
    return figure, axes, [(edges[0], edges[1]), (edges[1], edges[2])]


def _png(figure: "Figure") -> bytes:
    png = io.BytesIO()
    figure.savefig(png, format="png")
    return png.getvalue()


class Work(Protocol):
    """What a layer did, as far as its place depends on it."""

    @property
    def macs(self) -> int: ...
    @property
    def cycles(self) -> int: ...
    @property
    def dram_read_bytes(self) -> int: ...
    @property
    def dram_write_bytes(self) -> int: ...


def roof(machine: Machine) -> tuple[float, float]:
    """What the machine can do at most: GOPS, and GB/s in each direction of DRAM."""
    return 2 * machine.macs_per_cycle * machine.clock / 1e9, machine.bus_bytes * machine.clock / 1e9


def place(work: Work, machine: Machine) -> Point | None:
    """Where the work stands below the roof; None where it has no place."""
    operations = 2 * work.macs
    busier = max(work.dram_read_bytes, work.dram_write_bytes)
    if not (operations and busier and work.cycles):
        return None
    return operations / busier, operations / work.cycles * machine.clock / 1e9


def _points(report: RunReport, machine: Machine) -> Points:
    places = {layer.name: place(layer.figures, machine) for layer in report.layers}
    return {name: point for name, point in places.items() if point is not None}


def _scatter(axes: "Axes", points: Points, vthreads: bool) -> None:
    """Told apart by shape as well as colour, for print and for colour-blind readers."""
    across, up = [x for x, _ in points.values()], [y for _, y in points.values()]
    if vthreads:
        axes.scatter(across, up, s=26, color="#1f6f8b", marker="D", label="with virtual threads")
    else:
        axes.scatter(across, up, s=22, color="#b2553c", marker="o", label="without virtual threads")


# Where a label may stand around its point, in points of print; the best first.
_PLACES = ((6, -4), (6, -12), (6, 5), (-26, -4), (-26, -12), (-26, 5), (-9, -15), (-9, 6))
_LABEL_WIDTH, _LABEL_HEIGHT = 20.0, 9.0
_STEPS = 100  # of a line, when asking whether a label covers it


def _label(axes: "Axes", points: Points, lines: Iterable[Line]) -> None:
    """Layer names beside their points, covering no point, no line and not each other."""
    taken = [_around(axes, place) for line in lines for place in _along(*line)]
    taken += [_around(axes, point) for point in points.values()]
    for name, point in points.items():
        left, bottom, right, top = _around(axes, point)
        x, y = (left + right) / 2, (bottom + top) / 2
        boxes = {
            (dx, dy): (x + dx, y + dy, x + dx + _LABEL_WIDTH, y + dy + _LABEL_HEIGHT)
            for dx, dy in _PLACES
        }
        crowd = {
            place: sum(_overlap(box, other) for other in taken) for place, box in boxes.items()
        }
        place = min(crowd, key=crowd.__getitem__)  # the first of the emptiest
        taken.append(boxes[place])
        axes.annotate(name, point, xytext=place, textcoords="offset points", fontsize=8)


def _along(start: Point, end: Point) -> Iterator[Point]:
    """Points of a line that is straight on logarithmic axes."""
    for step in range(_STEPS + 1):
        part = step / _STEPS
        yield (
            start[0] ** (1 - part) * end[0] ** part,
            start[1] ** (1 - part) * end[1] ** part,
        )


def _around(axes: "Axes", point: Point) -> Box:
    """A mark's place on paper, in points of print."""
    scale = 72 / axes.figure.dpi
    x, y = (scale * float(value) for value in axes.transData.transform(point))
    return x - 3, y - 3, x + 3, y + 3


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
