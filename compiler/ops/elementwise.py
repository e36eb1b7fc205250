"""Element-wise operators on the tensor ALU: add, ReLU, shift, clip and their chains."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vta_isa import AluOp, Buffer, Machine, WorkloadError

from .. import te
from ..intrinsics import alu, requantize, requantized
from ..ir.nodes import Scope
from ..schedule import create_schedule
from .epilogue import Epilogue, EpilogueStage, apply_epilogue, schedule_epilogue
from .operator import Arrays, Operator
from .pipeline_cost import Costs, TileWork, ceil_div


@dataclass(frozen=True)
class Elementwise:
    """``length`` values ``a`` (plus ``b`` where ``add``), then shift and clip.

    ``epilogue.bias`` has no meaning here and must be False.
    """

    length: int
    add: bool = False
    epilogue: Epilogue = field(default_factory=Epilogue)


class ElementwiseTile(NamedTuple):
    """``entries`` of one tile, tiles per thread and threads."""

    entries: int
    rounds: int
    threads: int


def elementwise(
    layer: Elementwise,
    machine: Machine,
    *,
    vthreads: bool = True,
    tile: ElementwiseTile | None = None,
) -> Operator:
    """The operator for ``layer``; arguments ``a`` and, for an addition, ``b``, (length,) of the
    acc type; the result is (length,) of the out type. ``tile`` is that of ``tile_elementwise``
    unless given.

    Raises ``WorkloadError`` where the accumulator memory cannot hold one entry of each operand.
    """
    if layer.epilogue.bias:
        raise WorkloadError("elementwise: a bias needs channels; add a second operand instead")
    operands = ("a", "b") if layer.add else ("a",)
    per_entry = machine.gemm.batch * machine.gemm.block_out
    if tile is None:
        tile = tile_elementwise(layer, machine, vthreads=vthreads)
    size, rounds, threads = tile
    count = rounds * threads

    acc, out_type = machine.dtype(Buffer.ACC).name, machine.dtype(Buffer.OUT).name
    shape = (count * size, machine.gemm.batch, machine.gemm.block_out)
    axes = ("e", "b", "o")
    a, *rest = (te.placeholder(shape, acc, name) for name in operands)
    last, stages = a, list[EpilogueStage]()
    how = layer.epilogue.fused(machine, added=True) if rest else None
    if how is not None:  # the second operand is the bias
        b, name = rest.pop(), "requantized"
        stages.append(EpilogueStage(name, requantize(machine, how, biased=True)))
        last = te.compute(shape, lambda *i: requantized(a[i] + b[i], how), name=name, axes=axes)
    else:
        if rest:
            b = rest[0]
            last = te.compute(shape, lambda *i: a[i] + b[i], name="sum", axes=axes)
        last, stages = apply_epilogue(last, None, layer.epilogue, axes, machine)
    out = te.compute(shape, lambda *i: last[i].astype(out_type), name="out", axes=axes)

    s = create_schedule(out)
    reader = "sum" if rest else stages[0].name if stages else "out"
    cached = [s.cache_read(name, Scope.ACC, [reader]) for name in operands]
    at, _ = s.split("out", "e", factor=size)
    if threads > 1:
        thread, at = s.split("out", at, nparts=threads)
        s.vthread("out", thread)
    if rest:
        s.set_scope("sum", Scope.ACC)
    schedule_epilogue(s, stages, "out", at)
    if rest:
        s.compute_at("sum", "out", at)
        s.tensorize("sum", "b", alu(machine, AluOp.ADD))
    for name in cached:
        s.compute_at(name, "out", at)

    def pack(arrays: Arrays) -> dict[str, NDArray[np.generic]]:
        missing = count * size * per_entry - layer.length
        return {name: np.pad(arrays[name], (0, missing)).reshape(shape) for name in operands}

    def unpack(packed: NDArray[np.generic]) -> NDArray[np.generic]:
        return packed.reshape(-1)[: layer.length].copy()

    over = f"; {threads} virtual threads over e" if threads > 1 else ""
    return Operator("elementwise", s, out, pack, unpack, shape, out_type, f"e {size}{over}")


def tile_elementwise(
    layer: Elementwise, machine: Machine, *, vthreads: bool = True
) -> ElementwiseTile:
    """The cheapest tile that fits; errors as in ``elementwise``."""
    entries = ceil_div(layer.length, machine.gemm.batch * machine.gemm.block_out)
    operands = 2 if layer.add else 1
    costs = Costs(machine)
    fused = layer.epilogue.fused(machine, added=layer.add) is not None
    room = costs.depth[Buffer.ACC] // operands

    def cycles(tile: int, rounds: int, threads: int) -> int:
        """Loads are the compute stage's too, so they count as its product; nothing else loads."""
        if fused:
            alu = costs.requantize(tile, biases=tile if layer.add else 0)
        else:
            alu = layer.epilogue.immediates * costs.alu(tile, use_imm=True)
            if layer.add:
                alu += costs.alu(tile, use_imm=False)
        return TileWork(
            load=0,
            product=operands * costs.load(Buffer.ACC, tile) + alu,
            reset=0,
            epilogue=0,
            store=costs.store(tile),
            steps=1,
            rounds=rounds,
            threads=threads,
            setup=0,
            kernels=costs.load(Buffer.UOP, 1) if alu else 0,
        ).makespan()

    choices = []
    most_threads = min(2 if vthreads else 1, machine.queues.token)  # as in tiles.py
    for threads in range(1, most_threads + 1):
        least = ceil_div(entries, threads * (room // threads)) if room >= threads else 0
        for rounds in range(least, least + 8) if least else ():
            tile = ceil_div(entries, rounds * threads)
            choices.append((cycles(tile, rounds, threads), threads, rounds, tile))
    if not choices:
        raise WorkloadError(
            f"elementwise: {operands} operands of one entry do not fit ACC memory of "
            f"{machine.depth(Buffer.ACC)} entries; enlarge sram.acc"
        )
    _, threads, rounds, tile = min(choices)
    return ElementwiseTile(tile, rounds, threads)
