"""Results as a table: the same text for every two sweeps that are equal."""

import csv
import io
import json

from .keys import flat
from .results import Point, Results


def csv_text(results: Results) -> str:
    """One line per point, by index: axes, objectives, the whole machine, and what went wrong.

    Nothing in it depends on when, where or in which order points were run.
    """
    axes = list(dict.fromkeys(name for point in results.points for name in point.axes))
    objectives = [name for name in results.objectives if name != "cycles"]
    areas = list(dict.fromkeys(name for point in results.points for name in point.area))
    rows = [
        (point, flat(point.machine) | flat(point.compile, "compile.")) for point in results.points
    ]
    keys = list(dict.fromkeys(key for _, values in rows for key in values))
    keys = [key for key in keys if key not in axes]
    areas = [name for name in areas if name not in objectives]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    head = ["point", "workload", "status", *axes, "cycles", *objectives, *areas]
    writer.writerow([*head, "machine_hash", *keys, "error"])
    for point, values in rows:
        writer.writerow(
            [point.index, point.workload, point.status]
            + [_cell(point.axes.get(name)) for name in axes]
            + [_cell(point.cycles)]
            + [_cell(point.objectives.get(name)) for name in objectives]
            + [_cell(point.area.get(name)) for name in areas]
            + [_cell(point.machine_hash)]
            + [_cell(values.get(key)) for key in keys]
            + [_cell(point.error)]
        )
    return text.getvalue()


def best(results: Results, objective: str) -> list[Point]:
    """Finished points, the best by ``objective`` first; ties in the order of the sweep."""
    sign = 1 if results.objectives[objective] == "min" else -1
    finished = [point for point in results.points if point.ok]
    return sorted(finished, key=lambda point: (sign * point.objectives[objective], point.index))


def _cell(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case float():
            return repr(value)
        case str() | int():
            return str(value)
    return json.dumps(value)
