"""vectorize: the iterations of an innermost loop as lanes of the host's vectors."""

from __future__ import annotations

from dataclasses import replace

from vta_isa.errors import ScheduleError

from ..ir.nodes import LoopKind, Program
from ..ir.visit import loops
from .nests import find_loop, replace_loop, require_serial, shared_write, where, written_names


def apply(program: Program, stage: str, loop: str) -> Program:
    """Mark an innermost loop whose iterations write different elements.

    for i in range(8): s   →   for i in vectorize(8): s
    """
    target = find_loop(program, stage, loop)
    require_serial(stage, target, "vectorize")
    inner = loops(target.body)
    if inner:
        raise ScheduleError(
            f"{where(stage, target)}: cannot be vectorized, it holds the loop {inner[0].var.name}; "
            "only an innermost loop can, reorder it inside"
        )
    shared = shared_write(target, written_names(target.body))
    if shared is not None and target.extent > 1:
        raise ScheduleError(
            f"{where(stage, target)}: cannot be vectorized, its iterations write the same elements "
            f"of {shared.name}; vectorize a loop over an axis of {shared.name}"
        )
    return replace_loop(program, target.var, lambda node: replace(node, kind=LoopKind.VECTORIZE))
