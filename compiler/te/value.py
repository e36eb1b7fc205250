"""Scalar values inside a tensor expression, combined with Python's operators."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn, TypeAlias

from ..ir.arithmetic import DTYPES, bits, is_float, is_integer, limits
from ..ir.build import binary
from ..ir.nodes import Binary, BinaryOp, Cast, Const, Expr, Not, Select
from ..ir.printer import to_text
from .errors import TensorError

if TYPE_CHECKING:
    from .tensor import Tensor

Operand: TypeAlias = "Value | int | float"


class Value:
    """A scalar: its expression and the tensors that it reads.

    Two values meet only if they have one type. A Python number takes the type of the other side;
    everything else is cast by hand with ``astype``.
    """

    def __init__(self, expr: Expr, tensors: frozenset[Tensor] = frozenset()):
        self.expr = expr
        self.tensors = tensors

    @property
    def dtype(self) -> str:
        """Its type, as NumPy writes it."""
        return self.expr.dtype

    def astype(self, dtype: str) -> Value:
        """The value as another type; integers keep their low bits."""
        known_dtype(dtype, f"astype of {self}")
        return self if dtype == self.dtype else Value(Cast(self.expr, dtype), self.tensors)

    def __add__(self, other: Operand) -> Value:
        return arithmetic(BinaryOp.ADD, self, other)

    def __radd__(self, other: Operand) -> Value:
        return arithmetic(BinaryOp.ADD, other, self)

    def __sub__(self, other: Operand) -> Value:
        return arithmetic(BinaryOp.SUB, self, other)

    def __rsub__(self, other: Operand) -> Value:
        return arithmetic(BinaryOp.SUB, other, self)

    def __mul__(self, other: Operand) -> Value:
        return arithmetic(BinaryOp.MUL, self, other)

    def __rmul__(self, other: Operand) -> Value:
        return arithmetic(BinaryOp.MUL, other, self)

    def __floordiv__(self, other: Operand) -> Value:
        return arithmetic(BinaryOp.FLOORDIV, self, other)

    def __rfloordiv__(self, other: Operand) -> Value:
        return arithmetic(BinaryOp.FLOORDIV, other, self)

    def __mod__(self, other: Operand) -> Value:
        return arithmetic(BinaryOp.FLOORMOD, self, other)

    def __rmod__(self, other: Operand) -> Value:
        return arithmetic(BinaryOp.FLOORMOD, other, self)

    def __truediv__(self, other: Operand) -> Value:
        return arithmetic(BinaryOp.DIV, self, other)

    def __rtruediv__(self, other: Operand) -> Value:
        return arithmetic(BinaryOp.DIV, other, self)

    def __rshift__(self, other: Operand) -> Value:
        return arithmetic(BinaryOp.SHR, self, other)

    def __rrshift__(self, other: Operand) -> Value:
        return arithmetic(BinaryOp.SHR, other, self)

    def __lshift__(self, other: Operand) -> Value:
        return arithmetic(BinaryOp.SHL, self, other)

    def __rlshift__(self, other: Operand) -> Value:
        return arithmetic(BinaryOp.SHL, other, self)

    def __neg__(self) -> Value:
        return 0 - self

    def __lt__(self, other: Operand) -> Value:
        return arithmetic(BinaryOp.LT, self, other)

    def __le__(self, other: Operand) -> Value:
        return arithmetic(BinaryOp.LE, self, other)

    def __gt__(self, other: Operand) -> Value:
        return arithmetic(BinaryOp.LT, other, self)

    def __ge__(self, other: Operand) -> Value:
        return arithmetic(BinaryOp.LE, other, self)

    def __eq__(self, other: object) -> Value:  # type: ignore[override]
        return arithmetic(BinaryOp.EQ, self, other)

    def __ne__(self, other: object) -> Value:  # type: ignore[override]
        return arithmetic(BinaryOp.NE, self, other)

    def __and__(self, other: Operand) -> Value:
        return _logical(BinaryOp.AND, self, other)

    def __rand__(self, other: Operand) -> Value:
        return _logical(BinaryOp.AND, other, self)

    def __or__(self, other: Operand) -> Value:
        return _logical(BinaryOp.OR, self, other)

    def __ror__(self, other: Operand) -> Value:
        return _logical(BinaryOp.OR, other, self)

    def __invert__(self) -> Value:
        if self.dtype != "bool":
            raise TensorError(f"~({self}): {self.dtype} is not bool; ~ negates a condition")
        return Value(Not(self.expr), self.tensors)

    __hash__ = object.__hash__

    def __bool__(self) -> NoReturn:
        raise TensorError(
            f"{self} has no truth value while the expression is built; choose with te.select, "
            "and write (a <= b) & (b < c) for a chained comparison, & for `and`, | for `or`"
        )

    def __repr__(self) -> str:
        return to_text(self.expr)


def known_dtype(dtype: str, where: str) -> str:
    if dtype not in DTYPES:
        raise TensorError(f"{where}: unknown type {dtype!r}; the types are {', '.join(DTYPES)}")
    return dtype


def const(value: int | float, dtype: str) -> Value:
    """The number ``value`` of the given type, which must hold it."""
    known_dtype(dtype, f"const {value}")
    if is_float(dtype):
        return Value(Const(float(value), dtype))
    if isinstance(value, float):
        raise TensorError(f"{value} is not an integer and cannot be {dtype}; give an int or cast")
    low, high = (0, 1) if dtype == "bool" else limits(dtype)
    if not low <= value <= high:
        raise TensorError(f"{value} does not fit {dtype} ({low}..{high}); cast to a wider type")
    return Value(Const(int(value), dtype))


def select(cond: Value, a: Operand, b: Operand) -> Value:
    """``a`` where ``cond``, else ``b``; only the chosen one is evaluated."""
    if not isinstance(cond, Value) or cond.dtype != "bool":
        raise TensorError(f"select on {cond!r}: the condition must be a comparison (bool)")
    left, right = _same_type("select", a, b)
    tensors = cond.tensors | left.tensors | right.tensors
    return Value(Select(cond.expr, left.expr, right.expr, left.dtype), tensors)


def minimum(a: Operand, b: Operand) -> Value:
    """The smaller of two values."""
    return arithmetic(BinaryOp.MIN, a, b)


def maximum(a: Operand, b: Operand) -> Value:
    """The larger of two values."""
    return arithmetic(BinaryOp.MAX, a, b)


_INTEGER_ONLY = {BinaryOp.FLOORDIV, BinaryOp.FLOORMOD, BinaryOp.SHR, BinaryOp.SHL}
_EQUALITY = {BinaryOp.EQ, BinaryOp.NE}


def arithmetic(op: BinaryOp, a: object, b: object) -> Value:
    """``a op b`` after the checks that the types allow it."""
    left, right = _same_type(op.value, a, b)
    where = f"({left}) {op} ({right})"
    dtype = left.dtype
    if dtype == "bool" and op not in _EQUALITY:
        raise TensorError(f"{where}: bool has no {op}; use select, &, | and ~, or cast to a number")
    if op in _INTEGER_ONLY and not is_integer(dtype):
        raise TensorError(f"{where}: {op} is for integers, not {dtype}; use / or cast")
    if op is BinaryOp.DIV and not is_float(dtype):
        raise TensorError(f"{where}: / is for floating point, not {dtype}; use // or cast")
    if isinstance(right.expr, Const):
        if op in (BinaryOp.FLOORDIV, BinaryOp.FLOORMOD) and right.expr.value == 0:
            raise TensorError(f"{where}: division by zero")
        if op in (BinaryOp.SHR, BinaryOp.SHL):
            return _shift(op, left, int(right.expr.value), where)
    return Value(binary(op, left.expr, right.expr), left.tensors | right.tensors)


def _shift(op: BinaryOp, a: Value, amount: int, where: str) -> Value:
    """A shift by a constant; by a negative one it goes the other way."""
    width = bits(a.dtype)
    if not -width < amount < width:
        raise TensorError(f"{where}: a shift of {a.dtype} takes {1 - width}..{width - 1}")
    if amount < 0:
        op = BinaryOp.SHL if op is BinaryOp.SHR else BinaryOp.SHR
    return Value(Binary(op, a.expr, Const(abs(amount), a.dtype), a.dtype), a.tensors)


def _logical(op: BinaryOp, a: object, b: object) -> Value:
    left, right = _same_type(op.value, a, b)
    if left.dtype != "bool":
        sign = "&" if op is BinaryOp.AND else "|"
        raise TensorError(f"({left}) {sign} ({right}): {left.dtype} is not bool; {sign} is logical")
    return Value(binary(op, left.expr, right.expr), left.tensors | right.tensors)


def _same_type(what: str, a: object, b: object) -> tuple[Value, Value]:
    """Both operands as values of one type."""
    for operand in (a, b):
        if not isinstance(operand, (Value, int, float)):
            raise TensorError(
                f"{what}: {operand!r} is no scalar value; index a tensor first, and keep a "
                "reduction the whole body of its compute"
            )
    if not isinstance(a, Value):
        if not isinstance(b, Value):
            raise TensorError(f"{what} of {a} and {b}: give one of them a type with te.const")
        return const(a, b.dtype), b  # type: ignore[arg-type]
    if not isinstance(b, Value):
        return a, const(b, a.dtype)  # type: ignore[arg-type]
    if a.dtype != b.dtype:
        raise TensorError(
            f"{what} mixes {a.dtype} ({a}) and {b.dtype} ({b}); cast one of them, "
            f"e.g. .astype({a.dtype!r})"
        )
    return a, b
