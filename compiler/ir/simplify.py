"""Rewriting expressions and statements to shorter ones of the same value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from .affine import NO_RANGES, Linear, Ranges, as_affine, from_linear, interval, linear
from .arithmetic import apply, convert
from .build import FALSE, TRUE, binary
from .nodes import (
    INDEX,
    Binary,
    BinaryOp,
    Cast,
    Const,
    Expr,
    For,
    If,
    Load,
    LoopKind,
    Not,
    Select,
    Seq,
    Stmt,
    Var,
)
from .visit import Node, map_children, substitute, walk

__all__ = ["as_affine", "simplify", "simplify_stmt"]

_COMPARISONS = {BinaryOp.LT, BinaryOp.LE, BinaryOp.EQ, BinaryOp.NE}
_SUMS = {BinaryOp.ADD, BinaryOp.SUB, BinaryOp.MUL, BinaryOp.SHL}


def simplify(expr: Expr, ranges: Ranges = NO_RANGES) -> Expr:
    """An expression equal to ``expr`` wherever its variables stay in ``ranges`` (inclusive).

    Index arithmetic comes back as a sum of terms in normal form, so equal sums compare equal when
    their difference simplifies to the constant 0.
    """

    def visit(node: Node) -> Node:
        new = map_children(node, visit)
        return _step(new, ranges) if isinstance(new, Expr) else new

    return cast(Expr, visit(expr))


def _step(expr: Expr, ranges: Ranges) -> Expr:
    """One expression whose operands are simple already."""
    match expr:
        case Var():
            bounds = ranges.get(expr)
            if bounds is not None and bounds[0] == bounds[1]:
                return Const(bounds[0], expr.dtype)
        case Cast(Const(value), dtype):
            return Const(convert(value, dtype), dtype)
        case Cast(a, dtype) if a.dtype == dtype:
            return a
        case Not(Const(value)):
            return FALSE if value else TRUE
        case Not(Not(a)):
            return a
        case Select(Const(value), a, b):
            return a if value else b
        case Select(_, a, b) if a == b:
            return a
        case Binary():
            return _binary(expr, ranges)
    return expr


def _binary(expr: Binary, ranges: Ranges) -> Expr:
    op, a, b = expr.op, expr.a, expr.b
    if isinstance(a, Const) and isinstance(b, Const):
        try:
            return Const(apply(op, a.value, b.value, a.dtype), expr.dtype)
        except (ValueError, ZeroDivisionError):
            return expr  # an error to be met when it runs, if it ever does
    if op in (BinaryOp.AND, BinaryOp.OR):
        return _logical(expr)
    if op in _COMPARISONS:
        return _comparison(expr, ranges) if a.dtype == INDEX else expr
    if a.dtype != INDEX:
        return _identity(expr)
    if op in _SUMS:
        return _sum(expr, ranges)
    if op in (BinaryOp.FLOORDIV, BinaryOp.FLOORMOD) and isinstance(b, Const) and b.value > 0:
        return _division(op, a, int(b.value), ranges)
    if op in (BinaryOp.MIN, BinaryOp.MAX):
        return _extreme(expr, ranges)
    return _identity(expr)


def _logical(expr: Binary) -> Expr:
    neutral = 1 if expr.op is BinaryOp.AND else 0
    for side, other in ((expr.a, expr.b), (expr.b, expr.a)):
        if isinstance(side, Const):
            return other if bool(side.value) == bool(neutral) else Const(1 - neutral, "bool")
    return expr.a if expr.a == expr.b else expr


def _comparison(expr: Binary, ranges: Ranges) -> Expr:
    """Decided by the range of the difference; otherwise left as it was written."""
    difference = simplify(binary(BinaryOp.SUB, expr.b, expr.a), ranges)
    bounds = interval(difference, ranges)
    if bounds is None:
        return expr
    low, high = bounds
    match expr.op:
        case BinaryOp.LT:
            known = True if low > 0 else False if high <= 0 else None
        case BinaryOp.LE:
            known = True if low >= 0 else False if high < 0 else None
        case BinaryOp.EQ:
            known = True if low == high == 0 else False if low > 0 or high < 0 else None
        case _:
            known = False if low == high == 0 else True if low > 0 or high < 0 else None
    return expr if known is None else TRUE if known else FALSE


def _identity(expr: Binary) -> Expr:
    """Operations with their neutral element, in any type (no rule that changes a rounding)."""
    a, b = expr.a, expr.b
    integer = not expr.dtype.startswith("float")
    if isinstance(b, Const):
        shift = expr.op in (BinaryOp.SHR, BinaryOp.SHL)
        if b.value == 0 and ((integer and expr.op in (BinaryOp.ADD, BinaryOp.SUB)) or shift):
            return a
        if b.value == 1 and expr.op in (BinaryOp.MUL, BinaryOp.DIV):
            return a
        if b.value == 1 and integer and expr.op is BinaryOp.FLOORDIV:
            return a
    if isinstance(a, Const):
        if a.value == 0 and integer and expr.op is BinaryOp.ADD:
            return b
        if a.value == 1 and expr.op is BinaryOp.MUL:
            return b
    if a == b and expr.op in (BinaryOp.MIN, BinaryOp.MAX):
        return a
    return expr


def _sum(expr: Expr, ranges: Ranges) -> Expr:
    return from_linear(_join_divisions(linear(expr)))


def _join_divisions(form: Linear) -> Linear:
    """``(x // n) * (n * c) + (x % n) * c  ->  x * c``, what splitting a fused loop leaves."""
    for term, coefficient in form.terms.items():
        match term:
            case Binary(BinaryOp.FLOORMOD, x, Const(value)):
                quotient = Binary(BinaryOp.FLOORDIV, x, Const(value))
                if form.terms.get(quotient) == coefficient * int(value):
                    rest = {t: c for t, c in form.terms.items() if t not in (term, quotient)}
                    joined = Linear(form.const, rest) + linear(x).scaled(coefficient)
                    return _join_divisions(joined)
    return form


def _division(op: BinaryOp, a: Expr, size: int, ranges: Ranges) -> Expr:
    """Division and remainder of a sum: the part divisible by ``size`` leaves the operand."""
    if any(isinstance(node, Load) for node in walk(a)):
        return Binary(op, a, Const(size))  # data, not an index: its sum may have wrapped
    if size == 1:
        return a if op is BinaryOp.FLOORDIV else Const(0)
    form = linear(a)
    whole = Linear(
        form.const // size, {t: c // size for t, c in form.terms.items() if c % size == 0}
    )
    rest = Linear(form.const % size, {t: c for t, c in form.terms.items() if c % size})
    remainder = from_linear(rest)
    bounds = interval(remainder, ranges)
    if bounds is not None and bounds[0] // size == bounds[1] // size:
        step = bounds[0] // size
        if op is BinaryOp.FLOORDIV:
            return from_linear(whole + Linear(step, {}))
        return from_linear(rest + Linear(-step * size, {}))
    match remainder:
        case Binary(BinaryOp.FLOORDIV, x, Const(value)) if op is BinaryOp.FLOORDIV and value > 0:
            remainder, size = x, size * int(value)
        case Binary(BinaryOp.FLOORMOD, x, Const(value)) if value > 0 and value % size == 0:
            if op is BinaryOp.FLOORMOD:
                return _division(op, x, size, ranges)
    if op is BinaryOp.FLOORMOD:
        return Binary(op, remainder, Const(size))
    return from_linear(whole + Linear(0, {Binary(op, remainder, Const(size)): 1}))


def _extreme(expr: Binary, ranges: Ranges) -> Expr:
    difference = simplify(binary(BinaryOp.SUB, expr.b, expr.a), ranges)
    bounds = interval(difference, ranges)
    if bounds is not None:
        smaller_a, smaller_b = bounds[0] >= 0, bounds[1] <= 0
        if smaller_a or smaller_b:
            return expr.a if smaller_a == (expr.op is BinaryOp.MIN) else expr.b
    return _identity(expr)


def simplify_stmt(stmt: Stmt, ranges: Ranges = NO_RANGES, *, drop_unit_loops: bool = False) -> Stmt:
    """``stmt`` with simple expressions, decided branches removed and sequences flattened.

    Loops bring the ranges of their variables. With ``drop_unit_loops``, ``for i in range(1)`` that
    runs serially becomes its body with 0 for ``i``; without it every loop keeps its name.
    """
    return _statement(stmt, dict(ranges), drop_unit_loops)


def _statement(stmt: Stmt, ranges: Mapping[Var, tuple[int, int]], drop: bool) -> Stmt:
    def child(node: Node) -> Node:
        if isinstance(node, Expr):
            return simplify(node, ranges)
        return _statement(node, ranges, drop)

    match stmt:
        case For(var, extent, body, kind):
            if drop and extent == 1 and kind is not LoopKind.VTHREAD:
                return _statement(substitute(body, {var: Const(0)}), ranges, drop)
            inner = _statement(body, {**ranges, var: (0, extent - 1)}, drop)
            if inner == Seq(()):
                return inner
            return stmt if inner is body else For(var, extent, inner, kind, stmt.annotations)
        case If(cond, then, orelse):
            test = simplify(cond, ranges)
            if isinstance(test, Const):
                chosen = then if test.value else orelse
                return Seq(()) if chosen is None else _statement(chosen, ranges, drop)
        case Seq(stmts):
            flat: list[Stmt] = []
            for item in stmts:
                new = _statement(item, ranges, drop)
                flat.extend(new.stmts if isinstance(new, Seq) else (new,))
            return flat[0] if len(flat) == 1 else Seq(tuple(flat))
    return map_children(stmt, child)
