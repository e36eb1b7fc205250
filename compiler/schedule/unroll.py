"""unroll: the iterations of a loop written out."""

from __future__ import annotations

from dataclasses import replace

from ..ir.nodes import LoopKind, Program
from .nests import find_loop, replace_loop, require_serial


def apply(program: Program, stage: str, loop: str) -> Program:
    """Mark a loop to be unrolled.

    for i in range(4): s   →   for i in unroll(4): s
    """
    target = find_loop(program, stage, loop)
    require_serial(stage, target, "unroll")
    return replace_loop(program, target.var, lambda node: replace(node, kind=LoopKind.UNROLL))
