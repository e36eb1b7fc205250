"""Index expressions as sums: constant plus coefficient times term, and the ranges they span."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from .nodes import INDEX, Binary, BinaryOp, Cast, Const, Expr, Select, Var

Ranges = Mapping[Var, tuple[int, int]]  # inclusive bounds of each variable
NO_RANGES: Ranges = {}


@dataclass(frozen=True)
class Linear:
    """``const + sum(coefficient * term)``; a term is a variable or any non-linear expression."""

    const: int
    terms: Mapping[Expr, int]

    def __add__(self, other: Linear) -> Linear:
        terms = dict(self.terms)
        for term, coefficient in other.terms.items():
            terms[term] = terms.get(term, 0) + coefficient
        return Linear(self.const + other.const, {t: c for t, c in terms.items() if c})

    def scaled(self, factor: int) -> Linear:
        if factor == 0:
            return Linear(0, {})
        return Linear(self.const * factor, {t: c * factor for t, c in self.terms.items()})


def linear(expr: Expr) -> Linear:
    """The sum ``expr`` is, for expressions of the index type; anything else is one term."""
    if expr.dtype != INDEX:
        return Linear(0, {expr: 1})
    match expr:
        case Const(value):
            return Linear(int(value), {})
        case Binary(BinaryOp.ADD, a, b):
            return linear(a) + linear(b)
        case Binary(BinaryOp.SUB, a, b):
            return linear(a) + linear(b).scaled(-1)
        case Binary(BinaryOp.MUL, a, b):
            left, right = linear(a), linear(b)
            if not right.terms:
                return left.scaled(right.const)
            if not left.terms:
                return right.scaled(left.const)
        case Binary(BinaryOp.SHL, a, Const(value)) if 0 <= value < 63:
            return linear(a).scaled(1 << int(value))
    return Linear(0, {expr: 1})


def as_affine(expr: Expr) -> tuple[int, dict[Var, int]] | None:
    """``(constant, {variable: coefficient})``, or None where ``expr`` is not affine."""
    form = linear(expr)
    terms: dict[Var, int] = {}
    for term, coefficient in form.terms.items():
        if not isinstance(term, Var):
            return None
        terms[term] = coefficient
    return form.const, terms


def from_linear(form: Linear) -> Expr:
    """An expression for the sum, terms in the order they were met, the constant last."""
    result: Expr | None = None
    # A positive term first, so that the text does not begin with a subtraction from zero.
    for term, coefficient in sorted(form.terms.items(), key=lambda item: item[1] < 0):
        size = abs(coefficient)
        scaled = term if size == 1 else Binary(BinaryOp.MUL, term, Const(size))
        if result is None:
            result = scaled if coefficient > 0 else Binary(BinaryOp.SUB, Const(0), scaled)
        else:
            op = BinaryOp.ADD if coefficient > 0 else BinaryOp.SUB
            result = Binary(op, result, scaled)
    if result is None:
        return Const(form.const)
    if form.const > 0:
        return Binary(BinaryOp.ADD, result, Const(form.const))
    if form.const < 0:
        return Binary(BinaryOp.SUB, result, Const(-form.const))
    return result


def interval(expr: Expr, ranges: Ranges) -> tuple[int, int] | None:
    """Inclusive bounds of an integer expression whose variables stay in ``ranges``, if known."""
    match expr:
        case Const(value):
            return int(value), int(value)
        case Var():
            return ranges.get(expr)
        case Cast(a):
            # Only widening to the index type keeps the value for sure.
            return interval(a, ranges) if expr.dtype == INDEX and a.dtype != "bool" else None
        case Select(_, a, b):
            return _both(interval(a, ranges), interval(b, ranges), lambda x, y: _hull(x, y))
        case Binary(op, a, b) if op in _COMBINE and expr.dtype == INDEX:
            return _both(interval(a, ranges), interval(b, ranges), _COMBINE[op])
    return None


Interval = tuple[int, int]


def _both(
    a: Interval | None, b: Interval | None, combine: Callable[[Interval, Interval], Interval | None]
) -> Interval | None:
    return None if a is None or b is None else combine(a, b)


def _hull(a: Interval, b: Interval) -> Interval:
    return min(a[0], b[0]), max(a[1], b[1])


def _product(a: Interval, b: Interval) -> Interval:
    corners = [x * y for x in a for y in b]
    return min(corners), max(corners)


def _quotient(a: Interval, b: Interval) -> Interval | None:
    if b[0] <= 0 <= b[1]:
        return None
    corners = [x // y for x in a for y in b]
    return min(corners), max(corners)


def _remainder(a: Interval, b: Interval) -> Interval | None:
    if b[0] != b[1] or b[0] <= 0:
        return None
    size = b[0]
    if a[0] // size == a[1] // size:
        return a[0] % size, a[1] % size
    return 0, size - 1


def _shift_right(a: Interval, b: Interval) -> Interval | None:
    if b[0] < 0 or b[1] > 62:
        return None
    corners = [x >> y for x in a for y in b]
    return min(corners), max(corners)


_COMBINE: dict[BinaryOp, Callable[[Interval, Interval], Interval | None]] = {
    BinaryOp.ADD: lambda a, b: (a[0] + b[0], a[1] + b[1]),
    BinaryOp.SUB: lambda a, b: (a[0] - b[1], a[1] - b[0]),
    BinaryOp.MUL: _product,
    BinaryOp.FLOORDIV: _quotient,
    BinaryOp.FLOORMOD: _remainder,
    BinaryOp.MIN: lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    BinaryOp.MAX: lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    BinaryOp.SHR: _shift_right,
}
