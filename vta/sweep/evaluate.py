"""One point, from its description to its figures; what points have in common is done once.

A layer's instruction stream depends on the layer, on the architecture (``Machine.hash``: everything
but clock and memory model) and on how the layer was tiled, and on nothing else. So each process
keeps the streams it compiled, and a machine that differs from an earlier one in its memory's timing
only costs the choice of a tile, which depends on that timing, and the timing simulation, which is
all that can change: a stream whose outputs were compared with NumPy, and which the checker found
free of races and deadlocks, gives the same outputs under every timing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compiler.ops import ElementwiseTile
from simulator.timing import simulate
from simulator.timing.simulation import NO_TOKENS
from vta_isa.counters import COUNTERS
from vta_isa.encoding import decode_stream
from vta_isa.insn import finish, records
from vta_isa.launch import Launch
from vta_isa.machine import Machine
from vta_runtime import Runtime, SimulatorDevice

from ..bounds import bound
from ..checked_device import checked
from ..compile import compile_operator, operator, tiling
from ..figures import Figures, measured, summed
from ..job import check_output
from ..reference_ops import reference
from ..workload_data import make_arrays
from ..workloads import Layer, Workload, about_layer
from .recent import Recent
from .results import LayerResult

MOST_STREAMS = 1024  # kept by a process; one of ResNet-18 takes some 100 KiB


@dataclass(frozen=True)
class Evaluation:
    """Figures of a workload on a machine."""

    figures: Figures
    layers: tuple[LayerResult, ...]


@dataclass(frozen=True)
class _Program:
    """What a layer launches: decoded instructions, and the address fetch finds them at."""

    plan: str
    launches: tuple[tuple[NDArray[np.void], int], ...]


_PROGRAMS: Recent[_Program] = Recent(MOST_STREAMS)


@cache
def load_engines() -> None:
    """Load what every point needs and no point should be charged for: seconds, once a process."""
    import compiler.module
    import compiler.ops  # noqa: F401

    simulate(records([finish()]), Machine())


def forget_programs() -> None:
    """Compile every stream anew from here on, as a fresh process would."""
    _PROGRAMS.clear()


def evaluate(workload: Workload, machine: Machine, options: Mapping[str, Any]) -> Evaluation:
    """Cycles and counters of every layer; outputs of every new stream are compared with NumPy.

    ``options`` are those of ``CompileOptions``.
    """
    layers, parts = [], []
    for layer in workload.layers:
        with about_layer(workload, layer):
            result, figures = _layer(layer, machine, options)
        layers.append(result)
        parts.append((layer.count, figures))
    return Evaluation(summed(parts, machine.macs_per_cycle), tuple(layers))


def _layer(
    layer: Layer, machine: Machine, options: Mapping[str, Any]
) -> tuple[LayerResult, Figures]:
    program = _program(layer, machine, options)
    launches: list[Launch] = []
    tokens = NO_TOKENS
    for table, address in program.launches:
        timing = simulate(table, machine, insn_address=address, tokens=tokens)
        tokens = timing.tokens
        launches.append(timing)
    limits = bound(layer, machine)
    figures = measured(
        launches, macs=layer.macs, bound_cycles=limits.cycles, peak=machine.macs_per_cycle
    )
    counters = {
        counter.name: sum(int(launch.counters[counter.name]) for launch in launches)
        for counter in COUNTERS
    }
    result = LayerResult(
        name=layer.name,
        kind=layer.kind,
        count=layer.count,
        macs=figures.macs,
        cycles=figures.cycles,
        bound_cycles=figures.bound_cycles,
        bound_limit=limits.limit,
        utilization=figures.utilization,
        dram_read_bytes=figures.dram_read_bytes,
        dram_write_bytes=figures.dram_write_bytes,
        instructions=figures.instructions,
        counters=counters,
        plan=program.plan,
    )
    return result, figures


def _program(layer: Layer, machine: Machine, options: Mapping[str, Any]) -> _Program:
    vthreads = options["vthreads"]
    tile = tiling(layer, machine, vthreads, options["tile_candidates"])
    # The cycles that a tile is expected to take depend on the memory, the stream does not.
    cut = repr(tile if isinstance(tile, ElementwiseTile) else replace(tile, cycles=0))
    key = (layer.model_copy(update={"count": 1}), machine.hash, vthreads, cut)

    def compiled() -> _Program:
        mapped = operator(layer, machine, vthreads, tile)
        arrays = make_arrays(layer, machine)
        runtime = Runtime(checked(SimulatorDevice(machine, timing=False)), keep_streams=True)
        output = compile_operator(mapped, machine).run_on(runtime, arrays)
        check_output(output, reference(layer, arrays, machine), "simulator")
        launches = tuple(
            (decode_stream(stream.words, machine), stream.insn_address)
            for stream in runtime.streams
        )
        return _Program(mapped.plan, launches)

    return _PROGRAMS.get(key, compiled)
