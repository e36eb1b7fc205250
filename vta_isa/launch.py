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
class Places:
    """Whose cycles were spent on what: every cycle of a stage belongs to one instruction.

    It belongs to the one that runs, else to the one that waits at the head of the command queue;
    one of fetch to the instruction that is dispatched next. Cycles without any belong to nobody.
    """

    causes: NDArray[np.int64]  # (n, causes) cycles; columns are vta_isa.counters.CAUSE_COUNTERS
    # (n, 3) cycles of its stage with AR, AW, W valid but not ready; only from the RTL
    stalled: NDArray[np.int64] | None = None


@dataclass(frozen=True)
class Timeline:
    """When each instruction was where: one element per instruction in stream order, (n,) each."""

    stage: NDArray[np.int8]  # vta_isa.enums.Stage
    dispatch: NDArray[np.int64]  # cycle in which fetch pushes it into its command queue
    start: NDArray[np.int64]  # cycle in which its stage starts it and consumes its tokens
    end: NDArray[np.int64]  # its last cycle, in which its tokens are pushed
    bursts: Bursts | None = None  # only when asked for
    places: Places | None = None  # only when asked for


@dataclass(frozen=True)
class Launch:
    """One launch: how long it took, where the cycles went (vta_isa.counters), and when."""

    cycles: int
    counters: dict[str, int]
    timeline: Timeline
