"""Short ways to write IR by hand: constants, arithmetic on expressions, blocks of statements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .nodes import INDEX, Alloc, Binary, BinaryOp, Buffer, Const, Expr, If, Seq, Stmt

_BOOLEAN = {
    BinaryOp.LT,
    BinaryOp.LE,
    BinaryOp.EQ,
    BinaryOp.NE,
    BinaryOp.AND,
    BinaryOp.OR,
}

ZERO = Const(0)
ONE = Const(1)
TRUE = Const(1, "bool")
FALSE = Const(0, "bool")


def const(value: int | float, dtype: str = INDEX) -> Const:
    return Const(value, dtype)


def binary(op: BinaryOp, a: Expr, b: Expr) -> Binary:
    """``a op b`` in the type of ``a``, or ``bool`` where the operation yields one."""
    return Binary(op, a, b, "bool" if op in _BOOLEAN else a.dtype)


def add(a: Expr, b: Expr) -> Expr:
    return binary(BinaryOp.ADD, a, b)


def sub(a: Expr, b: Expr) -> Expr:
    return binary(BinaryOp.SUB, a, b)


def mul(a: Expr, b: Expr) -> Expr:
    return binary(BinaryOp.MUL, a, b)


def floordiv(a: Expr, b: int) -> Expr:
    return binary(BinaryOp.FLOORDIV, a, Const(b))


def floormod(a: Expr, b: int) -> Expr:
    return binary(BinaryOp.FLOORMOD, a, Const(b))


def less(a: Expr, b: Expr) -> Expr:
    return binary(BinaryOp.LT, a, b)


def less_equal(a: Expr, b: Expr) -> Expr:
    return binary(BinaryOp.LE, a, b)


def all_of(conditions: Iterable[Expr]) -> Expr:
    """The conjunction; true of none."""
    result: Expr | None = None
    for condition in conditions:
        result = condition if result is None else binary(BinaryOp.AND, result, condition)
    return TRUE if result is None else result


def guarded(condition: Expr, body: Stmt) -> Stmt:
    """``if condition: body``, without the test where it is the constant true."""
    return body if condition == TRUE else If(condition, body)


def seq(stmts: Iterable[Stmt]) -> Stmt:
    """One after the other; nested sequences are flattened, one statement stands alone."""
    flat: list[Stmt] = []
    for stmt in stmts:
        flat.extend(stmt.stmts if isinstance(stmt, Seq) else (stmt,))
    return flat[0] if len(flat) == 1 else Seq(tuple(flat))


def block(buffers: Sequence[Buffer], stmts: Iterable[Stmt]) -> Stmt:
    """``stmts`` inside the allocations of ``buffers``, the first outermost."""
    body = seq(stmts)
    for buffer in reversed(buffers):
        body = Alloc(buffer, body)
    return body


def unblock(stmt: Stmt) -> tuple[list[Buffer], list[Stmt]]:
    """The inverse of ``block``: the allocations at the top of ``stmt`` and what they surround."""
    buffers: list[Buffer] = []
    while isinstance(stmt, Alloc):
        buffers.append(stmt.buffer)
        stmt = stmt.body
    return buffers, list(stmt.stmts) if isinstance(stmt, Seq) else [stmt]
