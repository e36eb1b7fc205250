"""compute_inline: the expression of a stage wherever the stage is read."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from vta_isa.errors import ScheduleError

from ..ir.nodes import Const, Expr, For, Load, Produce, Program, Stmt, Store, TensorCall, Var
from ..ir.visit import Node, map_children, read_operands, substitute, walk
from .compute_at import remove_stage
from .naive import INIT
from .nests import find_buffer, find_stage, is_param, nests_of, readers, tidy


def apply(program: Program, stage: str) -> Program:
    """Compute each element of ``stage`` where it is read; its nest and its buffer go.

    for x: a[x] = f(x)
    for y: b[y] = g(a[y + 1])   →   for y: b[y] = g(f(y + 1))
    """
    nest = find_stage(program, stage)
    if is_param(program, stage):
        raise ScheduleError(f"{stage}: an output of {program.name} cannot be inlined")
    if len(nests_of(program, stage)) > 1 or stage.endswith(INIT):
        raise ScheduleError(f"{stage}: a reduction cannot be inlined; compute_at moves it")
    variables, value = _definition(program, nest)
    _check_readers(program, stage)

    def visit(node: Node) -> Node:
        node = map_children(node, visit)
        if isinstance(node, Load) and node.buffer.name == stage:
            pairs = zip(variables, node.indices, strict=True)
            return substitute(value, {var: at for var, at in pairs if var is not None})
        return node

    body = remove_stage(program.body, {stage}, stage)
    return tidy(replace(program, body=cast(Stmt, visit(body))))


def _definition(program: Program, nest: Produce) -> tuple[list[Var | None], Expr]:
    """The variable of each axis (None: an axis of extent 1) and the value stored there."""
    body = nest.body
    while isinstance(body, For):
        body = body.body
    shape = find_buffer(program, nest.name).shape
    if isinstance(body, Store) and body.buffer.name == nest.name:
        axes = [index if isinstance(index, Var) else None for index in body.indices]
        unit = [
            isinstance(index, Const) and size == 1
            for index, size in zip(body.indices, shape, strict=True)
        ]
        named = [axis for axis in axes if axis is not None]
        if len(set(named)) == len(named) and all(
            axis is not None or one for axis, one in zip(axes, unit, strict=True)
        ):
            return axes, body.value
    raise ScheduleError(
        f"{nest.name}: only a plain nest, one loop per axis around one assignment, can be inlined; "
        "call compute_inline before its loops are split, fused, tensorized or hold other stages"
    )


def _check_readers(program: Program, stage: str) -> None:
    for node in walk(program.body):
        if isinstance(node, TensorCall):
            if any(region.buffer.name == stage for region in read_operands(node)):
                raise ScheduleError(
                    f"{stage}: read by the tensorized {node.intrinsic.name}, it cannot be inlined; "
                    "inline it before tensorize"
                )
    if not readers(program, stage):
        raise ScheduleError(f"{stage}: no stage reads it, so it cannot be inlined")
