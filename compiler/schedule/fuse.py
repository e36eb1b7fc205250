"""fuse: two nested loops into one."""

from __future__ import annotations

from vta_isa.errors import ScheduleError

from ..ir.build import floordiv, floormod
from ..ir.nodes import For, Program, Stmt
from ..ir.visit import substitute
from .nests import find_loop, fresh_var, replace_loop, require_serial, short_name, tidy, where


def apply(program: Program, stage: str, a: str, b: str) -> Program:
    """Fuse loop ``a`` with the loop ``b`` directly inside it.

    for a in range(2): for b in range(3): s[a, b]   →   for a_b in range(6): s[a_b // 3, a_b % 3]
    """
    outer, inner = find_loop(program, stage, a), find_loop(program, stage, b)
    for loop in (outer, inner):
        require_serial(stage, loop, "fuse")
    if not isinstance(outer.body, For) or outer.body.var != inner.var:
        inside = outer.body
        legal = (
            f"the loop directly inside it is {short_name(stage, inside.var)}"
            if isinstance(inside, For)
            else "it has no loop directly inside it"
        )
        raise ScheduleError(
            f"{where(stage, outer)}: cannot fuse with {where(stage, inner)}, which is not directly "
            f"inside it; {legal}; reorder first"
        )
    fused = fresh_var(program, f"{stage}.{a}_{b}")

    def rewrite(node: For) -> Stmt:
        size = inner.extent
        values = {outer.var: floordiv(fused, size), inner.var: floormod(fused, size)}
        return For(fused, outer.extent * size, substitute(inner.body, values))

    return tidy(replace_loop(program, outer.var, rewrite))
