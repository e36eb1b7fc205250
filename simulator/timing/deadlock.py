"""What a deadlocked machine shows: the head of each queue and what it waits for."""

import numpy as np
from numpy.typing import NDArray

from vta_isa.enums import Stage, TokenQueue
from vta_isa.errors import DeadlockError

from ..checks import name
from . import layout
from .layout import Rules


def deadlock_error(
    table: NDArray[np.void], insns: NDArray[np.int64], rules: Rules, state: NDArray[np.int64]
) -> DeadlockError:
    """The error for a launch in which nothing can happen any more."""
    lines: list[str] = []
    stuck: list[int] = []
    sent = int(state[layout.DISPATCHED])
    if sent < rules.insns:
        stage = Stage(int(insns[sent, layout.STAGE]))
        lines.append(
            f"fetch: {_insn(table, sent)} has no room in the {stage.name.lower()} command queue "
            f"({rules.command_depth} insns)"
        )
    for stage in Stage:
        head = int(state[layout.HEAD + stage])
        label = f"{stage.name.lower()}:"
        if state[layout.PHASE + stage] == layout.PUSHING:
            full = _queues(insns, head, stage, state, rules, pops=False)
            lines.append(
                f"{label} {_insn(table, head)} is done but cannot push: "
                f"{_listed(full)} holds {rules.token_depth} token{'s' * (rules.token_depth > 1)}"
            )
            stuck.append(head)
        elif state[layout.STARTED + stage] < state[layout.SENT + stage]:
            missing = _queues(insns, head, stage, state, rules, pops=True)
            lines.append(f"{label} {_insn(table, head)} waits for a token from {_listed(missing)}")
            stuck.append(head)
        else:
            left = int(state[layout.COUNT + stage] - state[layout.STARTED + stage])
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
    insns: NDArray[np.int64],
    number: int,
    stage: Stage,
    state: NDArray[np.int64],
    rules: Rules,
    *,
    pops: bool,
) -> list[str]:
    """Names of the queues an instruction finds empty (or, not ``pops``, full)."""
    if pops:
        wiring = ((layout.POP_PREV, layout.FROM_PREV), (layout.POP_NEXT, layout.FROM_NEXT))
    else:
        wiring = ((layout.PUSH_PREV, layout.TO_PREV), (layout.PUSH_NEXT, layout.TO_NEXT))
    blocked = 0 if pops else rules.token_depth
    found = []
    for flag, queues in wiring:
        queue = queues[stage]
        if insns[number, layout.FLAGS] & flag:
            held = int(state[layout.PUSHED + queue]) - int(state[layout.POPPED + queue])
            if held == blocked:
                found.append(TokenQueue(queue).name.lower())
    return found
