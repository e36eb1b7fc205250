"""How large a machine is, without synthesising it.

For every group of parts, and every resource, a sum of a few sizes of the machine (``_Sizes``), none
of them counted negatively: least squares over the machines that were synthesised, each weighted by
its own total, so that a small machine's error counts as much as a large one's.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from statistics import median

import numpy as np
from numpy.typing import NDArray

from vta_isa.enums import Buffer
from vta_isa.machine import Machine

from ..errors import SweepError
from .measured import Row, machines, read_rows

RESOURCES = ("lut", "lut_ram", "ff", "dsp", "block_ram")

Sizes = Mapping[str, float]
Weights = dict[tuple[str, str], NDArray[np.float64]]  # (group, resource) → of its sizes

# Group → its parts, and the sizes that their resources grow with. The last one has all other parts.
GROUPS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "gemm": (("compute.gemm",), ("one", "dsp_macs", "lut_macs", "product_bits")),
    "alu": (("compute.alu",), ("one", "lane_bits", "fused_bits")),
    "memory": (
        (
            *("compute.acc_memory", "compute.uop_memory", "compute.read0", "compute.read1"),
            *("inp_memory", "inp_read", "wgt_memory", "wgt_read", "out_memory"),
        ),
        ("one", "acc_bits", "operand_bits", "small_words", "block_rams"),
    ),
    "transfer": (
        ("load", "compute.loader", "store"),
        ("one", "bus", "acc_bits", "operand_bits", "beats"),
    ),
    "queues": (
        ("load_queue", "compute_queue", "store_queue", "numbers"),
        ("queue_words", "queue_blocks"),
    ),
    "rest": ((), ("one", "bus", "index_bits")),
}


def estimate(machine: Machine, family: str) -> dict[str, float]:
    """``RESOURCES`` of the whole machine with its registers, as ``vta synth --top axi`` counts."""
    return _total(_sizes(machine), _weights(family))


@cache
def held_out(family: str) -> dict[str, dict[str, object]]:
    """What a model that has not seen a machine says about it, for every machine.

    ``{"machines": {name: {resource: {"model", "synthesis"}}}, "error": {resource: median of the
    relative errors of the machines that use it}}``.
    """
    rows = read_rows(family)
    found: dict[str, dict[str, dict[str, float]]] = {}
    errors: dict[str, list[float]] = {resource: [] for resource in RESOURCES}
    for name in dict.fromkeys(row.machine for row in rows):
        weights = _fit([row for row in rows if row.machine != name])
        said = _total(_sizes(machines()[name]), weights)
        is_ = _measured([row for row in rows if row.machine == name])
        found[name] = {r: {"model": said[r], "synthesis": is_[r]} for r in RESOURCES}
        for resource in RESOURCES:
            if is_[resource]:
                errors[resource].append(abs(said[resource] / is_[resource] - 1))
    error: dict[str, object] = {resource: median(each) for resource, each in errors.items() if each}
    return {"machines": dict(found), "error": error}


@cache
def _weights(family: str) -> Weights:
    return _fit(read_rows(family))


def _fit(rows: Sequence[Row]) -> Weights:
    from scipy.optimize import nnls

    names = list(dict.fromkeys(row.machine for row in rows))
    if not names:  # which scipy's nnls does not survive
        raise SweepError("no machine has been synthesised; see benchmarks/area_model.py measure")
    sizes = {name: _sizes(machines()[name]) for name in names}
    totals = {name: _measured([row for row in rows if row.machine == name]) for name in names}
    weights: Weights = {}
    for group, (_, features) in GROUPS.items():
        for resource in RESOURCES:
            parts = {name: 0.0 for name in names}
            for row in rows:
                if _group(row.part) == group:
                    parts[row.machine] += getattr(row, resource)
            scale = np.array([1 / max(totals[name][resource], 1) for name in names])
            matrix = np.array([[sizes[name][feature] for feature in features] for name in names])
            values = np.array([parts[name] for name in names])
            weights[group, resource] = nnls(matrix * scale[:, None], values * scale)[0]
    return weights


def _total(sizes: Sizes, weights: Weights) -> dict[str, float]:
    sums = dict.fromkeys(RESOURCES, 0.0)
    for (group, resource), weight in weights.items():
        features = GROUPS[group][1]
        sums[resource] += sum(w * sizes[f] for w, f in zip(weight.tolist(), features, strict=True))
    # Whole numbers, and halves of block RAMs: more digits would only pretend.
    return {
        resource: round(2 * total) / 2 if resource == "block_ram" else round(total)
        for resource, total in sums.items()
    }


def _measured(rows: Iterable[Row]) -> dict[str, float]:
    rows = list(rows)
    return {resource: sum(getattr(row, resource) for row in rows) for resource in RESOURCES}


def _group(part: str) -> str:
    for group, (parts, _) in GROUPS.items():
        if part in parts:
            return group
    return list(GROUPS)[-1]


_SMALL_ROWS = 64  # deepest memory that Yosys makes of LUTs; twice as deep where parts are written

_DSP_BITS = 9  # of the narrowest product that Yosys makes of a multiplier block

_MEMORIES = (Buffer.UOP, Buffer.INP, Buffer.WGT, Buffer.ACC, Buffer.OUT)


def _sizes(machine: Machine) -> dict[str, float]:
    """What area grows with, of one machine."""
    gemm, bits = machine.gemm, machine.bits
    macs = machine.macs_per_cycle
    product = bits(Buffer.INP) + bits(Buffer.WGT)
    lane_bits = gemm.batch * gemm.block_out * bits(Buffer.ACC)
    bus = machine.axi.data_bits
    operands = machine.entry_bits(Buffer.INP) + machine.entry_bits(Buffer.WGT)
    small = blocks = beats = 0.0
    for memory in _MEMORIES:
        width, banks = machine.entry_bits(memory), _banks(machine, memory)
        rows = max(2, machine.depth(memory) // banks)
        beats += max(1, width / bus) + banks
        if rows <= (2 if memory is Buffer.ACC else 1) * _SMALL_ROWS:
            small += banks * width * math.ceil(rows / _SMALL_ROWS)
        elif width <= 36:  # half a block is 512 words of 36 bits
            blocks += banks * math.ceil(rows / 512) / 2
        else:
            blocks += banks * math.ceil(width / 72) * math.ceil(rows / 512)
    queues = machine.queues
    return {
        "one": 1,
        "dsp_macs": macs / gemm.packing if product >= _DSP_BITS else 0,
        "lut_macs": macs * bits(Buffer.INP) * bits(Buffer.WGT) if product < _DSP_BITS else 0,
        "product_bits": macs * product,
        "lane_bits": lane_bits,
        "fused_bits": lane_bits * machine.extensions.alu_requantize,
        "acc_bits": machine.entry_bits(Buffer.ACC) * _banks(machine, Buffer.ACC),
        "operand_bits": operands,
        "small_words": small,
        "block_rams": blocks,
        "bus": bus,
        "beats": beats,
        "index_bits": sum(machine.index_bits(memory) for memory in _MEMORIES),
        "queue_blocks": math.ceil(queues.command / 512) if queues.command > _SMALL_ROWS else 0,
        "queue_words": math.ceil(queues.command / 32) if queues.command <= _SMALL_ROWS else 0,
    }


def _banks(machine: Machine, memory: Buffer) -> int:
    """As ``vta_hw.scratchpad.Geometry``: a beat goes into one cycle, OUT is laid out as ACC."""
    alike = (Buffer.ACC, Buffer.ACC_8BIT, Buffer.OUT)
    buffers = alike if memory in alike else (memory,)
    return max(max(1, machine.bus_bytes // machine.entry_bytes(buffer)) for buffer in buffers)
