"""What the reference makes of a program, computed once for all engines that are held against it."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from simulator.reference import ReferenceState, run
from vta_isa.insn import INSN_DTYPE
from vta_isa.machine import Machine


def judged(
    machine: Machine, table: NDArray[np.void], dram: NDArray[np.uint8]
) -> tuple[NDArray[np.uint8], ReferenceState]:
    """DRAM and state after one launch from an empty state. Shared: do not change them."""
    return _judged(machine, table.tobytes(), dram.tobytes())


@lru_cache(maxsize=512)
def _judged(
    machine: Machine, table: bytes, dram: bytes
) -> tuple[NDArray[np.uint8], ReferenceState]:
    image, state = np.frombuffer(dram, dtype=np.uint8).copy(), ReferenceState(machine)
    run(np.frombuffer(table, dtype=INSN_DTYPE), image, state)
    return image, state
