"""A sweep from its file to a folder of results."""

import json
import secrets
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from vta_isa.machine import NOT_ARCHITECTURE

from ..files import write_whole
from .cluster import connected
from .code_version import versions
from .errors import SweepError
from .points import PlannedPoint, planned_points
from .results import Results, read_results
from .schedule import run_batches
from .spec import Sweep, load_sweep
from .store import open_store
from .synthesis import synthesise_best
from .table import csv_text
from .work import Batch

TABLE = "points.csv"
MOST_PER_BATCH = 16  # points; what a killed sweep does again, and what dask is bothered with

# Called with the points that are finished, how many there will be, and how many of them failed.
Progress = Callable[[int, int, int], None]


def run_sweep(
    spec: str | Path | Mapping[str, Any] | Sweep,
    folder: str | Path,
    *,
    workers: int | None = None,
    cluster: str | None = None,
    limit: int | None = None,
    restart: bool = False,
    synthesise: int = 0,
    progress: Progress | None = None,
    note: Callable[[str], None] = lambda text: None,
) -> Results:
    """Run the points of ``spec`` that ``folder`` does not hold yet; return all that it holds.

    ``workers`` processes of this machine (default: one per core), or those of ``cluster``: the
    address of a dask scheduler, or a YAML file for dask-jobqueue. ``limit`` runs the first so many
    points only. ``restart`` throws away what the folder holds of another sweep or other code.
    ``synthesise`` has that many of the best machines synthesised afterwards, see
    ``synthesise_best``; ``note`` is told what it does. The table of all finished points is written
    to ``points.csv``.
    """
    sweep = spec if isinstance(spec, Sweep) else load_sweep(spec)
    if workers is not None and cluster is not None:
        raise SweepError("workers are those of the cluster; give either workers or cluster")
    points = planned_points(sweep)
    chosen = points[:limit]
    path = Path(folder)
    code = versions()
    with open_store(path, sweep, planned=len(points), versions=code, restart=restart) as store:
        finished = store.finished()
        missing = [point for point in chosen if point.index not in finished]
        done, failed = len(chosen) - len(missing), store.failed()
        if progress is not None:
            progress(done, len(chosen), failed)
        if missing:
            by_index = {point.index: point for point in missing}
            topic = f"vta-sweep-{secrets.token_hex(8)}"
            work = batches(sweep, missing, code["code"], topic)
            with connected(workers, cluster) as used:
                for outcomes in run_batches(used.client, work, used.refill):
                    store.add([(by_index[outcome.index], outcome) for outcome in outcomes])
                    done += len(outcomes)
                    failed += sum(outcome.error is not None for outcome in outcomes)
                    if progress is not None:
                        progress(done, len(chosen), failed)
        if synthesise:
            synthesise_best(read_results(path), synthesise, store.add_synthesis, note)
        results = read_results(path)
        write_whole(path / TABLE, csv_text(results))
    return results


def batches(sweep: Sweep, points: Iterable[PlannedPoint], code: str, topic: str) -> list[Batch]:
    """Points that share compiled streams together, in the order of their first ones."""
    groups: dict[str, list[PlannedPoint]] = {}
    for point in points:
        groups.setdefault(_shared(point), []).append(point)
    made = []
    for group in groups.values():
        for first in range(0, len(group), MOST_PER_BATCH):
            part = group[first : first + MOST_PER_BATCH]
            made.append(
                Batch(
                    sweep.workloads[part[0].workload].as_json(),
                    [(point.index, point.machine, point.compile) for point in part],
                    tuple(sweep.objectives),
                    sweep.time_limit,
                    code,
                    topic,
                    sweep.area,
                )
            )
    return made


def _shared(point: PlannedPoint) -> str:
    """Equal for points whose streams are equal if their tiles are: see ``evaluate``."""
    architecture = {
        key: value for key, value in point.machine.items() if key not in NOT_ARCHITECTURE
    }
    return json.dumps([point.workload, point.compile, architecture], sort_keys=True)
