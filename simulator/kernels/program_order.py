"""Whether a stream may run in program order, decided block by block."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..order import token_flow
from .static_checks import blocks

Tokens = tuple[int, int, int, int]  # held by the four queues, indexed by TokenQueue


def tokens_in_program_order(
    table: NDArray[np.void], tokens: Sequence[int], capacity: int
) -> Tokens | None:
    """The tokens left when ``table (n,) INSN_DTYPE`` has run in program order from ``tokens`` on.

    None where some instruction would not find its tokens, or no room in a queue of ``capacity`` for
    those it gives.
    """
    held = np.array(tokens, dtype=np.int64)
    for _, part in blocks(table):
        pops, pushes = token_flow(part)
        after = held + np.cumsum(pushes, axis=0, dtype=np.int64)
        after -= np.cumsum(pops, axis=0, dtype=np.int64)
        if (after < pushes).any() or (after > capacity).any():
            return None
        held = after[-1]
    return int(held[0]), int(held[1]), int(held[2]), int(held[3])
