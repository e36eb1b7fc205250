"""What a worker does with the points it is given."""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from vta_isa import Buffer, load_machine
from vta_isa.counters import COUNTERS
from vta_isa.errors import VtaError
from vta_isa.machine import Machine

from ..workloads import Workload, load_workload
from .evaluate import Evaluation, evaluate
from .outcome import Outcome
from .results import ERROR, OK, LayerResult


@dataclass(frozen=True)
class Batch:
    """Points with one workload. ``points``: index, machine and compile options of each."""

    workload: Mapping[str, Any]
    points: Sequence[tuple[int, Mapping[str, Any], Mapping[str, Any]]]
    objectives: tuple[str, ...]


def run_batch(batch: Batch) -> list[Outcome]:
    """What became of each point; one that fails says why and does not stop the others."""
    workload = load_workload(batch.workload)
    return [
        _run(index, workload, machine, options, batch) for index, machine, options in batch.points
    ]


def _run(
    index: int,
    workload: Workload,
    description: Mapping[str, Any],
    options: Mapping[str, Any],
    batch: Batch,
) -> Outcome:
    begin = time.perf_counter()
    machine_hash = None
    try:
        machine = load_machine(description)
        machine_hash = machine.hash
        found = evaluate(workload, machine, options)
    except VtaError as error:
        # On one line, as everywhere a table or a terminal shows it.
        return Outcome(
            index,
            ERROR,
            error="; ".join(line.strip() for line in str(error).splitlines()),
            machine_hash=machine_hash,
            wall_s=time.perf_counter() - begin,
        )
    except Exception as error:  # a bug in one point must not cost the others
        return Outcome(
            index,
            ERROR,
            error=f"internal error: {type(error).__name__}: {error}",
            machine_hash=machine_hash,
            wall_s=time.perf_counter() - begin,
        )
    values = objective_values(found, machine, {})
    return Outcome(
        index,
        OK,
        machine_hash=machine_hash,
        cycles=found.figures.cycles,
        objectives=json.dumps({name: values[name] for name in batch.objectives}),
        layers=json.dumps([_stored(layer) for layer in found.layers], separators=(",", ":")),
        area="{}",
        wall_s=time.perf_counter() - begin,
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
