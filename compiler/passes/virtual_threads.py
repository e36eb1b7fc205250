"""Remove loops over virtual threads by interleaving their blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product

from vta_isa import CompileError

from ..ir.build import add, const, mul, seq
from ..ir.nodes import (
    INDEX,
    Alloc,
    Buffer,
    Const,
    Coproc,
    DmaLoad,
    DmaStore,
    Expr,
    For,
    Load,
    LoopKind,
    Program,
    Region,
    Scope,
    Seq,
    Stmt,
    Store,
    Synchronize,
    TensorCall,
    Var,
)
from ..ir.printer import to_text
from ..ir.simplify import simplify_stmt
from ..ir.visit import allocated_buffers, loops, map_children, map_program, rename_loops, substitute
from .accesses import accesses

_Threads = tuple[tuple[Var, int], ...]  # the virtual thread loops around, outermost first


def interleave_virtual_threads(program: Program) -> Program:
    """Run the iterations of virtual thread loops block by block, in turns.

        for t in vthread(2):                    alloc a[2, 8]
          alloc a[8]                            for k in range(4):
            for k in range(4):                    coproc load: a[0] <- A[0, k]
              coproc load: a <- A[t, k]    →      coproc load: a[1] <- A[1, k]
              coproc compute: gemm(a)             coproc compute: gemm(a[0])
                                                  coproc compute: gemm(a[1])

    Buffers allocated inside get a leading axis, one part per thread; buffers from outside may
    only be read. Serial loops and sequences keep their shape; blocks, branches and host
    statements are repeated for each thread, tokens included, in the same order everywhere. So
    the n-th token of a thread meets the n-th pop of the same thread.
    """
    _check_shared(program.body)
    return map_program(program, lambda body: simplify_stmt(_interleave(body, (), {})))


def _check_shared(body: Stmt) -> None:
    """Refuse threads that write what they share."""
    for loop in loops(body):
        if loop.kind is not LoopKind.VTHREAD:
            continue
        own = set(allocated_buffers(loop.body))
        for buffer in accesses(loop.body).writes:
            if buffer.scope is not Scope.GLOBAL and buffer not in own:
                raise CompileError(
                    f"virtual threads: the threads of {loop.var.name} all write {buffer.name}, "
                    f"which is allocated outside; compute it inside of {loop.var.name}, "
                    f"or before; in\n{to_text(loop)}"
                )


def _interleave(stmt: Stmt, threads: _Threads, copies: Mapping[str, _Copies]) -> Stmt:
    match stmt:
        case For(var, extent, body, LoopKind.VTHREAD):
            return _interleave(body, (*threads, (var, extent)), copies)
        case For():
            return replace(stmt, body=_interleave(stmt.body, threads, copies))
        case Seq(stmts):
            return seq(_interleave(s, threads, copies) for s in stmts)
        case Alloc(buffer, body):
            if not threads:
                return Alloc(buffer, _interleave(body, threads, copies))
            own = _Copies(buffer, threads)
            return Alloc(own.buffer, _interleave(body, threads, {**copies, buffer.name: own}))
        case Synchronize():
            return stmt  # one waits for all threads
    if not threads:
        if isinstance(stmt, Coproc):
            return stmt
        return map_children(
            stmt, lambda n: _interleave(n, threads, copies) if isinstance(n, Stmt) else n
        )
    if any(loop.kind is LoopKind.VTHREAD for loop in loops(stmt)):
        raise CompileError(
            "virtual threads: a loop over virtual threads lies in a branch inside another; in\n"
            + to_text(stmt)
        )
    owned = _with_copies(stmt, copies)
    return seq(_instance(owned, threads, numbers) for numbers in _all_numbers(threads))


def _all_numbers(threads: _Threads) -> Iterator[tuple[int, ...]]:
    return product(*(range(extent) for _, extent in threads))


def _instance(stmt: Stmt, threads: _Threads, numbers: tuple[int, ...]) -> Stmt:
    """``stmt`` for one thread; all but the first rename their loops, whose names are unique."""
    values: dict[Var, Expr] = {var: const(n) for (var, _), n in zip(threads, numbers, strict=True)}
    if any(numbers):
        suffix = ".".join(str(n) for n in numbers)
        fresh = {
            loop.var: Var(f"{loop.var.name}.t{suffix}", loop.var.dtype) for loop in loops(stmt)
        }
        stmt = rename_loops(stmt, fresh)
    return substitute(stmt, values)


class _Copies:
    """A buffer of which every thread around its allocation has one."""

    def __init__(self, original: Buffer, threads: _Threads):
        total = 1
        self.index: Expr = Const(0, INDEX)
        for var, extent in threads:
            self.index = add(mul(self.index, const(extent)), var)
            total *= extent
        self.buffer = replace(original, shape=(total, *original.shape))
        self.entries = 1
        for extent in original.shape[:-2]:
            self.entries *= extent


def _with_copies(stmt: Stmt, copies: Mapping[str, _Copies]) -> Stmt:
    """``stmt`` with every access to a copied buffer going to the thread's part of it."""

    def visit(node: Expr | Stmt) -> Expr | Stmt:
        node = map_children(node, visit)
        match node:
            case Load(buffer, indices) if buffer.name in copies:
                own = copies[buffer.name]
                return Load(own.buffer, (own.index, *indices))
            case Store(buffer, indices, value) if buffer.name in copies:
                own = copies[buffer.name]
                return Store(own.buffer, (own.index, *indices), value)
            case TensorCall(_, operands):
                return replace(node, operands=tuple(region(r) for r in operands))
            case DmaLoad() | DmaStore():
                return dma(node)
        return node

    def region(r: Region) -> Region:
        if r.buffer.name not in copies:
            return r
        own = copies[r.buffer.name]
        return Region(own.buffer, (own.index, *r.start), (1, *r.shape))

    def dma(node: DmaLoad | DmaStore) -> Stmt:
        if node.sram.name in copies:
            own = copies[node.sram.name]
            index = add(mul(own.index, const(own.entries)), node.sram_index)
            node = replace(node, sram=own.buffer, sram_index=index)
        if node.dram.name in copies:
            raise CompileError(
                f"virtual threads: {node.dram.name} is allocated inside a virtual thread in DRAM; "
                f"allocate it outside"
            )
        return node

    result = visit(stmt)
    assert isinstance(result, Stmt)
    return result
