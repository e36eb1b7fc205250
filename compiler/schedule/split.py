"""split: one loop into two nested ones."""

from __future__ import annotations

from vta_isa.errors import ScheduleError

from ..ir.build import add, const, less, mul
from ..ir.nodes import For, Program, Stmt
from ..ir.visit import substitute
from .nests import find_loop, fresh_var, guard, replace_loop, require_serial, tidy, where


def apply(
    program: Program,
    stage: str,
    loop: str,
    *,
    factor: int | None = None,
    nparts: int | None = None,
) -> Program:
    """Split a loop by ``factor`` (the extent of the inner loop) or ``nparts`` (of the outer one).

    for i in range(7): s[i]   →   for i_o in range(2):
                                      for i_i in range(4):
                                          if i_o * 4 + i_i < 7: s[i_o * 4 + i_i]

    The test is there only where the extent is no multiple.
    """
    target = find_loop(program, stage, loop)
    outer_extent, inner_extent = extents(stage, target, factor, nparts)
    require_serial(stage, target, "split")
    outer = fresh_var(program, f"{stage}.{loop}_o")
    inner = fresh_var(program, f"{stage}.{loop}_i")
    index = add(mul(outer, const(inner_extent)), inner)

    def rewrite(node: For) -> Stmt:
        body = substitute(node.body, {node.var: index})
        if outer_extent * inner_extent != node.extent:
            body = guard(body, less(index, const(node.extent)))
        return For(outer, outer_extent, For(inner, inner_extent, body))

    return tidy(replace_loop(program, target.var, rewrite))


def extents(stage: str, loop: For, factor: int | None, nparts: int | None) -> tuple[int, int]:
    """The extents of the outer and the inner loop."""
    given = factor if factor is not None else nparts
    if (factor is None) == (nparts is None):
        raise ScheduleError(f"{where(stage, loop)}: split takes factor= or nparts=, one of the two")
    if isinstance(given, bool) or not isinstance(given, int) or given < 1:
        name = "factor" if factor is not None else "nparts"
        raise ScheduleError(
            f"{where(stage, loop)}: cannot split with {name} = {given!r}; use an integer from 1"
        )
    other = -(-loop.extent // given)
    return (other, given) if factor is not None else (given, other)
