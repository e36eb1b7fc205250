"""What a deadlocked machine shows: the head of each queue and what it waits for."""

import numpy as np
from numpy.typing import NDArray

from vta_isa.enums import Stage, TokenQueue
from vta_isa.errors import DeadlockError

from ..checks import name
from . import engine
from .columns import POP_NEXT, POP_PREV, PUSH_NEXT, PUSH_PREV, Columns
from .engine import Rules, State


def deadlock_error(
    table: NDArray[np.void], insns: Columns, rules: Rules, state: State
) -> DeadlockError:
    """The error for a launch in which nothing can happen any more."""
    lines: list[str] = []
    stuck: list[int] = []
    sent = int(state.scalars[engine.DISPATCHED])
    if sent < rules.insns:
        stage = Stage(int(insns.stage[sent]))
        lines.append(
            f"fetch: {_insn(table, sent)} has no room in the {stage.name.lower()} command queue "
            f"({rules.command_depth} instructions)"
        )
    for stage in Stage:
        begin, end = (int(state.first[i]) for i in (stage, stage + 1))
        mine = np.asarray(state.order)[begin:end]
        started = int(state.started[stage])
        label = f"{stage.name.lower()}:"
        if state.phase[stage] == engine.PUSHING:
            number = int(mine[started - 1])
            full = _queues(insns, number, stage, state, rules, pops=False)
            lines.append(
                f"{label} {_insn(table, number)} is done but cannot push: "
                f"{_listed(full)} holds {rules.token_depth} tokens"
            )
            stuck.append(number)
        elif started < int(state.sent[stage]):
            number = int(mine[started])
            missing = _queues(insns, number, stage, state, rules, pops=True)
            lines.append(f"{label} {_insn(table, number)} waits for a token from {_listed(missing)}")
            stuck.append(number)
        else:
            left = len(mine) - started
            lines.append(f"{label} queue empty" + (f", {left} not dispatched yet" if left else ""))
    return DeadlockError(
        "the stream deadlocks; "
        + "; ".join(lines)
        + "; give each pop a push that can come before it",
        insn=min(stuck, default=sent),
    )


def _insn(table: NDArray[np.void], number: int) -> str:
    return f"insn {number} ({name(table[number])})"


def _listed(queues: list[str]) -> str:
    return " and ".join(queues)


def _queues(
    insns: Columns, number: int, stage: Stage, state: State, rules: Rules, *, pops: bool
) -> list[str]:
    """Names of the queues an instruction finds empty (or, not ``pops``, full)."""
    if pops:
        wiring = ((POP_PREV, engine.FROM_PREV), (POP_NEXT, engine.FROM_NEXT))
    else:
        wiring = ((PUSH_PREV, engine.TO_PREV), (PUSH_NEXT, engine.TO_NEXT))
    blocked = 0 if pops else rules.token_depth
    found = []
    for flag, queues in wiring:
        queue = queues[stage]
        if insns.flags[number] & flag:
            held = int(state.pushed[queue]) - int(state.popped[queue])
            if held == blocked:
                found.append(TokenQueue(queue).name.lower())
    return found
