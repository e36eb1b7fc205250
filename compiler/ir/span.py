"""The values an index takes while some of its variables move and the others stand still."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from .affine import Linear, Ranges, from_linear, interval, linear
from .nodes import Binary, BinaryOp, Const, Expr, Load, Var
from .simplify import simplify
from .visit import variables, walk


@dataclass(frozen=True)
class Span:
    """Values from ``low`` to ``low + width - 1``; ``low`` holds only variables that are fixed."""

    low: Expr
    width: int


def span(expr: Expr, moving: Set[Var], ranges: Ranges) -> Span | None:
    """The values ``expr`` takes while the ``moving`` variables run over their ranges.

    The other variables are fixed (within ``ranges`` too) and may appear in ``low``. ``width`` may
    be larger than needed, never smaller. None where nothing is known (an index read from memory).
    """
    if any(isinstance(node, Load) for node in walk(expr)):
        return None
    expr = simplify(expr, ranges)
    if not variables(expr) & moving:
        return Span(expr, 1)
    form = linear(expr)
    if len(form.terms) == 1 and form.const == 0 and form.terms.get(expr) == 1:
        return _span_term(expr, moving, ranges)
    low, extra = Linear(form.const, {}), 0
    for term, coefficient in form.terms.items():
        part = span(term, moving, ranges)
        if part is None:
            return None
        reach = coefficient * (part.width - 1)
        low = low + linear(part.low).scaled(coefficient)
        if reach < 0:
            low = low + Linear(reach, {})
        extra += abs(reach)
    return Span(simplify(from_linear(low), ranges), extra + 1)


def _span_term(expr: Expr, moving: Set[Var], ranges: Ranges) -> Span | None:
    match expr:
        case Var():
            low, high = ranges[expr]
            return Span(Const(low), high - low + 1)
        case Binary(BinaryOp.FLOORDIV, a, Const(value)) if value > 0:
            inner = span(a, moving, ranges)
            if inner is None:
                return None
            size = int(value)
            # Where the low end falls inside its step of `size` is known only for a constant.
            offset = int(inner.low.value) % size if isinstance(inner.low, Const) else size - 1
            width = (offset + inner.width - 1) // size + 1
            return Span(simplify(Binary(BinaryOp.FLOORDIV, inner.low, Const(size)), ranges), width)
        case Binary(BinaryOp.FLOORMOD, a, Const(value)) if value > 0:
            inner = span(a, moving, ranges)
            size = int(value)
            if inner is not None and isinstance(inner.low, Const):
                start = int(inner.low.value)
                if start // size == (start + inner.width - 1) // size:
                    return Span(Const(start % size), inner.width)
            return Span(Const(0), size)
        case Binary(BinaryOp.MIN | BinaryOp.MAX as op, a, b):
            left, right = span(a, moving, ranges), span(b, moving, ranges)
            if left is not None and right is not None:
                # min and max move no further than the operand that moves furthest.
                low_end = simplify(Binary(op, left.low, right.low), ranges)
                return Span(low_end, max(left.width, right.width))
            return None
    bounds = interval(expr, ranges)
    return None if bounds is None else Span(Const(bounds[0]), bounds[1] - bounds[0] + 1)
