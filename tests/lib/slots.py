"""What the slots of a REQUANTIZE read and write, one by one: the judge of simulator/apart.py."""

from collections import deque
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

APART = 6  # docs/extensions.md


def slots(
    insn: dict[str, int], uops: NDArray[np.int32]
) -> Iterator[tuple[int, int | None, int | None, int, int | None]]:
    """(outer, inner, uop, entry read, entry written) of each; None where there is no such thing."""
    fields = {"iter_out": 0, "iter_in": 0, "use_imm": 0, "src_factor_out": 0}
    fields |= {"dst_factor_out": 0, "dst_factor_in": 0, **insn}
    for i in range(fields["iter_out"] if len(uops) and fields["iter_in"] else 0):
        if not fields["use_imm"]:
            yield i, None, None, int(uops[0, 1]) + i * fields["src_factor_out"], None
        for j in range(fields["iter_in"]):
            moved = i * fields["dst_factor_out"] + j * fields["dst_factor_in"]
            for number, dst in enumerate(uops[:, 0].tolist()):
                yield i, j, number, dst + moved, dst + moved


def first_too_early(
    insn: dict[str, int], uops: NDArray[np.int32]
) -> tuple[int, int | None, int | None, int, int] | None:
    """(outer, inner, uop, entry, slots since it was written) of the first such read."""
    written: deque[int | None] = deque(maxlen=APART - 1)  # the latest first
    for outer, inner, uop, read, write in slots(insn, uops):
        if read in written:
            return outer, inner, uop, read, written.index(read) + 1
        written.appendleft(write)
    return None


def reads_too_early(insn: dict[str, int], uops: NDArray[np.int32]) -> bool:
    return first_too_early(insn, uops) is not None
