"""What cache_read and cache_write share: the buffer of a copy, its place and its nest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from vta_isa.errors import ScheduleError

from ..ir.build import ZERO, sub
from ..ir.nodes import (
    Alloc,
    Binary,
    BinaryOp,
    Buffer,
    Const,
    Expr,
    For,
    Load,
    Produce,
    Program,
    Scope,
    Stmt,
    Store,
    TensorCall,
    Var,
)
from ..ir.simplify import simplify
from ..ir.visit import Node, map_children, substitute, variables
from .nests import guard, is_param, main_path, nests_of, stage_names, unknown


def buffer_in(program: Program, buffer: Buffer, scope: str) -> Buffer:
    """The buffer of a copy of ``buffer`` in ``scope``, named tensor.scope."""
    name = f"{buffer.name}.{scope}"
    try:
        kind = Scope(scope)
    except ValueError:
        raise ScheduleError(f"{buffer.name}: {unknown('scope', scope, list(Scope))}") from None
    if name in stage_names(program):
        raise ScheduleError(f"{buffer.name}: there is a stage {name} already")
    return replace(buffer, name=name, scope=kind)


def allocate_beside(program: Program, body: Stmt, tensor: str, copy: Buffer) -> Stmt:
    """``copy`` allocated where ``tensor`` is; outermost for a parameter."""
    if is_param(program, tensor):
        return Alloc(copy, body)

    def visit(node: Node) -> Node:
        if isinstance(node, Expr):
            return node
        if isinstance(node, Alloc) and node.buffer.name == tensor:
            return replace(node, body=Alloc(copy, node.body))
        return map_children(node, visit)

    return cast(Stmt, visit(body))


def nest(
    program: Program, source: Buffer, target: Buffer, computed: Buffer, axes: Sequence[str]
) -> Produce:
    """The stage that copies ``source`` to ``target``, element by element.

    ``computed`` is the tensor that has a nest in ``program``, one of the two. Elements which that
    nest skips, because a box that compute_at left reaches past the tensor, are not copied either.
    """
    at = tuple(Var(f"{target.name}.{axis}") for axis in axes)
    body: Stmt = Store(target, at, Load(source, at))
    for var, extent in reversed(list(zip(at, target.shape, strict=True))):
        body = For(var, extent, body)
    for test in _tests(program, computed, at):
        body = guard(body, test)
    return Produce(target.name, body)


def _tests(program: Program, tensor: Buffer, at: Sequence[Var]) -> list[Expr]:
    """The tests under which ``tensor`` is computed, put in terms of the element ``at``."""
    nests = nests_of(program, tensor.name)
    if not nests:
        return []
    path = main_path(nests[-1])
    stmt = path.stmt
    if isinstance(stmt, Store):
        indices = stmt.indices
    else:
        assert isinstance(stmt, TensorCall)
        indices = stmt.operands[0].start
    axis_of = {index: var for index, var in zip(indices, at, strict=True) if isinstance(index, Var)}
    own = {loop.var for loop in path.loops}
    tests: list[Expr] = []
    for test in path.tests:
        moved = substitute(test, axis_of)
        if not (variables(test) & own) - axis_of.keys():
            tests.append(moved)
        elif not _always_holds(test, indices, tensor):
            raise ScheduleError(
                f"{tensor.name}: cannot be copied, it is computed in part by loops that are split "
                "or fused; call cache_read and cache_write before split and compute_at"
            )
    return tests


def _always_holds(test: Expr, indices: tuple[Expr, ...], tensor: Buffer) -> bool:
    """Whether ``test`` only keeps an index inside the tensor, as a split that does not divide."""
    match test:
        case Binary(BinaryOp.LT, index, Const(limit)):
            return any(
                simplify(sub(index, written)) == ZERO and limit >= size
                for written, size in zip(indices, tensor.shape, strict=True)
            )
    return False
