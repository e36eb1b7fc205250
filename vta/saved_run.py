"""What ``vta run --json`` saved, read back: the figures of a run without the run."""

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from vta_isa.errors import VtaError
from vta_isa.machine import Machine, load_machine

from .figures import Stalls
from .job import RunReport


class RunFileError(VtaError):
    """A file that is no result of ``vta run --json``."""


class _Saved(BaseModel):
    """What later versions add is passed over; what is missing is an error."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


class SavedFigures(_Saved):
    """Those of ``vta.figures.Figures``."""

    macs: int
    instructions: int
    cycles: int
    utilization: float
    bound_cycles: int
    dram_read_bytes: int
    dram_write_bytes: int
    stalls: Stalls
    busy: Stalls

    @property
    def causes(self) -> Stalls:
        """``{stage: {cause: cycles}}``, busy ones first; those of a stage add up to ``cycles``."""
        return {stage: self.busy.get(stage, {}) | self.stalls[stage] for stage in self.stalls}


class SavedLayer(SavedFigures):
    """One layer, run once; the network runs it ``count`` times."""

    name: str
    kind: str
    count: int
    bound_limit: str


class SavedRun(_Saved):
    """One workload on one machine; ``machine`` is the full description and its ``hash``."""

    version: str
    workload: str
    machine: dict[str, Any]
    device: str
    vthreads: bool
    layers: tuple[SavedLayer, ...]
    total: SavedFigures
    without_vthreads: "SavedRun | None" = None  # the other run of a comparison

    @property
    def description(self) -> dict[str, Any]:
        """The machine as ``load_machine`` takes it."""
        return {key: value for key, value in self.machine.items() if key != "hash"}

    def load_machine(self) -> Machine:
        return load_machine(self.description)


def read_run(path: str | Path) -> SavedRun:
    """The run saved in ``path``; of a comparison, the run with virtual threads."""
    try:
        return SavedRun.model_validate_json(Path(path).read_bytes())
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        where = f"{path}: {place}" if place else f"{path}"
        reason = first["msg"][:1].lower() + first["msg"][1:]
        raise RunFileError(
            f"{where}: {reason}; give a file that `vta run --json FILE` wrote"
        ) from None


def read_runs(path: str | Path) -> list[tuple[str, SavedRun]]:
    """The runs saved in ``path`` with what tells them apart: one, or the two of a comparison."""
    run = read_run(path)
    if run.without_vthreads is None:
        return [("", run)]
    return [("without virtual threads", run.without_vthreads), ("with virtual threads", run)]


def saved(report: RunReport) -> SavedRun:
    """The same as ``read_run`` would give, without the file."""
    return SavedRun.model_validate_json(json.dumps(report.as_json()))
