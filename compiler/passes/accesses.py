"""Which buffers a statement reads and writes, by name, whatever kind of statement it is."""

from __future__ import annotations

from dataclasses import dataclass

from vta_isa import Buffer as Memory

from ..ir.nodes import Buffer, DmaLoad, DmaStore, Expr, Load, Scope, Stmt, Store, TensorCall
from ..ir.visit import read_operands, walk

MEMORY_OF = {Scope.INP: Memory.INP, Scope.WGT: Memory.WGT, Scope.ACC: Memory.ACC}
"""The memory behind each scratchpad scope."""


@dataclass(frozen=True)
class Accesses:
    """The buffers something reads and writes."""

    reads: frozenset[Buffer]
    writes: frozenset[Buffer]

    @property
    def touched(self) -> frozenset[Buffer]:
        return self.reads | self.writes


def accesses(node: Stmt | Expr) -> Accesses:
    """Everything below ``node`` reads and writes, in DRAM and in the scratchpads."""
    reads: set[Buffer] = set()
    writes: set[Buffer] = set()
    for n in walk(node):
        match n:
            case Load():
                reads.add(n.buffer)
            case Store():
                writes.add(n.buffer)
            case TensorCall():
                reads.update(region.buffer for region in read_operands(n))
                writes.add(n.operands[0].buffer)
            case DmaLoad():
                reads.add(n.dram)
                writes.add(n.sram)
            case DmaStore():
                reads.add(n.sram)
                writes.add(n.dram)
    return Accesses(frozenset(reads), frozenset(writes))


def names(buffers: frozenset[Buffer], *, scratch: bool) -> frozenset[str]:
    """The names of those in a scratchpad, or of those in DRAM."""
    return frozenset(b.name for b in buffers if (b.scope is not Scope.GLOBAL) == scratch)
