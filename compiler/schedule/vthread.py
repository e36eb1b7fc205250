"""vthread: iterations that run interleaved, each with on-chip buffers of its own."""

from __future__ import annotations

from dataclasses import replace

from vta_isa.errors import ScheduleError

from ..ir.nodes import LoopKind, Program
from .nests import find_loop, replace_loop, require_serial, shared_write, where


def apply(program: Program, stage: str, loop: str) -> Program:
    """Mark a loop as virtual threads.

    for i in range(2): s   →   for i in vthread(2): s

    Threads must not meet: what a thread writes is allocated inside the loop, or is an output of
    which each thread writes elements of its own.
    """
    target = find_loop(program, stage, loop)
    require_serial(stage, target, "vthread")
    outputs = [buffer.name for buffer in program.params]
    shared = shared_write(target, outputs)
    if shared is not None and target.extent > 1:
        reason = (
            "each virtual thread adds to the same elements of it"
            if shared.name in outputs
            else "it is allocated outside the loop"
        )
        raise ScheduleError(
            f"{where(stage, target)}: cannot be virtual threads, they share {shared.name}: {reason}"
            f"; move the loop outside with reorder and compute {shared.name} at it or further in"
        )
    return replace_loop(program, target.var, lambda node: replace(node, kind=LoopKind.VTHREAD))
