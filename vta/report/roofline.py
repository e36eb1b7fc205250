"""The roofline plot of a run: what each layer reaches of what machine and memory allow.

The picture of the VTA report's Figure 15. Across: operations per byte on the busier of the two DRAM
channels; up: operations per second at the machine's clock. A multiply-accumulate is two operations.
"""

import io
from typing import TYPE_CHECKING

from vta_isa.machine import Machine

from ..job import Comparison, RunReport

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Points = dict[str, tuple[float, float]]  # layer: (operations per byte, GOPS)
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
    axes.plot([left, ridge, right], [left * bandwidth, peak, peak], color="black", linewidth=1.2)
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
    _label(axes, after)
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


# Where a label may stand around its point, in points of print; the first free place is taken.
_PLACES = ((6, -3), (6, -12), (6, 6), (-24, -3), (-24, -12), (-24, 6), (-8, -17), (-8, 9))
_LABEL_WIDTH, _LABEL_HEIGHT = 20.0, 9.0


def _label(axes: "Axes", points: Points) -> None:
    """Layer names beside their points, where they cover neither a point nor each other."""
    scale = 72 / axes.figure.dpi
    taken: list[Box] = []
    centres = {}
    for name, point in points.items():
        x, y = axes.transData.transform(point)
        centres[name] = x * scale, y * scale
        taken.append((x * scale - 3, y * scale - 3, x * scale + 3, y * scale + 3))
    for name, (x, y) in centres.items():
        boxes = {
            (dx, dy): (x + dx, y + dy, x + dx + _LABEL_WIDTH, y + dy + _LABEL_HEIGHT)
            for dx, dy in _PLACES
        }
        free = [place for place, box in boxes.items() if not any(_overlap(box, t) for t in taken)]
        place = free[0] if free else _PLACES[0]
        taken.append(boxes[place])
        axes.annotate(name, points[name], xytext=place, textcoords="offset points", fontsize=8)


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
