"""cache_read: a copy of a tensor in another memory, for some of its readers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from vta_isa.errors import ScheduleError

from ..ir.build import seq
from ..ir.nodes import (
    Alloc,
    Buffer,
    Load,
    Produce,
    Program,
    Region,
    Stmt,
    TensorCall,
)
from ..ir.visit import Node, read_operands
from . import copies
from .naive import INIT
from .nests import (
    find_buffer,
    find_stage,
    map_own,
    nests_of,
    own,
    readers,
    reads_of,
    replace_stage,
    tidy,
)


def apply(
    program: Program, tensor: str, scope: str, consumers: Sequence[str], axes: Sequence[str]
) -> Program:
    """Copy ``tensor`` to ``scope`` and let ``consumers`` read the copy, ``tensor.scope``.

                                     alloc w.wgt in wgt
                                     produce w.wgt: for i: w.wgt[i] = w[i]
    produce y: ... w[i] ...      →   produce y: ... w.wgt[i] ...
    """
    buffer = find_buffer(program, tensor)
    copy = copies.buffer_in(program, buffer, scope)
    if not consumers:
        raise ScheduleError(f"{tensor}: cache_read needs at least one consumer")
    for consumer in consumers:
        shallow = (n for n in own(find_stage(program, consumer)))
        if consumer in (tensor, tensor + INIT) or not any(
            reads_of(n, tensor) for n in shallow if isinstance(n, (Load, TensorCall))
        ):
            raise ScheduleError(
                f"{tensor}: {consumer} does not read it; "
                f"it is read by {', '.join(readers(program, tensor)) or 'no stage'}"
            )
    body = program.body
    for consumer in consumers:
        body = replace_stage(body, consumer, lambda nest: map_own(nest, _reader(tensor, copy)))
    nest = copies.nest(program, buffer, copy, buffer, axes)
    return tidy(replace(program, body=_place(program, body, tensor, copy, nest)))


def _reader(tensor: str, copy: Buffer) -> Callable[[Node], Node]:
    def change(node: Node) -> Node:
        if isinstance(node, Load) and node.buffer.name == tensor:
            return replace(node, buffer=copy)
        if isinstance(node, TensorCall):
            read = read_operands(node)
            operands = tuple(
                Region(copy, r.start, r.shape) if r.buffer.name == tensor and r in read else r
                for r in node.operands
            )
            return replace(node, operands=operands)
        return node

    return change


def _place(program: Program, body: Stmt, tensor: str, copy: Buffer, produce: Produce) -> Stmt:
    """The copy right after the nest that computes ``tensor``; at the start for an input."""
    if not nests_of(program, tensor):
        return Alloc(copy, _after_allocations(body, produce))
    body = replace_stage(body, tensor, lambda made: seq([made, produce]))
    return copies.allocate_beside(program, body, tensor, copy)


def _after_allocations(body: Stmt, first: Stmt) -> Stmt:
    if isinstance(body, Alloc):
        return replace(body, body=_after_allocations(body.body, first))
    return seq([first, body])
