"""Run the queue wherever DRAM written on one side is needed on the other."""

from __future__ import annotations

from dataclasses import dataclass, replace

from vta_isa import CompileError

from ..ir.build import block, seq, unblock
from ..ir.nodes import Alloc, Coproc, Expr, For, If, LoopKind, Program, Seq, Stmt, Synchronize
from ..ir.printer import to_text
from ..ir.visit import map_program, walk
from .accesses import accesses, names


@dataclass(frozen=True)
class _Pending:
    """Whether instructions are queued, and the DRAM buffers they will read and write."""

    queued: bool = False
    reads: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()

    def __or__(self, other: _Pending) -> _Pending:
        return _Pending(
            self.queued or other.queued, self.reads | other.reads, self.writes | other.writes
        )


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
        if not pending.queued:
            return new
        buffers, stmts = unblock(new)  # DRAM allocated here must live until it is no longer used
        return block(buffers, [*stmts, Synchronize()])

    return map_program(program, lower)


def _visit(stmt: Stmt, pending: _Pending, threaded: bool = False) -> tuple[Stmt, _Pending]:
    """``stmt`` with what it needs inserted, and what is queued after it, given what is before."""
    match stmt:
        case Seq(stmts):
            done: list[Stmt] = []
            for child in stmts:
                new, pending = _visit(child, pending, threaded)
                done.append(new)
            return seq(done), pending
        case Alloc(buffer, body):
            new, pending = _visit(body, pending, threaded)
            return Alloc(buffer, new), pending
        case For(body=body, kind=LoopKind.VTHREAD):
            # Threads take turns, so each statement meets what comes before it in any thread.
            new, pending = _visit(body, pending, True)
            return replace(stmt, body=new), pending
        case For(body=body) if _queues(stmt):
            # What an iteration leaves queued meets the next one: repeat until that adds nothing.
            while True:
                new, after = _visit(body, pending, threaded)
                if (grown := pending | after) == pending:
                    return replace(stmt, body=new), after
                pending = grown
        case If() if _queues(stmt):
            return _repeated(stmt, pending) if threaded else _visit_branch(stmt, pending)
        case Coproc():
            return _visit_block(stmt, pending)
    guard, pending = _before_host(stmt, pending)
    return seq([*guard, stmt]), pending


def _visit_branch(stmt: If, pending: _Pending) -> tuple[Stmt, _Pending]:
    guard, pending = _before_host(stmt.cond, pending)
    new, after = _visit(stmt.then, pending)
    if stmt.orelse is None:
        return seq([*guard, If(stmt.cond, new)]), pending | after
    other, after_other = _visit(stmt.orelse, pending)
    return seq([*guard, If(stmt.cond, new, other)]), after | after_other


def _repeated(stmt: If, pending: _Pending) -> tuple[Stmt, _Pending]:
    """A branch inside virtual threads: it runs once per thread before anything else does."""
    while True:
        new, after = _visit_branch(stmt, pending)
        if (grown := pending | after) == pending:
            break
        pending = grown
    if names(accesses(stmt.cond).reads, scratch=False) & after.writes:
        raise CompileError(
            "synchronize: a branch inside a virtual thread depends on what its arms store; in\n"
            + to_text(stmt)
        )
    return new, after


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
    own = _Pending(True, names(touched.reads, scratch=False), names(touched.writes, scratch=False))
    # Stores follow each other in the store stage; loads of one buffer may come in any order.
    if own.reads & pending.writes or own.writes & pending.reads:
        return seq([Synchronize(), block]), own
    return block, pending | own
