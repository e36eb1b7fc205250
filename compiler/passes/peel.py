"""Peel reduction loops so that the compute blocks around them join their first and last step."""

from __future__ import annotations

from dataclasses import replace

from vta_isa.enums import Stage

from ..ir.build import add, const, seq
from ..ir.nodes import Coproc, For, LoopKind, Program, Seq, Stmt, Var
from ..ir.simplify import simplify_stmt
from ..ir.visit import loops, map_children, map_program, rename_loops, substitute
from .accesses import accesses


def peel_reductions(program: Program, *, everywhere: bool = False) -> Program:
    """In virtual threads, or ``everywhere``, give neighbours of loops to their first and last step.

        A                                       L(0)
        for k in range(K):                      A; G(0)
          L(k)                            →     for k in range(K - 2): L(k + 1); G(k + 1)
          G(k)                                  L(K - 1)
        B                                       G(K - 1); B

    A, G and B are blocks of the compute stage (reset, product, epilogue), L of the load stage.
    Virtual threads are interleaved block by block, so without peeling the compute stage meets
    ``A0 A1 G0 ...``: the reset of thread 1 waits until thread 1's previous result is stored, and
    the product of thread 0 waits behind it for no reason. Peeled, it meets ``A0 G0 A1 G1 ...``.

    L moves before A, which is legal where A touches nothing that L writes. A loop of one iteration
    has been dissolved into its blocks; A moves behind L there too.
    """
    return map_program(program, lambda body: _visit(body, threaded=everywhere))


def _visit(stmt: Stmt, threaded: bool) -> Stmt:
    if isinstance(stmt, For):
        inside = threaded or stmt.kind is LoopKind.VTHREAD
        body = _visit(stmt.body, inside)
        new: Stmt = stmt if body is stmt.body else replace(stmt, body=body)
        return new
    if isinstance(stmt, Seq):
        stmts = [_visit(s, threaded) for s in stmt.stmts]
        return seq(_peel_all(stmts) if threaded else stmts)
    if isinstance(stmt, Coproc):
        return stmt
    return map_children(stmt, lambda n: _visit(n, threaded) if isinstance(n, Stmt) else n)


def _peel_all(stmts: list[Stmt]) -> list[Stmt]:
    """Peel each loop of a sequence that has a compute block beside it."""
    result: list[Stmt] = []
    rest = list(stmts)
    while rest:
        stmt = rest.pop(0)
        if not _is_pipeline(stmt):
            if _is_load(stmt) and result and rest and _is_compute(result[-1]):
                if _is_compute(rest[0]) and _may_swap(result[-1], stmt):
                    rest[0] = _join(result.pop(), rest[0])
            result.append(stmt)
            continue
        assert isinstance(stmt, For)
        before = result[-1] if result and _is_compute(result[-1]) else None
        after = rest[0] if rest and _is_compute(rest[0]) else None
        if before is not None and not _may_swap(before, _blocks(stmt)[0]):
            before = None
        if before is not None:
            result.pop()
        if after is not None:
            rest.pop(0)
        result.extend(_peel(stmt, before, after))
    return result


def _is_compute(stmt: Stmt) -> bool:
    return isinstance(stmt, Coproc) and stmt.stage is Stage.COMPUTE


def _is_load(stmt: Stmt) -> bool:
    return isinstance(stmt, Coproc) and stmt.stage is Stage.LOAD


def _is_pipeline(stmt: Stmt) -> bool:
    """A loop whose body is a load block, a compute block, ..., a compute block."""
    if not isinstance(stmt, For) or stmt.kind is LoopKind.VTHREAD:
        return False
    body = _blocks(stmt)
    return len(body) >= 2 and _is_load(body[0]) and _is_compute(body[1]) and _is_compute(body[-1])


def _blocks(loop: For) -> list[Stmt]:
    return list(loop.body.stmts) if isinstance(loop.body, Seq) else [loop.body]


def _may_swap(before: Stmt, load: Stmt) -> bool:
    return not accesses(load).writes & accesses(before).touched


def _peel(loop: For, before: Stmt | None, after: Stmt | None) -> list[Stmt]:
    first = 0 if before is None else 1
    last = loop.extent if after is None or (loop.extent == 1 and first) else loop.extent - 1
    stmts: list[Stmt] = []
    if first:
        head = _blocks(_iteration(loop, 0))
        assert before is not None
        head[1] = _join(before, head[1])
        if loop.extent == 1 and after is not None:
            head[-1] = _join(head[-1], after)
        stmts.extend(head)
    if last > first:
        stmts.append(_part(loop, first, last))
    if last < loop.extent:
        tail = _blocks(_iteration(loop, loop.extent - 1))
        assert after is not None
        tail[-1] = _join(tail[-1], after)
        stmts.extend(tail)
    return stmts


def _join(a: Stmt, b: Stmt) -> Stmt:
    assert isinstance(a, Coproc)
    assert isinstance(b, Coproc)
    return Coproc(a.stage, seq([a.body, b.body]))


def _part(loop: For, start: int, stop: int) -> Stmt:
    """Iterations ``start`` to ``stop - 1`` as a loop from 0, a single one without a loop."""
    if stop - start == 1:
        return _iteration(loop, start).body
    if start == 0:
        return replace(loop, extent=stop)
    body = simplify_stmt(substitute(loop.body, {loop.var: add(loop.var, const(start))}))
    return replace(loop, extent=stop - start, body=body)


def _iteration(loop: For, number: int) -> For:
    """Iteration ``number`` as a loop of extent 1, the loops inside renamed to stay unique."""
    body = simplify_stmt(substitute(loop.body, {loop.var: const(number)}))
    fresh = {
        inner.var: Var(f"{inner.var.name}.{loop.var.name}{number}", inner.var.dtype)
        for inner in loops(body)
    }
    return replace(loop, extent=1, body=rename_loops(body, fresh))
