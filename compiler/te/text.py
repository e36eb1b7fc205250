"""Tensor expressions as text, one line per tensor."""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.printer import to_text as ir_text
from .tensor import Tensor, topological


def to_text(outputs: Tensor | Sequence[Tensor]) -> str:
    """What ``vta lower --emit te`` prints: the graph behind ``outputs``, inputs first."""
    tensors = topological([outputs] if isinstance(outputs, Tensor) else outputs)
    return "\n".join(_line(tensor) for tensor in tensors)


def _line(tensor: Tensor) -> str:
    extents = zip(tensor.axes, tensor.shape, strict=True)
    head = f"{tensor.name}[{', '.join(f'{axis}:{size}' for axis, size in extents)}]"
    if tensor.definition is None:
        return f"{head} = placeholder {tensor.dtype}"
    value = ir_text(tensor.definition.value)
    reduction = tensor.definition.reduction
    if reduction is not None:
        over = ", ".join(f"{axis.name}:{axis.extent}" for axis in reduction.axes)
        value = f"{reduction.name}({value}, over {over})"
    return f"{head} = {value}"
