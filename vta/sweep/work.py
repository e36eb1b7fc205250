"""What a worker does with the points it is given."""

import json
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from vta_isa import Buffer, load_machine
from vta_isa.counters import COUNTERS
from vta_isa.errors import VtaError
from vta_isa.machine import Machine

from ..workloads import Workload, load_workload
from .area import estimate
from .code_version import code_digest
from .errors import SweepError
from .evaluate import Evaluation, evaluate, load_engines
from .outcome import Outcome
from .results import ERROR, OK, TIMEOUT, LayerResult
from .time_limit import OutOfTime, time_limit

Planned = tuple[int, Mapping[str, Any], Mapping[str, Any]]


@dataclass(frozen=True)
class Batch:
    """Points with one workload. ``points``: index, machine and compile options of each.

    ``code`` is the digest of the code that the sweep was started with, ``time_limit`` in seconds
    for each point; ``topic`` of dask events is this run's own. ``area``: the FPGA
    family that area is estimated for.
    """

    workload: Mapping[str, Any]
    points: Sequence[Planned]
    objectives: tuple[str, ...]
    time_limit: float
    code: str
    topic: str
    area: str


_FAREWELL_SECONDS = 0.5  # for an event to leave the process before it ends
# A worker with several threads takes one batch at a time: the work would hold the interpreter's
# lock anyway, and what points share is not made for two threads.
_ONE_AT_A_TIME = threading.Lock()


def run_batch(batch: Batch) -> list[Outcome]:
    """What became of each point; one that fails says why and does not stop the others.

    For a task of a dask worker: its process ends where native code does not within the time
    limit, after an event under ``batch.topic`` with the index of the point.
    """
    if batch.code != code_digest():
        raise SweepError(
            f"worker {socket.gethostname()}: its code ({code_digest()}) is not that of this sweep "
            f"({batch.code}); install the same version of vta on every machine"
        )
    workload = load_workload(batch.workload)
    with _ONE_AT_A_TIME:
        load_engines()
        return [_timed(point, workload, batch) for point in batch.points]


def timed_out(index: int, limit: float, seconds: float) -> Outcome:
    """The row of a point that took longer than it may."""
    text = f"not done after {limit:g} s; a longer time_limit in the sweep file gives it more"
    return Outcome(index, TIMEOUT, error=text, wall_s=seconds)


def _timed(point: Planned, workload: Workload, batch: Batch) -> Outcome:
    from distributed import get_worker

    worker = get_worker()

    def last_words() -> None:
        worker.log_event(batch.topic, point[0])
        time.sleep(_FAREWELL_SECONDS)

    begin = time.perf_counter()
    try:
        with time_limit(batch.time_limit, last_words):
            outcome = _run(*point, workload, batch)
    except OutOfTime:
        return timed_out(point[0], batch.time_limit, time.perf_counter() - begin)
    return replace(outcome, wall_s=time.perf_counter() - begin)


def _run(
    index: int,
    description: Mapping[str, Any],
    options: Mapping[str, Any],
    workload: Workload,
    batch: Batch,
) -> Outcome:
    machine_hash = None
    try:
        machine = load_machine(description)
        machine_hash = machine.hash
        found = evaluate(workload, machine, options)
        area = estimate(machine, batch.area)
    except VtaError as error:
        # On one line, as everywhere a table or a terminal shows it.
        return Outcome(
            index,
            ERROR,
            error="; ".join(line.strip() for line in str(error).splitlines()),
            machine_hash=machine_hash,
        )
    except Exception as error:  # a bug in one point must not cost the others
        return Outcome(
            index,
            ERROR,
            error=f"internal error: {type(error).__name__}: {error}",
            machine_hash=machine_hash,
        )
    values = objective_values(found, machine, area)
    return Outcome(
        index,
        OK,
        machine_hash=machine_hash,
        cycles=found.figures.cycles,
        objectives=json.dumps({name: values[name] for name in batch.objectives}),
        layers=json.dumps([_stored(layer) for layer in found.layers], separators=(",", ":")),
        area=json.dumps(area),
    )


def _stored(layer: LayerResult) -> dict[str, Any]:
    """As ``results`` reads it: the counters' names are known."""
    return {**asdict(layer), "counters": [layer.counters[counter.name] for counter in COUNTERS]}


def objective_values(
    found: Evaluation, machine: Machine, area: Mapping[str, float]
) -> dict[str, float]:
    """Every objective of ``objectives.OBJECTIVES`` by name."""
    figures = found.figures
    seconds = figures.cycles / machine.clock
    counters = {
        counter.name: sum(layer.count * layer.counters[counter.name] for layer in found.layers)
        for counter in COUNTERS
    }
    return {
        **counters,
        "cycles": figures.cycles,
        "time_us": 1e6 * seconds,
        "utilization": figures.utilization,
        "gmacs_per_second": figures.macs / seconds / 1e9 if seconds else 0.0,
        "bound_cycles": figures.bound_cycles,
        "over_bound": figures.distance,
        "dram_bytes": figures.dram_read_bytes + figures.dram_write_bytes,
        "sram_bytes": sram_bytes(machine),
        "macs_per_cycle": machine.macs_per_cycle,
        **area,
    }


def sram_bytes(machine: Machine) -> int:
    """Of all on-chip memories."""
    memories = (Buffer.UOP, Buffer.INP, Buffer.WGT, Buffer.ACC, Buffer.OUT)
    return sum(machine.depth(memory) * machine.entry_bits(memory) // 8 for memory in memories)
