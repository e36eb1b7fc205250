"""Give every scratchpad buffer its entries."""

from __future__ import annotations

from dataclasses import replace

from vta_isa import CompileError, Machine

from ..ir.build import add, block, const, mul
from ..ir.nodes import (
    Alloc,
    Buffer,
    Const,
    DmaLoad,
    DmaStore,
    Expr,
    Program,
    Region,
    Scope,
    Stmt,
    TensorCall,
)
from ..ir.simplify import simplify_stmt
from ..ir.visit import allocated_buffers, map_program, map_stmt
from .accesses import MEMORY_OF


def allocate_scratchpads(program: Program, machine: Machine) -> Program:
    """Replace the buffers of each scratchpad by ranges of one buffer, the scratchpad itself.

        alloc a[2, 8, 1, 16] in inp:            alloc inp.sram[2048, 1, 16] in inp:
          alloc b[4, 1, 16] in inp:               ... inp.sram[t * 8 + i, ...] ...
            ... a[t, i, ...] ...           →      ... inp.sram[16 + j, ...] ...
            ... b[j, ...] ...

    Every index is an absolute entry afterwards. Each buffer has a range of its own: two may
    share one only where tokens order all their users, which nothing asks the tokens to do.
    """
    buffers = [b for b in allocated_buffers(program.body) if b.scope is not Scope.GLOBAL]
    bases: dict[str, int] = {}
    memories: dict[Scope, Buffer] = {}
    for scope, memory in MEMORY_OF.items():
        own = [b for b in buffers if b.scope is scope]
        if not own:
            continue
        depth = machine.depth(memory)
        shape = machine.entry_shape(memory)
        memories[scope] = Buffer(f"{scope.value}.sram", (depth, *shape), own[0].dtype, scope)
        used = 0
        for buffer in own:
            if buffer.shape[-2:] != shape:
                raise CompileError(
                    f"allocate: {buffer.name} {buffer.shape} is in {scope.value} but does not end "
                    f"in its entry {shape}"
                )
            bases[buffer.name] = used
            used += _entries(buffer)
        if used > depth:
            raise CompileError(_overflow(scope, own, depth, machine.entry_bytes(memory)))

    def place(stmt: Stmt) -> Stmt:
        match stmt:
            case Alloc(buffer, body) if buffer.name in bases:
                return body
            case DmaLoad(sram) | DmaStore(sram):
                index = add(const(bases[sram.name]), stmt.sram_index)
                return replace(stmt, sram=memories[sram.scope], sram_index=index)
            case TensorCall(_, operands):
                return replace(stmt, operands=tuple(_placed(r) for r in operands))
        return stmt

    def _placed(region: Region) -> Region:
        index: Expr = Const(0)
        for extent, start in zip(region.buffer.shape[:-2], region.start[:-2], strict=True):
            index = add(mul(index, const(extent)), start)
        memory = memories[region.buffer.scope]
        entry = add(const(bases[region.buffer.name]), index)
        return Region(memory, (entry, const(0), const(0)), (1, *memory.shape[1:]))

    return map_program(
        program,
        lambda body: simplify_stmt(block(list(memories.values()), [map_stmt(body, place)])),
    )


def _entries(buffer: Buffer) -> int:
    total = 1
    for extent in buffer.shape[:-2]:
        total *= extent
    return total


def _overflow(scope: Scope, buffers: list[Buffer], depth: int, entry_bytes: int) -> str:
    need = sum(_entries(b) for b in buffers)
    each = ", ".join(f"{b.name} {_entries(b) * entry_bytes}" for b in buffers)
    return (
        f"allocate: {scope.value} needs {need * entry_bytes} bytes and has {depth * entry_bytes} "
        f"({each}); use smaller tiles or fewer virtual threads"
    )
