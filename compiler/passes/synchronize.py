"""Run the queue wherever DRAM written on one side is needed on the other."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..ir.build import seq
from ..ir.nodes import Alloc, Coproc, Expr, For, If, Program, Seq, Stmt, Synchronize
from ..ir.visit import map_program, walk
from .accesses import accesses, names


@dataclass(frozen=True)
class _Pending:
    """DRAM buffers that instructions queued so far will read and write."""

    reads: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()

    def __or__(self, other: _Pending) -> _Pending:
        return _Pending(self.reads | other.reads, self.writes | other.writes)

    def __bool__(self) -> bool:
        return bool(self.reads or self.writes)


_NOTHING = _Pending()


def synchronize_dram(program: Program) -> Program:
    """Order accesses to the same DRAM buffer that no token orders.

        coproc store: B <- acc                    coproc store: B <- acc
        coproc load: inp <- B              →      synchronize
        C[0] = B[0]  (on the host)                coproc load: inp <- B
                                                  synchronize
                                                  C[0] = B[0]
                                                  synchronize

    Instructions run when the queue is synchronized, the host runs at once. So a synchronisation
    is needed before the host reads what queued instructions write or writes what they touch, and
    before an instruction loads what another has stored or stores what another loads. The
    function ends with one if anything is still queued.
    """

    def lower(body: Stmt) -> Stmt:
        new, pending = _visit(body, _NOTHING)
        return seq([new, Synchronize()]) if pending else new

    return map_program(program, lower)


def _visit(stmt: Stmt, pending: _Pending) -> tuple[Stmt, _Pending]:
    """``stmt`` with what it needs inserted, and what is queued after it, given what is before."""
    match stmt:
        case Seq(stmts):
            done: list[Stmt] = []
            for child in stmts:
                new, pending = _visit(child, pending)
                done.append(new)
            return seq(done), pending
        case Alloc(buffer, body):
            new, pending = _visit(body, pending)
            return Alloc(buffer, new), pending
        case For(body=body) if _queues(stmt):
            # What an iteration leaves queued meets the next one: repeat until that adds nothing.
            while True:
                new, after = _visit(body, pending)
                if (grown := pending | after) == pending:
                    return replace(stmt, body=new), after
                pending = grown
        case If(cond, then, orelse) if _queues(stmt):
            guard, pending = _before_host(cond, pending)
            new, after = _visit(then, pending)
            if orelse is None:
                return seq([*guard, If(cond, new)]), pending | after
            other, after_other = _visit(orelse, pending)
            return seq([*guard, If(cond, new, other)]), after | after_other
        case Coproc():
            return _visit_block(stmt, pending)
    guard, pending = _before_host(stmt, pending)
    return seq([*guard, stmt]), pending


def _queues(stmt: Stmt) -> bool:
    return any(isinstance(s, Coproc) for s in walk(stmt))


def _before_host(node: Stmt | Expr, pending: _Pending) -> tuple[list[Stmt], _Pending]:
    touched = accesses(node)
    reads = names(touched.reads, scratch=False)
    writes = names(touched.writes, scratch=False)
    if reads & pending.writes or writes & (pending.reads | pending.writes):
        return [Synchronize()], _NOTHING
    return [], pending


def _visit_block(block: Coproc, pending: _Pending) -> tuple[Stmt, _Pending]:
    touched = accesses(block)
    own = _Pending(names(touched.reads, scratch=False), names(touched.writes, scratch=False))
    # Stores follow each other in the store stage; loads of one buffer may come in any order.
    if own.reads & pending.writes or own.writes & pending.reads:
        return seq([Synchronize(), block]), own
    return block, pending | own
