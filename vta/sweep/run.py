"""A sweep from its file to a folder of results."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .code_version import versions
from .points import planned_points
from .results import Results, read_results
from .spec import Sweep, load_sweep
from .store import open_store
from .work import Batch, run_batch


def run_sweep(
    spec: str | Path | Mapping[str, Any] | Sweep,
    folder: str | Path,
    *,
    limit: int | None = None,
    restart: bool = False,
) -> Results:
    """Run the points of ``spec`` that ``folder`` does not hold yet; return all results."""
    sweep = spec if isinstance(spec, Sweep) else load_sweep(spec)
    points = planned_points(sweep)
    path = Path(folder)
    with open_store(
        path, sweep, planned=len(points), versions=versions(), restart=restart
    ) as store:
        done = store.finished()
        for point in points[:limit]:
            if point.index in done:
                continue
            batch = Batch(
                sweep.workloads[point.workload].as_json(),
                [(point.index, point.machine, point.compile)],
                tuple(sweep.objectives),
            )
            store.add([(point, outcome) for outcome in run_batch(batch)])
    return read_results(path)
