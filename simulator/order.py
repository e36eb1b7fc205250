"""The order in which three in-order stages and their dependence tokens let a stream run."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vta_isa.enums import Stage, TokenQueue
from vta_isa.errors import DeadlockError
from vta_isa.insn import stages
from vta_isa.machine import Machine

from .checks import name

NO_TOKENS = (0, 0, 0, 0)

# Flag of an instruction on a stage -> the queue it takes a token from, or gives one to. Load has no
# stage before it and store none after it.
POPS = {
    (Stage.LOAD, "pop_next"): TokenQueue.COMPUTE_TO_LOAD,
    (Stage.COMPUTE, "pop_prev"): TokenQueue.LOAD_TO_COMPUTE,
    (Stage.COMPUTE, "pop_next"): TokenQueue.STORE_TO_COMPUTE,
    (Stage.STORE, "pop_prev"): TokenQueue.COMPUTE_TO_STORE,
}
PUSHES = {
    (Stage.LOAD, "push_next"): TokenQueue.LOAD_TO_COMPUTE,
    (Stage.COMPUTE, "push_prev"): TokenQueue.COMPUTE_TO_LOAD,
    (Stage.COMPUTE, "push_next"): TokenQueue.COMPUTE_TO_STORE,
    (Stage.STORE, "push_prev"): TokenQueue.STORE_TO_COMPUTE,
}


FLAGS = ("pop_prev", "pop_next", "push_prev", "push_next")


def _flow_table(wiring: dict[tuple[Stage, str], TokenQueue]) -> NDArray[np.bool_]:
    """``(n, 4) bool``: the queues a stage uses, at 16 times its number + bit i for FLAGS[i]."""
    table = np.zeros((max(Stage) + 1, 1 << len(FLAGS), len(TokenQueue)), dtype=np.bool_)
    for (stage, flag), queue in wiring.items():
        with_flag = np.arange(1 << len(FLAGS)) >> FLAGS.index(flag) & 1 != 0
        table[stage, with_flag, queue] = True
    return table.reshape(-1, len(TokenQueue))


_POPPED, _PUSHED = _flow_table(POPS), _flow_table(PUSHES)


def token_flow(table: NDArray[np.void]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """``(n, 4) bool`` each: the ``TokenQueue``s every instruction pops, and those it pushes."""
    case = stages(table) << len(FLAGS)
    for bit, flag in enumerate(FLAGS):
        case |= (table[flag] != 0).astype(np.int32) << bit
    return _POPPED[case], _PUSHED[case]


def tokens_after(table: NDArray[np.void], tokens: Sequence[int]) -> tuple[int, int, int, int]:
    """Tokens each ``TokenQueue`` holds after the whole stream ran, from ``tokens`` before it."""
    pops, pushes = token_flow(table)
    left = np.asarray(tokens, dtype=np.int64) + pushes.sum(axis=0) - pops.sum(axis=0)
    return int(left[0]), int(left[1]), int(left[2]), int(left[3])


def execution_order(
    table: NDArray[np.void], machine: Machine, tokens: Sequence[int] = NO_TOKENS
) -> NDArray[np.intp]:
    """``(n,)``: instruction numbers in an order the stages and tokens allow, lowest number first.

    That is program order wherever program order is legal. ``tokens`` are those left in the four
    queues by earlier launches. An instruction starts when all its tokens are there, and gives its
    own when done; a queue that holds ``machine.queues.token`` of them stops the stage that pushes.
    The command queues are taken as endless here: how far fetch runs ahead is a matter of timing.
    Raises ``DeadlockError`` where the stages wait for each other.
    """
    pops, pushes = token_flow(table)
    if _program_order_is_legal(pops, pushes, machine.queues.token, tokens):
        return np.arange(len(table))
    return _schedule(table, pops, pushes, machine.queues.token, tokens)


@dataclass(frozen=True)
class HappensBefore:
    """What stages and tokens order: a vector clock for every instruction.

    ``stage (n,)`` is the ``Stage`` of each instruction, ``place (n,)`` its place among those of its
    stage, counted from 1. ``known (n, 3)`` says how many instructions of each stage (column
    ``stage - 1``) are surely done when the instruction starts, whatever the timing.
    """

    stage: NDArray[np.int32]
    place: NDArray[np.int64]
    known: NDArray[np.int64]

    def ordered(self, first: int, second: int) -> bool:
        """Whether ``first`` is surely done when ``second`` starts."""
        return bool(self.known[second, self.stage[first] - 1] >= self.place[first])


def happens_before(
    table: NDArray[np.void], order: NDArray[np.intp], tokens: Sequence[int] = NO_TOKENS
) -> HappensBefore:
    """The order that stages and tokens guarantee; ``order`` is one in which the stream can run.

    Only tokens count, not the stall of a full queue nor the order of fetching. ``tokens`` left by
    earlier launches carry no knowledge about this one.
    """
    stage = stages(table)
    pops, pushes = token_flow(table)
    takes = [np.flatnonzero(row).tolist() for row in pops]
    gives = [np.flatnonzero(row).tolist() for row in pushes]
    nothing = np.zeros(len(Stage), dtype=np.int64)
    in_flight = [deque([nothing] * tokens[queue]) for queue in TokenQueue]
    clock = np.zeros((len(Stage), len(Stage)), dtype=np.int64)  # one row per stage
    place = np.zeros(len(table), dtype=np.int64)
    known = np.zeros((len(table), len(Stage)), dtype=np.int64)
    for number in order.tolist():
        own = stage[number] - 1
        for queue in takes[number]:
            np.maximum(clock[own], in_flight[queue].popleft(), out=clock[own])
        known[number] = clock[own]
        clock[own, own] += 1
        place[number] = clock[own, own]
        for queue in gives[number]:
            in_flight[queue].append(clock[own].copy())
    return HappensBefore(stage, place, known)


def _program_order_is_legal(
    pops: NDArray[np.bool_], pushes: NDArray[np.bool_], capacity: int, tokens: Sequence[int]
) -> bool:
    """Whether one instruction after the other always finds its tokens, and room for its own."""
    after = np.cumsum(pushes, axis=0, dtype=np.int64) - np.cumsum(pops, axis=0, dtype=np.int64)
    after += np.asarray(tokens, dtype=np.int64)
    return bool((after - pushes >= 0).all() and (after <= capacity).all())


def _schedule(
    table: NDArray[np.void],
    pops: NDArray[np.bool_],
    pushes: NDArray[np.bool_],
    capacity: int,
    tokens: Sequence[int],
) -> NDArray[np.intp]:
    """Run the stages against each other, always the one whose next instruction comes first."""
    count = list(tokens)
    stage = stages(table)
    waiting = {s: deque(np.flatnonzero(stage == s).tolist()) for s in Stage}
    takes = [np.flatnonzero(row).tolist() for row in pops]
    gives = [np.flatnonzero(row).tolist() for row in pushes]
    undelivered: dict[Stage, list[int]] = {s: [] for s in Stage}  # done, but the queue is full
    order: list[int] = []

    def deliver() -> None:
        for queues in undelivered.values():
            for queue in [q for q in queues if count[q] < capacity]:
                count[queue] += 1
                queues.remove(queue)

    while any(waiting.values()) or any(undelivered.values()):
        ready = [
            waiting[s][0]
            for s in Stage
            if waiting[s] and not undelivered[s] and all(count[q] for q in takes[waiting[s][0]])
        ]
        if not ready:
            raise _deadlock(table, waiting, takes, undelivered, count, capacity)
        number = min(ready)
        owner = Stage(int(stage[number]))
        waiting[owner].popleft()
        order.append(number)
        for queue in takes[number]:
            count[queue] -= 1
        undelivered[owner] = list(gives[number])
        deliver()
    return np.array(order, dtype=np.intp)


def _deadlock(
    table: NDArray[np.void],
    waiting: dict[Stage, deque[int]],
    takes: list[list[int]],
    undelivered: dict[Stage, list[int]],
    count: Sequence[int],
    capacity: int,
) -> DeadlockError:
    """The head of each stage's queue and the token, or the room for one, that it waits for."""
    lines, stuck = [], []
    for stage in Stage:
        label = stage.name.lower()
        if undelivered[stage]:
            full = ", ".join(_arrow(queue) for queue in undelivered[stage])
            lines.append(f"{label}: cannot push its token {full}: {capacity} are unclaimed")
        elif not waiting[stage]:
            lines.append(f"{label}: has nothing left to do")
        else:
            head = waiting[stage][0]
            stuck.append(head)
            missing = ", ".join(_arrow(queue) for queue in takes[head] if not count[queue])
            lines.append(f"{label}: insn {head} ({name(table[head])}) waits for a token {missing}")
    return DeadlockError(
        "deadlock: no stage can go on\n  "
        + "\n  ".join(lines)
        + "\nevery pop needs a push on the other side; see `vta disasm`",
        insn=min(stuck, default=None),
    )


def _arrow(queue: int) -> str:
    return TokenQueue(queue).name.lower().replace("_to_", " -> ")
