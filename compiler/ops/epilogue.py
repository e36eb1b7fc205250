"""What follows a matrix product or convolution before its result leaves the accelerator.

``acc + bias``, then an arithmetic right shift, then a clip, each optional and in this order; the
store then keeps the low bits. Every step is one tensor-ALU operation in place on the accumulator.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from vta_isa import AluOp, Machine

from .. import te
from ..intrinsics import alu
from ..ir.nodes import Scope
from ..schedule import Schedule


@dataclass(frozen=True)
class Epilogue:
    """The steps after the accumulation.

    ``bias``: one 32-bit value per output channel is added. ``shift``: arithmetic right shift by
    that many bits (negative: left). ``clip``: ``(low, high)``, both inclusive; a bound that is
    None does not limit (``(0, None)`` is a ReLU).
    """

    bias: bool = False
    shift: int | None = None
    clip: tuple[int | None, int | None] | None = None

    @property
    def immediates(self) -> int:
        """ALU operations with an immediate operand, per output entry."""
        low, high = self.clip or (None, None)
        return (self.shift is not None) + (low is not None) + (high is not None)


@dataclass(frozen=True)
class EpilogueStage:
    """A tensor of the epilogue and the ALU operation that computes it."""

    name: str
    op: AluOp
    imm: int | None


def apply_epilogue(
    acc: te.Tensor, bias: te.Tensor | None, epilogue: Epilogue, axes: tuple[str, ...]
) -> tuple[te.Tensor, list[EpilogueStage]]:
    """The chain of tensors after ``acc`` (n, co, oh, ow, b, o); ``bias`` is (co, b, o)."""
    stages: list[EpilogueStage] = []
    current = acc

    def step(name: str, op: AluOp, imm: int | None, value: Callable[..., te.Value]) -> te.Tensor:
        stages.append(EpilogueStage(name, op, imm))
        return te.compute(acc.shape, value, name=name, axes=axes)

    if bias is not None:
        source, channel = current, axes.index("co")
        current = step(
            "biased",
            AluOp.ADD,
            None,
            lambda *i: source[i] + bias[(i[channel], *i[-2:])],
        )
    if epilogue.shift is not None:
        shifted_from, amount = current, epilogue.shift
        current = step(
            "shifted",
            AluOp.SHR,
            amount,
            lambda *i: shifted_from[i] >> amount if amount >= 0 else shifted_from[i] << -amount,
        )
    low, high = epilogue.clip or (None, None)
    if low is not None:
        floored_from, floor = current, low
        current = step("floored", AluOp.MAX, low, lambda *i: te.maximum(floored_from[i], floor))
    if high is not None:
        capped_from, cap = current, high
        current = step("capped", AluOp.MIN, high, lambda *i: te.minimum(capped_from[i], cap))
    return current, stages


def schedule_epilogue(
    s: Schedule,
    stages: list[EpilogueStage],
    output: str,
    at: str,
    machine: Machine,
) -> None:
    """Place every stage on chip at loop ``at`` of ``output`` and hand it to the tensor ALU."""
    for stage in stages:
        s.set_scope(stage.name, Scope.ACC)  # all first: an ALU operation wants operands on chip
    for stage in reversed(stages):
        s.compute_at(stage.name, output, at)
        s.tensorize(stage.name, "b", alu(machine, stage.op, stage.imm))
