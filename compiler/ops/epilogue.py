"""What follows a matrix product or convolution before its result leaves the accelerator.

``acc + bias``, then an arithmetic right shift, then a clip, each optional and in this order; the
store then keeps the low bits. Every step is one tensor-ALU operation in place on the accumulator;
all together are one on machines that can.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

from vta_isa import AluOp, Buffer, LowKind, Machine
from vta_runtime.requantize import HIGH_MAX, SHIFT_MAX, Requantize

from .. import te
from ..intrinsics import alu, requantize, requantized
from ..ir.nodes import Intrinsic, Scope
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

    def fused(self, machine: Machine, *, added: bool) -> Requantize | None:
        """All of it as one REQUANTIZE, where ``machine`` has that and it saves an operation.

        ``added``: something is added first, the bias or the other operand of an addition. Bounds
        that no shifted accumulator passes need not be the same.
        """
        shift = self.shift or 0
        worth = self.immediates + added >= 2
        if not machine.extensions.alu_requantize or not worth or not 0 <= shift <= SHIFT_MAX:
            return None
        lowest, highest = (bound >> shift for bound in machine.scalar_range(Buffer.ACC))
        low, high = self.clip or (None, None)
        wanted = (
            lowest if low is None else max(low, lowest),
            highest if high is None else min(high, highest),
        )
        for upper, kind in product((wanted[1], -wanted[0], -wanted[0] - 1), LowKind):
            found = Requantize(shift, kind, upper)
            reached = max(found.bounds[0], lowest), min(found.bounds[1], highest)
            if 0 <= upper <= HIGH_MAX and reached == wanted:
                return found
        return None


@dataclass(frozen=True)
class EpilogueStage:
    """A tensor of the epilogue and the ALU operation that computes it."""

    name: str
    intrinsic: Intrinsic


def apply_epilogue(
    acc: te.Tensor,
    bias: te.Tensor | None,
    epilogue: Epilogue,
    axes: tuple[str, ...],
    machine: Machine,
) -> tuple[te.Tensor, list[EpilogueStage]]:
    """The chain of tensors after ``acc`` (n, co, oh, ow, b, o); ``bias`` is (co, b, o)."""
    stages: list[EpilogueStage] = []
    current = acc

    def step(name: str, op: AluOp, imm: int | None, value: Callable[..., te.Value]) -> te.Tensor:
        stages.append(EpilogueStage(name, alu(machine, op, imm)))
        return te.compute(acc.shape, value, name=name, axes=axes)

    def biased(*i: te.Value) -> te.Value:
        return acc[i] if bias is None else acc[i] + bias[(i[axes.index("co")], *i[-2:])]

    how = epilogue.fused(machine, added=bias is not None)
    if how is not None:
        intrinsic = requantize(machine, how, biased=bias is not None)
        stages.append(EpilogueStage("requantized", intrinsic))
        whole = te.compute(
            acc.shape, lambda *i: requantized(biased(*i), how), name="requantized", axes=axes
        )
        return whole, stages
    if bias is not None:
        current = step("biased", AluOp.ADD, None, biased)
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
) -> None:
    """Place every stage on chip at loop ``at`` of ``output`` and hand it to the tensor ALU."""
    for stage in stages:
        s.set_scope(stage.name, Scope.ACC)  # all first: an ALU operation wants operands on chip
    for stage in reversed(stages):
        s.compute_at(stage.name, output, at)
        s.tensorize(stage.name, "b", stage.intrinsic)
