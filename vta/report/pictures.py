"""The pictures of a report as PNG files, for papers and slides."""

import io
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from vta_isa.counters import CAUSES

from .causes import phrase
from .roofline import draw_places
from .study import AXIS, Study, StudyPoint

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STAGE = "compute"  # the one whose cycles are shown
MOST_MACHINES = 60  # rows of a heat map that can be told apart on paper
_FEW = 12  # values of an axis that are spaced evenly, whatever their distance
_BLUE, _GREY, _PINK = "#0b66c3", "#9aa4b2", "#c2338b"
# Causes have the colours of the page: busy ones cool, waits warm, idle grey.
_COLOURS = {
    "busy": ("#0072b2", "#56b4e9", "#009e73", "#8fd3c0"),
    "wait": ("#e69f00", "#d55e00", "#cc79a7", "#f0c987"),
    "idle": ("#b8bec9",),
}


def pictures(study: Study, x: str, y: str, selected: str) -> Iterator[tuple[str, bytes]]:
    """``(file name, PNG)`` of each picture of each workload.

    ``x`` and ``y`` are the columns of the Pareto plot. Roofline and stalls are those of the point
    labelled ``selected``, for other workloads the best by the first objective.
    """
    for workload in study.workloads:
        points = study.of(workload)
        if not points:
            continue
        chosen = next((point for point in points if point.label == selected), best(study, workload))
        suffix = "" if len(study.workloads) == 1 else f"-{_file_name(workload)}"
        if len(points) > 1:
            yield f"pareto{suffix}.png", _pareto(study, workload, points, x, y)
            yield f"parallel{suffix}.png", _parallel(study, workload, points)
        yield f"heatmap{suffix}.png", _heatmap(study, workload, points)
        yield f"roofline{suffix}.png", _roofline(chosen)
        yield f"stalls{suffix}.png", _stalls(chosen)


def best(study: Study, workload: str) -> StudyPoint:
    """The finished point of the workload that is the best by the first objective."""
    objective = next(column for column in study.columns if column.kind != AXIS)
    sign = -1 if objective.better == "max" else 1
    return min(study.of(workload), key=lambda point: sign * number(point, objective.key))


def number(point: StudyPoint, key: str) -> float:
    """A value to be placed on an axis; not a number where the point has none."""
    value = point.values.get(key)
    return float(value) if isinstance(value, int | float) else math.nan


def pareto_front(study: Study, points: list[StudyPoint], x: str, y: str) -> list[StudyPoint]:
    """Those that no other one beats in one column without being beaten in the other, by ``x``."""
    signs = [-1 if study.column(key).better == "max" else 1 for key in (x, y)]
    costs = sorted(
        (signs[0] * number(point, x), signs[1] * number(point, y), i)
        for i, point in enumerate(points)
        if not (math.isnan(number(point, x)) or math.isnan(number(point, y)))
    )
    front: list[tuple[float, float, int]] = []
    for cost in costs:
        if not front or cost[1] < front[-1][1] or cost[:2] == front[-1][:2]:
            front.append(cost)
    return [points[i] for *_, i in front]


def _pareto(study: Study, workload: str, points: list[StudyPoint], x: str, y: str) -> bytes:
    figure, axes = _figure(8, 5.5)
    front = pareto_front(study, points, x, y)
    axes.scatter(
        [number(point, x) for point in points],
        [number(point, y) for point in points],
        s=18,
        color=_GREY,
    )
    across, up = ([number(point, key) for point in front] for key in (x, y))
    axes.plot(across, up, color=_BLUE, marker="o", markersize=5, linewidth=1)
    if len(front) <= 25:
        for point, place_x, place_y in zip(front, across, up, strict=True):
            axes.annotate(
                point.label,
                (place_x, place_y),
                xytext=(5, 5),
                textcoords="offset points",
                fontsize=8,
            )
    axes.set_xlabel(_heading(study, x))
    axes.set_ylabel(_heading(study, y))
    axes.set_title(f"{study.title}: {workload}, Pareto front", loc="left")
    return _png(figure)


def _parallel(study: Study, workload: str, points: list[StudyPoint]) -> bytes:
    from matplotlib import colormaps

    numeric = {column.key for column in study.numeric()}
    figures = [
        column.key
        for column in study.columns
        if column.kind != AXIS
        and column.key in numeric
        and len({point.values.get(column.key) for point in points}) > 1
    ]
    axes_keys = [column.key for column in study.varied()]
    keys = [*axes_keys, *figures[: max(3, 9 - len(axes_keys))]]
    figure, axes = _figure(max(6.0, 1.45 * len(keys)), 5)
    colour = figures[0] if figures else None
    shades = (
        _heights([number(point, colour) for point in points]) if colour else [0.0] * len(points)
    )
    columns = []
    for i, key in enumerate(keys):
        values = [point.values.get(key) for point in points]
        distinct = sorted({value for value in values if value is not None}, key=_order)
        if (key in axes_keys and len(distinct) <= _FEW) or key not in numeric:
            heights = [
                distinct.index(value) / max(len(distinct) - 1, 1) if value is not None else math.nan
                for value in values
            ]
            labels = [(j / max(len(distinct) - 1, 1), value) for j, value in enumerate(distinct)]
        else:
            heights = _heights([number(point, key) for point in points])
            low, high = distinct[0], distinct[-1]
            labels = [(0.0, low), (1.0, high)]
        columns.append(heights)
        axes.axvline(i, color=_GREY, linewidth=0.8, zorder=1)
        for height, value in labels:
            axes.annotate(
                _short(value), (i, height), xytext=(3, 2), textcoords="offset points", fontsize=7
            )
    order = sorted(range(len(points)), key=lambda i: -shades[i])  # small ones on top
    for i in order:
        axes.plot(
            range(len(keys)),
            [column[i] for column in columns],
            color=colormaps["viridis"](shades[i] * 0.9),
            linewidth=0.8,
            alpha=0.6,
            zorder=2,
        )
    axes.set_xticks(
        range(len(keys)), [_heading(study, key) for key in keys], rotation=20, ha="right"
    )
    axes.set_yticks([])
    axes.grid(visible=False)
    axes.set(xlim=(-0.1, len(keys) - 0.4))
    by = f", coloured by {colour}" if colour else ""
    axes.set_title(f"{study.title}: {workload}{by}", loc="left")
    return _png(figure)


def _heatmap(study: Study, workload: str, points: list[StudyPoint]) -> bytes:
    names = list(dict.fromkeys(layer.name for point in points for layer in point.layers))
    objective = next(column for column in study.columns if column.kind != AXIS)
    sign = -1 if objective.better == "max" else 1
    ranked = sorted(points, key=lambda point: sign * number(point, objective.key))[:MOST_MACHINES]
    use = []
    for point in ranked:
        by_name = {layer.name: layer.utilization for layer in point.layers if layer.macs}
        use.append([by_name.get(name, math.nan) for name in names])
    figure, axes = _figure(max(5.0, 1.8 + 0.6 * len(names)), 1.4 + 0.2 * len(ranked))
    image = axes.imshow(use, aspect="auto", vmin=0, vmax=1, cmap="viridis", interpolation="nearest")
    axes.set_xticks(range(len(names)), names, rotation=45 if len(names) > 8 else 0)
    axes.set_yticks(range(len(ranked)), [point.label for point in ranked], fontsize=7)
    axes.grid(visible=False)
    figure.colorbar(image, format=lambda value, _: f"{value:.0%}")
    few = f", best {len(ranked)}" if len(ranked) < len(points) else ""
    axes.set_title(f"{workload}: GEMM use by {objective.key}{few}", loc="left", fontsize=10)
    return _png(figure)


def _roofline(point: StudyPoint) -> bytes:
    return draw_places(
        f"{point.workload} on {point.label}",
        point.load_machine(),
        {layer.name: layer for layer in point.layers},
    )


def _stalls(point: StudyPoint) -> bytes:
    figure, axes = _figure(8, 1.8 + 0.28 * len(point.layers))
    names = [layer.name for layer in point.layers]
    left = [0.0] * len(names)
    used = {"busy": 0, "wait": 0, "idle": 0}
    for cause in CAUSES[STAGE]:
        kind = cause.split("_")[0]
        colour = _COLOURS[kind][used[kind] % len(_COLOURS[kind])]
        used[kind] += 1
        shares = [
            layer.causes[STAGE][cause] / layer.cycles if layer.cycles else 0.0
            for layer in point.layers
        ]
        if any(shares):
            axes.barh(range(len(names)), shares, left=left, color=colour, label=phrase(cause))
            left = [begin + share for begin, share in zip(left, shares, strict=True)]
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.set(xlim=(0, 1))
    axes.set_title(f"{point.workload} on {point.label}: cycles of the {STAGE} stage", loc="left")
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False, fontsize=8)
    return _png(figure)


def _figure(width: float, height: float) -> "tuple[Figure, Axes]":
    # Without pyplot: no global state, no display, and quick to import.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    return figure, axes


def _png(figure: "Figure") -> bytes:
    png = io.BytesIO()
    figure.savefig(png, format="png")
    return png.getvalue()


def _heading(study: Study, key: str) -> str:
    """With the unit, unless the name says it."""
    unit = study.column(key).unit
    said = any(part.startswith(unit) for part in key.replace(".", "_").split("_"))
    return key if unit == "1" or said else f"{key} ({unit})"


def _heights(values: list[float]) -> list[float]:
    """0 to 1, on a logarithmic scale where the values span more than a factor of 20."""
    known = [value for value in values if not math.isnan(value)]
    if not known or min(known) == max(known):
        return [0.5 if not math.isnan(value) else math.nan for value in values]
    low, high = min(known), max(known)
    if low > 0 and high / low > 20:
        return [math.log(value / low) / math.log(high / low) for value in values]
    return [(value - low) / (high - low) for value in values]


def _order(value: Any) -> tuple[int, Any]:
    return (1, value) if isinstance(value, str) else (0, value)


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _file_name(workload: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in workload)
