"""What the operations of the IR compute on scalars: one definition for folding and running."""

from __future__ import annotations

import math
from functools import cache
from typing import TypeAlias

import numpy as np

from .nodes import BinaryOp

Scalar: TypeAlias = int | float

DTYPES = (
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float32",
    "float64",
)


def is_float(dtype: str) -> bool:
    return dtype.startswith("float")


def is_integer(dtype: str) -> bool:
    return dtype.startswith(("int", "uint"))


@cache
def bits(dtype: str) -> int:
    return np.dtype(dtype).itemsize * 8


@cache
def limits(dtype: str) -> tuple[int, int]:
    """Smallest and largest value of an integer type."""
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def least(dtype: str) -> Scalar:
    """The neutral element of max."""
    return -math.inf if is_float(dtype) else limits(dtype)[0]


def greatest(dtype: str) -> Scalar:
    """The neutral element of min."""
    return math.inf if is_float(dtype) else limits(dtype)[1]


def convert(value: Scalar, dtype: str) -> Scalar:
    """``value`` as a ``dtype``: integers keep their low bits, floats are cut towards zero."""
    if dtype == "float32":
        with np.errstate(over="ignore"):
            return float(np.float32(value))
    if dtype == "float64":
        return float(value)
    if dtype == "bool":
        return int(value != 0)
    low, high = limits(dtype)
    number = int(value)
    if low <= number <= high:
        return number
    return (number - low) % (high - low + 1) + low


def apply(op: BinaryOp, a: Scalar, b: Scalar, dtype: str) -> Scalar:
    """``a op b`` for two operands of type ``dtype`` (that of the operands, not of the result).

    Raises ``ZeroDivisionError`` for an integer division by zero and ``ValueError`` for a shift by
    less than 0 or by the width or more.
    """
    match op:
        case BinaryOp.ADD:
            return convert(a + b, dtype)
        case BinaryOp.SUB:
            return convert(a - b, dtype)
        case BinaryOp.MUL:
            return convert(a * b, dtype)
        case BinaryOp.FLOORDIV:
            return convert(a // b, dtype)
        case BinaryOp.FLOORMOD:
            return convert(a % b, dtype)
        case BinaryOp.DIV:
            with np.errstate(all="ignore"):
                return convert(float(np.float64(a) / np.float64(b)), dtype)
        case BinaryOp.MIN:
            return min(a, b)
        case BinaryOp.MAX:
            return max(a, b)
        case BinaryOp.SHR | BinaryOp.SHL:
            if not 0 <= b < bits(dtype):
                raise ValueError(f"shift of {dtype} by {b}, which is not in 0..{bits(dtype) - 1}")
            shifted = int(a) >> int(b) if op is BinaryOp.SHR else int(a) << int(b)
            return convert(shifted, dtype)
        case BinaryOp.LT:
            return int(a < b)
        case BinaryOp.LE:
            return int(a <= b)
        case BinaryOp.EQ:
            return int(a == b)
        case BinaryOp.NE:
            return int(a != b)
        case BinaryOp.AND:
            return int(bool(a) and bool(b))
        case BinaryOp.OR:
            return int(bool(a) or bool(b))
