"""What a timeline says beyond its numbers: which token went where, and what each gap waited for.

Everything here follows from stream and timeline alone, by the rules of docs/microarchitecture.md
(section 4), whichever device recorded them. Cycles count from the start of a launch; a token an
earlier launch left behind has a negative one.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

import numpy as np
from numpy.typing import NDArray

from simulator.order import POPS, token_flow
from vta_isa.enums import Stage, TokenQueue
from vta_isa.launch import Bursts, Timeline

BEFORE = -1  # the cycle of a token that an earlier launch left

# What a stage waits for when a token of the stage before it, or of that behind it, is missing.
_NEIGHBOURS = {
    Stage.LOAD: ("", "wait_compute"),
    Stage.COMPUTE: ("wait_load", "wait_store"),
    Stage.STORE: ("wait_compute", ""),
}


@dataclass(frozen=True)
class Token:
    """One dependence token; its number is its own among all launches of a device."""

    number: int
    pushed: int  # last cycle of the instruction that gave it


@dataclass
class TokenFlow:
    """The tokens of successive launches: which one each instruction pushes and pops.

    The n-th pop of a queue takes the n-th token pushed into it. What a launch leaves in the queues
    is there for the next one.
    """

    numbers: Iterator[int] = field(default_factory=lambda: count(1))  # of tokens
    left: dict[TokenQueue, deque[Token]] = field(
        default_factory=lambda: {queue: deque() for queue in TokenQueue}
    )

    def launch(
        self, table: NDArray[np.void], timeline: Timeline
    ) -> tuple[list[dict[TokenQueue, Token]], list[dict[TokenQueue, Token]]]:
        """``(popped, pushed)`` of each instruction of ``(n,) INSN_DTYPE``, by queue."""
        pops, pushes = token_flow(table)
        end = timeline.end.tolist()
        popped: list[dict[TokenQueue, Token]] = [{} for _ in end]
        pushed: list[dict[TokenQueue, Token]] = [{} for _ in end]
        for queue in TokenQueue:
            tokens = self.left[queue]
            for insn in np.flatnonzero(pushes[:, queue]).tolist():
                token = Token(next(self.numbers), end[insn])
                pushed[insn][queue] = token
                tokens.append(token)
            for insn in np.flatnonzero(pops[:, queue]).tolist():
                popped[insn][queue] = tokens.popleft()
            self.left[queue] = deque(Token(token.number, BEFORE) for token in tokens)
        return popped, pushed


@dataclass(frozen=True)
class Wait:
    """Cycles ``begin`` .. ``end`` - 1, in which ``insn`` kept its stage waiting for ``cause``.

    ``cause`` is one of ``vta_isa.counters.CAUSES``: ``wait_load``, ``wait_compute``,
    ``wait_store``, or ``idle`` while the instruction has not been dispatched.
    """

    stage: Stage
    insn: int
    cause: str
    begin: int
    end: int


def waits(timeline: Timeline, popped: list[dict[TokenQueue, Token]]) -> Iterator[Wait]:
    """Every gap before an instruction, cut by cause; those of one stage in order of time."""
    free = dict.fromkeys(Stage, 0)
    columns = (timeline.stage, timeline.dispatch, timeline.start, timeline.end)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    for insn, (stage_number, dispatch, start, end) in enumerate(rows):
        stage = Stage(stage_number)
        at = free[stage]
        free[stage] = end + 1
        dispatched = max(at, dispatch + 1)
        before = max(dispatched, _given(popped[insn], stage, "pop_prev") + 1)
        after = _given(popped[insn], stage, "pop_next") + 1
        assert max(before, after) == start, f"insn {insn} starts in {start}, not {before}, {after}"
        causes = ("idle", *_NEIGHBOURS[stage])
        for cause, until in zip(causes, (dispatched, before, start), strict=True):
            if until > at:
                yield Wait(stage, insn, cause, at, until)
                at = until


def _given(popped: dict[TokenQueue, Token], stage: Stage, flag: str) -> int:
    """The cycle in which the token that ``flag`` pops was pushed."""
    queue = POPS.get((stage, flag))
    token = popped.get(queue) if queue is not None else None
    return token.pushed if token else BEFORE


def bytes_per_window(
    bursts: Bursts, bus_bytes: int, window: int, cycles: int, *, writes: bool
) -> NDArray[np.float64]:
    """``(ceil(cycles / window),)``: bytes on one data channel in each window of so many cycles.

    The beats of a burst count as evenly spread from its first to its last one, which is exact
    unless the memory stalled inside it.
    """
    chosen = (bursts.stage == Stage.STORE) == writes
    first, last = bursts.first[chosen], bursts.last[chosen]
    rate = bursts.beats[chosen] * bus_bytes / (last - first + 1)
    # The bytes before each window's begin, bursts being ramps from first to last + 1.
    edges = np.minimum(np.arange(-(-cycles // window) + 1) * window, max(cycles, 1))
    total = np.zeros(len(edges))
    for ramp, sign in ((first, 1), (last + 1, -1)):
        order = np.argsort(ramp, kind="stable")
        at, slope = ramp[order], sign * rate[order]
        behind = np.searchsorted(at, edges)
        slopes = np.concatenate(([0.0], np.cumsum(slope)))
        offsets = np.concatenate(([0.0], np.cumsum(slope * at)))
        total += slopes[behind] * edges - offsets[behind]
    return np.diff(total)


def depth(
    entered: NDArray[np.int64], left: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """``(cycles, counts)``: how many are inside from each cycle in which that changes.

    One is inside from its cycle in ``entered`` to the one before that in ``left``; those still
    inside at the end have no cycle in ``left``.
    """
    at = np.concatenate((entered, left))
    change = np.concatenate((np.ones(len(entered), np.int64), -np.ones(len(left), np.int64)))
    cycles, place = np.unique(at, return_inverse=True)
    steps = np.zeros(len(cycles), dtype=np.int64)
    np.add.at(steps, place, change)
    moved = steps != 0
    return cycles[moved], np.cumsum(steps)[moved]
