"""set_scope: which memory a tensor lives in."""

from __future__ import annotations

from dataclasses import replace

from vta_isa.errors import ScheduleError

from ..ir.nodes import Program, Scope
from ..ir.visit import replace_buffers
from .nests import find_buffer, is_param, unknown


def apply(program: Program, stage: str, scope: str) -> Program:
    """Put the buffer of ``stage`` into ``scope``.

    alloc a: int32[4]   →   alloc a: int32[4] in acc
    """
    buffer = find_buffer(program, stage)
    try:
        kind = Scope(scope)
    except ValueError:
        raise ScheduleError(f"{stage}: {unknown('scope', scope, list(Scope))}") from None
    if is_param(program, stage):
        raise ScheduleError(
            f"{stage}: a parameter of {program.name} stays in {Scope.GLOBAL}; "
            f"copy it with cache_read or cache_write"
        )
    moved = replace(buffer, scope=kind)
    return replace(program, body=replace_buffers(program.body, {stage: moved}))
