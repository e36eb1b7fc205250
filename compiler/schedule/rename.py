"""rename: another name for a loop."""

from __future__ import annotations

from dataclasses import replace

from vta_isa.errors import ScheduleError

from ..ir.nodes import Program
from ..ir.visit import rename_loops
from .nests import find_loop, fresh_var


def apply(program: Program, stage: str, loop: str, name: str) -> Program:
    """Call a loop ``name`` from now on.

    for y.i: s[y.i]   →   for y.name: s[y.name]
    """
    target = find_loop(program, stage, loop)
    if not name.isidentifier():
        raise ScheduleError(f"{stage}.{loop}: {name!r} is no name for a loop; use an identifier")
    new = fresh_var(program, f"{stage}.{name}")
    return replace(program, body=rename_loops(program.body, {target.var: new}))
