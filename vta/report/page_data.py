"""What the page of a report is told, as JSON; ``page/data.js`` is its other side."""

import json
from dataclasses import asdict
from typing import Any

from vta_isa.counters import CAUSES

from .causes import phrase
from .roofline import place, roof
from .study import Study, StudyLayer, StudyPoint

# One run of a layer; ``place`` is where it stands below the roof.
LAYER_FIELDS = (
    *("name", "count", "macs", "cycles", "bound", "limit", "use", "read", "written"),
    *("place", "causes"),
)
_DIGITS = 6  # of places in plots; whole numbers stay exact


def page_data(study: Study, x: str, y: str, selected: str) -> dict[str, Any]:
    """Everything the page shows. ``x`` and ``y`` are the axes it begins with, ``selected`` the
    label of the point.

    To keep pages of thousands of points small, what all machines have in common is there once, and
    rows are arrays: ``values`` in the order of ``columns``, layers in that of ``layer_fields``,
    their causes in that of ``causes``.
    """
    common = _common(study)
    layers = {
        workload: list(
            dict.fromkeys(layer.name for point in study.of(workload) for layer in point.layers)
        )
        for workload in study.workloads
    }
    return {
        "title": study.title,
        "about": study.about,
        "version": study.version,
        "columns": [asdict(column) for column in study.columns],
        "varied": [column.key for column in study.varied()],
        "numeric": [column.key for column in study.numeric()],
        "causes": [
            {"stage": stage, "cause": cause, "words": phrase(cause), "sentence": sentence}
            for stage, causes in CAUSES.items()
            for cause, sentence in causes.items()
        ],
        "workloads": [{"name": name, "layers": layers[name]} for name in study.workloads],
        "layer_fields": list(LAYER_FIELDS),
        "common": common,
        "x": x,
        "y": y,
        "selected": selected,
        "points": [_point(point, study, common) for point in study.points],
    }


def as_script(data: dict[str, Any]) -> str:
    """JSON that may stand in a script element: nothing in it ends the element."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _common(study: Study) -> dict[str, Any]:
    """Keys that every machine has with one value."""
    if not study.points:
        return {}
    first = study.points[0].machine
    return {
        key: value
        for key, value in first.items()
        if all(key in point.machine and point.machine[key] == value for point in study.points)
    }


def _point(point: StudyPoint, study: Study, common: dict[str, Any]) -> dict[str, Any]:
    told: dict[str, Any] = {
        "label": point.label,
        "workload": study.workloads.index(point.workload),
        "status": point.status,
        "values": [point.values.get(column.key) for column in study.columns],
        "machine": {key: value for key, value in point.machine.items() if key not in common},
    }
    if point.error:
        told["error"] = point.error
    if not point.ok:
        return told
    machine = point.load_machine()
    told["roof"] = [_short(value) for value in roof(machine)]
    told["layers"] = [_layer(layer, place(layer, machine)) for layer in point.layers]
    return told


def _layer(layer: StudyLayer, at: tuple[float, float] | None) -> list[Any]:
    """In the order of ``LAYER_FIELDS``."""
    return [
        layer.name,
        layer.count,
        layer.macs,
        layer.cycles,
        layer.bound_cycles,
        layer.bound_limit,
        _short(layer.utilization),
        layer.dram_read_bytes,
        layer.dram_write_bytes,
        at and [_short(value) for value in at],
        [layer.causes[stage][cause] for stage, causes in CAUSES.items() for cause in causes],
    ]


def _short(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")
