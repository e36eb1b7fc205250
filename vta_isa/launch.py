"""What running one instruction stream brings back, whichever device ran it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Bursts:
    """Every DRAM burst of a launch, reads in the order of their grants, then writes; (m,) each.

    Cycles count from the one in which fetch sees the start, as everywhere.
    """

    stage: NDArray[np.int8]  # 0 fetch, otherwise vta_isa.enums.Stage; only STORE (3) writes
    insn: NDArray[np.int64]  # instruction served; for fetch the first one of the chunk
    address: NDArray[np.int64]  # byte address of the first beat, a multiple of the bus width
    beats: NDArray[np.int64]
    request: NDArray[np.int64]  # first cycle the request is presented (a write: its AW cycle)
    issue: NDArray[np.int64]  # cycle of the AR or AW handshake
    first: NDArray[np.int64]  # cycle of the first data beat
    last: NDArray[np.int64]  # cycle of the last data beat


@dataclass(frozen=True)
class Timeline:
    """When each instruction was where: one element per instruction in stream order, (n,) each."""

    stage: NDArray[np.int8]  # vta_isa.enums.Stage
    dispatch: NDArray[np.int64]  # cycle in which fetch pushes it into its command queue
    start: NDArray[np.int64]  # cycle in which its stage starts it and consumes its tokens
    end: NDArray[np.int64]  # its last cycle, in which its tokens are pushed
    bursts: Bursts | None = None  # only when asked for


@dataclass(frozen=True)
class Launch:
    """One launch: how long it took, where the cycles went (vta_isa.counters), and when."""

    cycles: int
    counters: dict[str, int]
    timeline: Timeline
