"""parallel: the iterations of a loop on the threads of the host."""

from __future__ import annotations

from dataclasses import replace

from vta_isa.errors import ScheduleError

from ..ir.nodes import LoopKind, Program
from .nests import find_loop, replace_loop, require_serial, shared_write, where, written_names


def apply(program: Program, stage: str, loop: str) -> Program:
    """Mark a loop whose iterations write different elements.

    for i in range(8): s   →   for i in parallel(8): s
    """
    target = find_loop(program, stage, loop)
    require_serial(stage, target, "parallel")
    shared = shared_write(target, written_names(target.body))
    if shared is not None and target.extent > 1:
        raise ScheduleError(
            f"{where(stage, target)}: cannot be parallel, its iterations write the same elements "
            f"of {shared.name}; choose a loop over an axis of {shared.name}, or compute "
            f"{shared.name} inside the loop"
        )
    return replace_loop(program, target.var, lambda node: replace(node, kind=LoopKind.PARALLEL))
