"""What a sweep found: read from its folder, the same whoever wrote it and in whatever order.

results = read_results("out/bandwidth")
for point in results.points:
    print(point.axes, point.status, point.cycles)
"""

import json
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import SweepError
from .schema import DATABASE, open_database, read_meta

OK, ERROR, TIMEOUT, CRASH = "ok", "error", "timeout", "crash"


@dataclass(frozen=True)
class LayerResult:
    """One run of one layer; the network runs it ``count`` times. ``bound_limit`` names the
    resource that sets ``bound_cycles``: compute, read or write. ``counters`` are those of
    ``vta_isa.counters``, of all launches together. ``plan`` says how the layer was tiled."""

    name: str
    kind: str
    count: int
    macs: int
    cycles: int
    bound_cycles: int
    bound_limit: str
    utilization: float
    dram_read_bytes: int
    dram_write_bytes: int
    instructions: int
    counters: dict[str, int]
    plan: str


@dataclass(frozen=True)
class Point:
    """One machine with one workload. What a point that failed does not have is empty or None.

    ``machine`` is the full description as plain data, ``axes`` what the sweep set in it, as
    tables show it. ``area`` holds ``lut``, ``lut_ram``, ``ff``, ``dsp`` and ``block_ram`` by the
    area model, ``synthesis`` the same by synthesis where the sweep had it done. ``wall_s`` is the
    time it took here, in seconds: the one number that differs between equal sweeps.
    """

    index: int
    workload: str
    machine: dict[str, Any]
    machine_hash: str | None
    axes: dict[str, Any]
    compile: dict[str, Any]
    status: str
    error: str | None
    objectives: dict[str, float]
    cycles: int | None
    layers: tuple[LayerResult, ...]
    area: dict[str, float]
    synthesis: dict[str, float] | None
    seed: int
    wall_s: float

    @property
    def ok(self) -> bool:
        """Whether there are figures; else ``error`` says why not."""
        return self.status == OK


@dataclass(frozen=True)
class Results:
    """``spec`` is the sweep with everything resolved (``Sweep.as_json``): among others ``name``,
    ``axes`` (name to values), ``workloads`` and ``objectives`` (name to ``min`` or ``max``).
    ``planned`` points in all; ``points`` are the finished ones, by index. ``versions`` say what
    computed them."""

    folder: Path
    spec: dict[str, Any]
    versions: dict[str, str]
    planned: int
    points: tuple[Point, ...]

    @property
    def objectives(self) -> dict[str, str]:
        """Name → ``min`` or ``max``."""
        return dict(self.spec["objectives"])


def read_results(folder: str | Path) -> Results:
    """The results in ``folder``, also while a sweep is still adding to them."""
    path = Path(folder)
    if not (path / DATABASE).is_file():
        raise SweepError(f"{path}: holds no {DATABASE}; name a folder that `vta sweep -o` made")
    connection = open_database(path / DATABASE, read_only=True)
    try:
        meta = read_meta(connection)
        rows = connection.execute(
            "SELECT points.*, synthesis.area AS synthesised FROM points "
            "LEFT JOIN synthesis USING (machine_hash) ORDER BY point"
        ).fetchall()
    except sqlite3.DatabaseError as error:
        raise SweepError(f"{path / DATABASE}: is no results file: {error}") from None
    finally:
        connection.close()
    names = json.loads(meta["counters"])
    return Results(
        folder=path,
        spec=json.loads(meta["spec"]),
        versions=json.loads(meta["versions"]),
        planned=int(meta["planned"]),
        points=tuple(_point(row, names) for row in rows),
    )


def _point(row: sqlite3.Row, names: list[str]) -> Point:
    return Point(
        index=row["point"],
        workload=row["workload"],
        machine=json.loads(row["machine"]),
        machine_hash=row["machine_hash"],
        axes=json.loads(row["axes"]),
        compile=json.loads(row["compile"]),
        status=row["status"],
        error=row["error"],
        objectives=json.loads(row["objectives"]),
        cycles=row["cycles"],
        layers=tuple(_layer(layer, names) for layer in json.loads(row["layers"])),
        area=json.loads(row["area"]),
        synthesis=json.loads(row["synthesised"]) if row["synthesised"] else None,
        seed=row["seed"],
        wall_s=row["wall_s"],
    )


def _layer(stored: dict[str, Any], names: list[str]) -> LayerResult:
    counters = dict(zip(names, stored["counters"], strict=True))
    return LayerResult(**{**stored, "counters": counters})
