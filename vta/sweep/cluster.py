"""Where points run: processes of this machine, a dask scheduler, or jobs of a batch system."""

import contextlib
import importlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from vta_isa.suggest import did_you_mean

from .errors import SweepError
from .located_yaml import line_of, load_located

if TYPE_CHECKING:
    from distributed import Client

CONNECT_SECONDS = 10
_SETTINGS = {
    # A point that ends its worker is told by us whether it is tried again, not by dask.
    "distributed.scheduler.allowed-failures": 0,
    # Tasks wait at the scheduler: those that wait at a worker would be lost with it.
    "distributed.scheduler.worker-saturation": 1.0,
    # Compiling holds the interpreter for seconds; that is no reason to give a worker up.
    "distributed.scheduler.worker-ttl": None,
    "distributed.admin.tick.limit": "1h",
    "distributed.deploy.lost-worker-timeout": "5s",
}
# Batch systems of dask-jobqueue; `local` runs the jobs as processes, to try a file out.
_SYSTEMS = {
    "slurm": "SLURMCluster",
    "pbs": "PBSCluster",
    "sge": "SGECluster",
    "lsf": "LSFCluster",
    "oar": "OARCluster",
    "moab": "MoabCluster",
    "htcondor": "HTCondorCluster",
    "local": "local.LocalCluster",
}


class _JobFile(BaseModel):
    """A file for ``--cluster``: so many jobs of a batch system, each with these options."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    system: str
    jobs: Annotated[int, Field(ge=1)] = 1
    options: dict[str, Any] = Field(default_factory=dict)


@dataclass(frozen=True)
class Connection:
    """A cluster in use. ``refill`` brings back workers that are gone for good: dask replaces one
    that dies, but not one that dies while it is being started."""

    client: "Client"
    refill: Callable[[], None]


@contextlib.contextmanager
def connected(workers: int | None, cluster: str | None) -> Iterator[Connection]:
    """The cluster that ``cluster`` names: a scheduler's address, or a YAML file for dask-jobqueue;
    ``workers`` new processes (default: one per core) where it is None."""
    try:
        import dask
        import distributed
    except ModuleNotFoundError as error:
        raise SweepError(
            f"{error.name} is not installed; it comes with `pip install 'vta-sdk[sweep]'`"
        ) from None
    with contextlib.ExitStack() as stack:
        stack.enter_context(dask.config.set(_SETTINGS))
        refill: Callable[[], None] = _leave_to_others
        if cluster is None:
            count = workers or cores()
            where: Any = stack.enter_context(_local(count))
            refill = partial(where.scale, count)
        elif Path(cluster).suffix in (".yaml", ".yml"):
            jobs, where = _jobs(Path(cluster))
            stack.enter_context(where)
            refill = partial(where.scale, jobs=jobs)
        else:
            where = cluster
        try:
            client = distributed.Client(where, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise SweepError(
                f"--cluster {cluster}: no scheduler answers there: {reason}; give the address that "
                "`dask scheduler` prints, such as tcp://host:8786, or a YAML file of a batch system"
            ) from None
        yield Connection(stack.enter_context(client), refill)


def _leave_to_others() -> None:
    """The workers of a scheduler elsewhere belong to whoever started them."""


def cores() -> int:
    """Those this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _local(workers: int) -> Any:
    import logging

    from distributed import LocalCluster

    return LocalCluster(
        n_workers=workers,
        threads_per_worker=1,  # the work holds the interpreter's lock
        processes=True,
        host="127.0.0.1",
        dashboard_address=None,
        # Any free port: sweeps run side by side, and the one that dask takes belongs to the first.
        scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
        memory_limit=0,  # dask would pause workers by what the whole machine uses
        silence_logs=logging.CRITICAL + 1,
    )


def _jobs(path: Path) -> tuple[int, Any]:
    """How many jobs, and the cluster of them."""
    content, lines = load_located(path)
    try:
        file = _JobFile.model_validate(content)
    except ValidationError as error:
        detail = error.errors()[0]
        key = str(detail["loc"][0]) if detail["loc"] else ""
        line = line_of(lines, detail["loc"])
        place = f"{path}, line {line}" if line is not None else str(path)
        if detail["type"] == "extra_forbidden":
            known = did_you_mean(key, _JobFile.model_fields)
            raise SweepError(f"{place}: unknown key {key!r}{known}") from None
        raise SweepError(f"{place}: {key}: {detail['msg']}") from None
    if file.system not in _SYSTEMS:
        raise SweepError(
            f"{path}: system = {file.system!r} is not known{did_you_mean(file.system, _SYSTEMS)}"
        )
    module, _, name = f"dask_jobqueue.{_SYSTEMS[file.system]}".rpartition(".")
    try:
        make = getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        raise SweepError(
            f"{error.name} is not installed; it comes with `pip install 'vta-sdk[cluster]'`"
        ) from None
    try:
        jobs = make(**file.options)
        jobs.scale(jobs=file.jobs)
    except (TypeError, ValueError) as error:
        raise SweepError(
            f"{path}: options are not those of {name}: {error}; dask-jobqueue's documentation "
            "lists them"
        ) from None
    return file.jobs, jobs
