"""tile: two nested loops into blocks."""

from __future__ import annotations

from ..ir.nodes import Program
from . import reorder, split


def apply(program: Program, stage: str, x: str, y: str, x_factor: int, y_factor: int) -> Program:
    """Split two loops and put the two inner ones inside.

    for x: for y: s   →   for x_o: for y_o: for x_i: for y_i: s
    """
    program = split.apply(program, stage, x, factor=x_factor)
    program = split.apply(program, stage, y, factor=y_factor)
    return reorder.apply(program, stage, f"{x}_o", f"{y}_o", f"{x}_i", f"{y}_i")
