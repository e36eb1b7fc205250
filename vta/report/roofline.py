"""The roofline plot of a run: what each layer reaches of what machine and memory allow.

The picture of the VTA report's Figure 15. Across: operations per byte on the busier of the two DRAM
channels; up: operations per second at the machine's clock. A multiply-accumulate is two operations.
"""

import io
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from vta_isa.machine import Machine

from ..job import Comparison, RunReport

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Point = tuple[float, float]  # operations per byte, GOPS
Points = dict[str, Point]  # by layer
Line = tuple[Point, Point]
Box = tuple[float, float, float, float]  # left, bottom, right, top


def draw(result: RunReport | Comparison) -> bytes:
    """A PNG. Of a comparison, an arrow leads from each layer's point without virtual threads to
    the one with them. Layers without multiplications are left out: they have no place on it.
    """
    # Without pyplot: no global state, no display, and quick to import.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator, NullFormatter

    compared = isinstance(result, Comparison)
    report = result.threaded if isinstance(result, Comparison) else result
    machine = report.machine
    before = _points(result.without if isinstance(result, Comparison) else report, machine)
    after = _points(report, machine)

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
    axes.set_title(f"{report.workload.name} on {machine.name}", loc="left")
    axes.grid(which="major", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)

    peak = 2 * machine.macs_per_cycle * machine.clock / 1e9
    bandwidth = machine.bus_bytes * machine.clock / 1e9  # GB/s, each direction
    ridge = peak / bandwidth
    across = [x for x, _ in (*before.values(), *after.values())] or [ridge]
    up = [y for _, y in (*before.values(), *after.values())] or [peak]
    left, right = min(*across, ridge) / 2, max(*across, ridge) * 2
    roof = [(left, left * bandwidth), (ridge, peak), (right, peak)]
    axes.plot([x for x, _ in roof], [y for _, y in roof], color="black", linewidth=1.2)
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

    if compared:
        _scatter(axes, before, vthreads=False)
        for name, end in after.items():
            axes.annotate(
                "", end, before[name], arrowprops={"arrowstyle": "->", "color": "#999999"}
            )
    _scatter(axes, after, vthreads=report.vthreads)
    figure.draw_without_rendering()  # the layout, which labels are placed in, is made by drawing
    arrows = [(before[name], after[name]) for name in after]
    _label(axes, after, [*arrows, (roof[0], roof[1]), (roof[1], roof[2])])
    if after:
        axes.legend(loc="lower right", frameon=False)

    png = io.BytesIO()
    figure.savefig(png, format="png")
    return png.getvalue()


def _points(report: RunReport, machine: Machine) -> Points:
    points = {}
    for layer in report.layers:
        figures = layer.figures
        operations = 2 * figures.macs
        busier = max(figures.dram_read_bytes, figures.dram_write_bytes)
        if operations and busier and figures.cycles:
            gops = operations / figures.cycles * machine.clock / 1e9
            points[layer.name] = (operations / busier, gops)
    return points


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
