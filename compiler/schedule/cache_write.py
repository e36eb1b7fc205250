"""cache_write: a tensor computed in another memory and then copied to where it was."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from vta_isa.errors import ScheduleError

from ..ir.build import seq
from ..ir.nodes import Buffer, LoopKind, Produce, Program, Stmt, Var
from ..ir.visit import rename_loops, replace_buffers
from . import copies
from .naive import INIT
from .nests import find_buffer, nests_of, replace_stage, short_name, stage_loops, tidy, where


def apply(program: Program, tensor: str, scope: str, axes: Sequence[str]) -> Program:
    """Compute ``tensor`` as the new stage ``tensor.scope``; ``tensor`` becomes a copy of it.

                                       alloc y.acc in acc
    produce y: for i: y[i] = f(i)  →   produce y.acc: for i: y.acc[i] = f(i)
                                       produce y: for i: y[i] = y.acc[i]
    """
    buffer = find_buffer(program, tensor)
    nests = nests_of(program, tensor)
    if not nests:
        raise ScheduleError(f"{tensor}: an input is not computed; use cache_read")
    for nest in nests:
        _require_no_threads(nest)
    cache = copies.buffer_in(program, buffer, scope)
    copy = copies.nest(program, cache, buffer, buffer, axes)
    body = program.body
    for nest in nests:
        moved = _renamed(nest, buffer, cache)
        last = nest.name == tensor
        made: list[Stmt] = [moved, copy] if last else [moved]
        body = replace_stage(body, nest.name, _always(seq(made)))
    return tidy(replace(program, body=copies.allocate_beside(program, body, tensor, cache)))


def _require_no_threads(nest: Produce) -> None:
    for loop in stage_loops(nest):
        if loop.kind is LoopKind.VTHREAD:
            raise ScheduleError(
                f"{where(nest.name, loop)}: its virtual threads would share the copy; "
                "call cache_write before vthread"
            )


def _always(stmt: Stmt) -> Callable[[Produce], Stmt]:
    return lambda _: stmt


def _renamed(nest: Produce, buffer: Buffer, cache: Buffer) -> Produce:
    """The nest with the cache's name in its loops and its accesses."""
    name = cache.name + (INIT if nest.name.endswith(INIT) else "")
    names = {
        loop.var: Var(f"{name}.{short_name(nest.name, loop.var)}") for loop in stage_loops(nest)
    }
    body = rename_loops(replace_buffers(nest.body, {buffer.name: cache}), names)
    return Produce(name, body)
