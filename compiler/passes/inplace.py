"""Make ALU operations work in place, as the hardware's do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from vta_isa import CompileError
from vta_isa.enums import AluOp

from ..ir.affine import linear
from ..ir.build import sub
from ..ir.nodes import (
    Alloc,
    Buffer,
    Const,
    For,
    Program,
    Region,
    Stmt,
    TensorCall,
    Var,
)
from ..ir.printer import to_text
from ..ir.simplify import simplify
from ..ir.visit import children, map_program, map_stmt, replace_buffers, variables
from .accesses import accesses

_COMMUTATIVE = {AluOp.ADD, AluOp.MIN, AluOp.MAX, AluOp.MUL}


def unify_in_place(program: Program) -> Program:
    """Let the destination of every ALU operation be the buffer of its first operand.

        alloc conv, shifted:                       alloc conv:
          produce conv: ...                          produce conv: ...
          for i: shr(shifted[i], conv[i])    →       for i: shr(conv[i], conv[i])
          for i: store out <- shifted[i]             for i: store out <- conv[i]

    The ALU computes ``acc[dst] = op(acc[dst], ...)``: destination and first operand are one entry.
    Two buffers become one where the operand is dead afterwards and both are indexed alike;
    commutative operations may take either operand. This runs before tokens are placed, because
    the two buffers are one resource from then on.
    """
    return map_program(program, _unify_all)


def _unify_all(body: Stmt) -> Stmt:
    refused: dict[str, str] = {}
    while True:
        for call in _alu_calls(body):
            dst = call.operands[0]
            candidates = _candidates(call)
            if any(_same_entry(dst, operand) for operand in candidates):
                continue
            for operand in candidates:
                reason = _obstacle(body, call, operand)
                if reason is None:
                    body = _merge(body, dst.buffer, operand.buffer)
                    break
                refused[operand.buffer.name] = reason
            else:
                reasons = "; ".join(refused[o.buffer.name] for o in candidates)
                raise CompileError(
                    f"in place: the ALU writes its result over its first operand, but {reasons}; "
                    f"in\n{to_text(call)}"
                )
            break  # the tree has changed
        else:
            return map_stmt(body, _order_operands)


def _alu_calls(body: Stmt) -> list[TensorCall]:
    return [
        at.stmt
        for at in _leaves(body)
        if isinstance(at.stmt, TensorCall) and at.stmt.intrinsic.emit.mode == "alu"
    ]


def _candidates(call: TensorCall) -> list[Region]:
    """The operands the result may overwrite."""
    sources = list(call.operands[1:])
    emit = call.intrinsic.emit
    return sources if emit.alu_op in _COMMUTATIVE else sources[:1]


def _same_entry(a: Region, b: Region) -> bool:
    return a.buffer == b.buffer and _same_index(a, b)


def _same_index(a: Region, b: Region) -> bool:
    return all(simplify(sub(x, y)) == Const(0) for x, y in zip(a.start, b.start, strict=True))


def _order_operands(stmt: Stmt) -> Stmt:
    """``add(x, y, x)`` is ``add(x, x, y)``: the operand in place comes first."""
    if not isinstance(stmt, TensorCall) or stmt.intrinsic.emit.mode != "alu":
        return stmt
    if len(stmt.operands) == 3:
        dst, first, second = stmt.operands
        if not _same_entry(dst, first) and _same_entry(dst, second):
            return replace(stmt, operands=(dst, second, first))
    return stmt


# ---------------------------------------------------------------------------------------------
# Whether two buffers can be one
# ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Leaf:
    """A statement without statements inside, and what is around it, outermost first."""

    stmt: Stmt
    around: tuple[Stmt, ...]


def _leaves(stmt: Stmt, around: tuple[Stmt, ...] = ()) -> Iterator[_Leaf]:
    inside = [n for n in children(stmt) if isinstance(n, Stmt)]
    if not inside or isinstance(stmt, TensorCall):
        yield _Leaf(stmt, around)
        return
    for child in inside:
        yield from _leaves(child, (*around, stmt))


def _obstacle(body: Stmt, call: TensorCall, operand: Region) -> str | None:
    """Why the destination of ``call`` cannot take the place of ``operand``; None if it can."""
    dst = call.operands[0]
    x, d = operand.buffer, dst.buffer
    if x == d:
        return f"{x.name} is read and written at different entries"
    if (x.shape, x.dtype, x.scope) != (d.shape, d.dtype, d.scope):
        return f"{x.name} has the shape {x.shape}, {d.name} {d.shape}"
    if not _same_index(dst, operand):
        return f"{x.name} and {d.name} are not indexed alike"
    leaves = list(_leaves(body))
    at = next(i for i, leaf in enumerate(leaves) if leaf.stmt is call)
    around = leaves[at].around
    owner = next((i for i, s in enumerate(around) if isinstance(s, Alloc) and s.buffer == x), None)
    if owner is None:
        return f"{x.name} is not allocated around it"
    loops = [s for s in around[owner:] if isinstance(s, For)]
    if not _visits_once(dst, loops):
        return f"an entry of {x.name} is used more than once"
    for i, leaf in enumerate(leaves):
        if i == at:
            continue
        touched = accesses(leaf.stmt)
        repeated = any(loop in leaf.around for loop in loops)
        if x in touched.reads and (i > at or repeated):
            return f"{x.name} is read again later"
        if d in touched.touched and i < at:
            return f"{d.name} is in use before"
    return None


def _visits_once(region: Region, loops: list[For]) -> bool:
    """Whether no two iterations of ``loops`` meet the same entry."""
    moving = {loop.var: loop.extent for loop in loops if loop.extent > 1}
    free = dict(moving)
    for index in region.start:
        form = linear(simplify(index))
        own = [(abs(c), t) for t, c in form.terms.items() if variables(t) & moving.keys()]
        reach = 0  # the most that the terms so far add up to
        for step, term in sorted(own, key=lambda item: item[0]):
            if not isinstance(term, Var) or step <= reach:
                return False
            reach += step * (moving[term] - 1)
            free.pop(term, None)
    return not free


def _merge(body: Stmt, gone: Buffer, kept: Buffer) -> Stmt:
    """``gone`` becomes ``kept``; the outer one of their allocations stays."""
    outer_is_gone = any(
        isinstance(s, Alloc) and s.buffer == gone and _allocates(s.body, kept)
        for s in _statements(body)
    )
    dropped = kept if outer_is_gone else gone

    def drop(stmt: Stmt) -> Stmt:
        return stmt.body if isinstance(stmt, Alloc) and stmt.buffer == dropped else stmt

    return replace_buffers(map_stmt(body, drop), {gone.name: kept})


def _statements(stmt: Stmt) -> Iterator[Stmt]:
    yield stmt
    for child in children(stmt):
        if isinstance(child, Stmt):
            yield from _statements(child)


def _allocates(stmt: Stmt, buffer: Buffer) -> bool:
    return any(isinstance(s, Alloc) and s.buffer == buffer for s in _statements(stmt))
