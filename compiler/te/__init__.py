"""Tensor expressions: what to compute.

``from compiler import te``, then ``te.placeholder``, ``te.compute``, ``te.sum`` and operators.
"""

from .errors import TensorError
from .tensor import (
    Definition,
    ReduceAxis,
    Reduction,
    Tensor,
    compute,
    max,
    min,
    placeholder,
    reduce_axis,
    sum,
    topological,
)
from .text import to_text
from .value import Value, const, maximum, minimum, select

__all__ = [
    "Definition",
    "ReduceAxis",
    "Reduction",
    "Tensor",
    "TensorError",
    "Value",
    "compute",
    "const",
    "max",
    "maximum",
    "min",
    "minimum",
    "placeholder",
    "reduce_axis",
    "select",
    "sum",
    "to_text",
    "topological",
]
