"""annotate: a note on a loop that a later pass may read."""

from __future__ import annotations

from dataclasses import replace

from ..ir.nodes import Program
from .nests import find_loop, replace_loop


def apply(program: Program, stage: str, loop: str, key: str, value: object) -> Program:
    """Attach ``key=value`` to a loop; a note of the same key is replaced.

    for i in range(4): s   →   for i in range(4):  # key=value
    """
    target = find_loop(program, stage, loop)
    notes = {**target.annotations, key: value}
    return replace_loop(program, target.var, lambda node: replace(node, annotations=notes))
