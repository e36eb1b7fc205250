"""Whether a REQUANTIZE reads what it has begun to write.

It executes one slot per cycle: an iteration, or, first in every outer iteration and where there is
a bias, reading that. What a slot reads may not be what one of the REQUANTIZE_APART - 1 slots before
it writes: the machine does not have it yet.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vta_isa.microarch import REQUANTIZE_APART


@dataclass(frozen=True)
class TooClose:
    """The first slot that reads too early: its place, the entry, and how many slots lie between.

    ``inner`` and ``uop`` (counted from ``uop_begin``) are None where it reads a bias.
    """

    outer: int
    inner: int | None
    uop: int | None
    entry: int
    apart: int


class Slots:
    """The slots of one REQUANTIZE, numbered from 0 in the order in which they are executed."""

    def __init__(self, insn: np.void, uops: NDArray[np.int32]):
        """``uops`` is ``(uop_end - uop_begin, 3)``; neither loops nor micro-ops may be empty."""
        self.dst = uops[:, 0].astype(np.int64)
        self.first_bias = int(uops[0, 1])
        self.bias_step = int(insn["src_factor_out"])
        self.steps = int(insn["dst_factor_out"]), int(insn["dst_factor_in"])
        self.outers, self.inners = int(insn["iter_out"]), int(insn["iter_in"])
        self.biased = not insn["use_imm"]
        self.row = self.inners * len(self.dst) + self.biased  # slots of an outer iteration

    def place(self, slots: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
        """Outer and inner iteration and micro-op of each; the inner one is -1 for a bias."""
        outer, within = np.divmod(slots, self.row)
        inner, uop = np.divmod(within - self.biased, len(self.dst))
        return outer, inner, uop

    def written(self, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        """The entry that each writes; -1 for a bias, and where there is no such slot."""
        outer, inner, uop = self.place(slots)
        entries = self.dst[uop] + outer * self.steps[0] + inner * self.steps[1]
        return np.where((inner < 0) | (slots < 0), -1, entries)

    def read(self, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        """The entry that each reads."""
        outer, inner, _ = self.place(slots)
        bias = self.first_bias + outer * self.bias_step
        return np.where(inner < 0, bias, self.written(slots))

    def chosen(self) -> NDArray[np.int64]:
        """Slots that stand for all: every bias, and the iterations at the beginning of both loops.

        Between iterations alone only distances count. Behind REQUANTIZE_APART inner iterations, or
        outer ones, they are the same as one iteration before.
        """
        outers = np.arange(min(self.outers, REQUANTIZE_APART + 1))
        within = np.arange(min(self.inners, REQUANTIZE_APART + 1) * len(self.dst)) + self.biased
        slots = (outers[:, None] * self.row + within).reshape(-1)
        if self.biased:
            slots = np.concatenate([np.arange(self.outers) * self.row, slots])
        return np.sort(slots)


def too_close(insn: np.void, uops: NDArray[np.int32]) -> TooClose | None:
    """The first read that comes too early, if there is any.

    ``insn`` is a REQUANTIZE that executes, ``uops`` ``(uop_end - uop_begin, 3)`` its micro-ops.
    """
    slots = Slots(insn, uops)
    chosen = slots.chosen()
    read = slots.read(chosen)
    found = np.zeros(len(chosen), dtype=np.int64)
    for apart in reversed(range(1, REQUANTIZE_APART)):
        found[slots.written(chosen - apart) == read] = apart
    if not found.any():
        return None
    first = int(np.argmax(found > 0))
    outer, inner, uop = (int(place[first]) for place in slots.place(chosen))
    is_bias = inner < 0
    return TooClose(
        outer,
        None if is_bias else inner,
        None if is_bias else uop,
        int(read[first]),
        int(found[first]),
    )
