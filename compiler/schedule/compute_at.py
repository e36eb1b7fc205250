"""compute_at: a stage inside a loop of its consumer, for what one iteration reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import cast

from vta_isa.errors import ScheduleError

from ..ir.affine import Ranges, interval
from ..ir.build import ZERO, add, block, const, less, less_equal, seq, sub, unblock
from ..ir.nodes import (
    Alloc,
    Buffer,
    Const,
    Expr,
    For,
    If,
    Load,
    Produce,
    Program,
    Region,
    Seq,
    Stmt,
    Store,
    TensorCall,
    Var,
)
from ..ir.simplify import simplify
from ..ir.span import Span, span
from ..ir.visit import (
    Node,
    children,
    loops,
    map_children,
    read_operands,
    statements,
    substitute,
    walk,
)
from .naive import INIT
from .nests import (
    enclosing_loops,
    find_buffer,
    find_loop,
    find_stage,
    guard,
    is_param,
    nests_of,
    own,
    ranges_of,
    readers,
    reads_of,
    replace_loop,
    tidy,
    where,
)


@dataclass(frozen=True)
class Axis:
    """What one iteration of the loop needs of one axis: ``extent`` elements from ``start`` on.

    ``test_low`` and ``test_high``: some of them may lie before the first or after the last
    element of the tensor; those are not computed (and never read).
    """

    start: Expr
    extent: int
    test_low: bool = False
    test_high: bool = False


def apply(program: Program, stage: str, consumer: str, loop: str) -> Program:
    """Compute ``stage`` at the start of each iteration of ``consumer``'s loop.

    alloc a[8]                            for i_o in range(2):
    for x in range(8): a[x] = f(x)   →        alloc a[4]
    for i_o in range(2):                      for x in range(4): a[x] = f(i_o * 4 + x)
        for i_i in range(4):                  for i_i in range(4):
            b = g(a[i_o * 4 + i_i])               b = g(a[i_i])

    The nest computes the box that the loops further in read (the union over all readers), and its
    buffer shrinks to that box. Parts of the box outside the tensor are skipped by a test. The
    initial values of a reduction move along.
    """
    nests = _movable(program, stage)
    buffer = find_buffer(program, stage)
    target = find_loop(program, consumer, loop)
    _check_place(program, stage, consumer, target, nests)
    without = replace(program, body=remove_stage(program.body, {n.name for n in nests}, stage))
    ranges = ranges_of(program.body)
    place = next(n for n in loops(without.body) if n.var == target.var)
    axes = _needed(buffer, place, ranges)
    shrunk = replace(buffer, shape=tuple(axis.extent for axis in axes))
    moved = [_restrict(nest, buffer, axes) for nest in nests]

    def rewrite(node: For) -> Stmt:
        return replace(node, body=_insert(node.body, shrunk, moved))

    placed = replace_loop(without, target.var, rewrite)
    body = _rebase(placed.body, buffer, shrunk, [axis.start for axis in axes], ranges)
    return tidy(replace(placed, body=body))


# -- is it legal ------------------------------------------------------------------------------


def _movable(program: Program, stage: str) -> list[Produce]:
    find_stage(program, stage)
    if stage.endswith(INIT):
        raise ScheduleError(
            f"{stage}: the initial values move with their reduction; "
            f"compute {stage.removesuffix(INIT)} at that loop instead"
        )
    if is_param(program, stage):
        raise ScheduleError(
            f"{stage}: cannot be computed at a loop, it is an output of {program.name} and every "
            f"element of it is wanted; cache_write gives a stage that can move"
        )
    return nests_of(program, stage)


def _check_place(
    program: Program, stage: str, consumer: str, target: For, nests: list[Produce]
) -> None:
    here = where(consumer, target)
    if any(node is target for nest in nests for node in statements(nest)):
        raise ScheduleError(f"{stage}: cannot be computed at {here}, a loop inside {stage} itself")
    if not reads_of(target.body, stage):
        names = readers(program, stage)
        raise ScheduleError(
            f"{stage}: cannot be computed at {here}, nothing in that loop reads it; "
            f"it is read by {', '.join(names) or 'no stage'}"
        )
    outside = [
        name
        for name in readers(program, stage)
        if not any(isinstance(n, Produce) and n.name == name for n in statements(target))
        and not _encloses(find_stage(program, name), target, stage)
    ]
    if outside:
        raise ScheduleError(
            f"{stage}: cannot be computed at {here}, {', '.join(outside)} reads it outside that "
            f"loop; compute {outside[0]} at that loop first"
        )
    around_nest = enclosing_loops(program.body, lambda n: any(n is nest for nest in nests)) or []
    around_loop = enclosing_loops(program.body, lambda n: n is target) or []
    if [n.var for n in around_nest] != [n.var for n in around_loop[: len(around_nest)]]:
        raise ScheduleError(
            f"{stage}: cannot be computed at {here}, it is computed inside "
            f"{around_nest[-1].var.name} already and only moves further in"
        )


def _encloses(reader: Produce, target: For, stage: str) -> bool:
    """Whether all that ``reader`` itself reads of ``stage`` is read inside its loop ``target``."""

    def visit(node: Node) -> bool:
        if node is target:
            return True
        if isinstance(node, Produce) and node is not reader:
            return True  # other readers are looked at on their own
        if isinstance(node, Load) and node.buffer.name == stage:
            return False
        if isinstance(node, TensorCall):
            return all(r.buffer.name != stage for r in read_operands(node))
        return all(visit(child) for child in children(node))

    return visit(reader)


# -- what is needed ---------------------------------------------------------------------------


def _accesses(node: Node, name: str) -> Iterator[tuple[tuple[Expr, ...], tuple[int, ...]]]:
    """Start and shape of every box that is read of a buffer."""
    for n in walk(node):
        if isinstance(n, Load) and n.buffer.name == name:
            yield n.indices, (1,) * len(n.indices)
        elif isinstance(n, TensorCall):
            for region in read_operands(n):
                if region.buffer.name == name:
                    yield region.start, region.shape


def _needed(buffer: Buffer, place: For, ranges: Ranges) -> list[Axis]:
    """The box of ``buffer`` that one iteration of ``place`` reads."""
    moving = {node.var for node in loops(place.body)}
    spans: list[list[Span | None]] = [[] for _ in buffer.shape]
    for start, shape in _accesses(place.body, buffer.name):
        for axis, (low, size) in enumerate(zip(start, shape, strict=True)):
            found = span(low, moving, ranges)
            spans[axis].append(found and Span(found.low, found.width + size - 1))
    return [
        _union(found, extent, ranges) for found, extent in zip(spans, buffer.shape, strict=True)
    ]


def _union(spans: list[Span | None], extent: int, ranges: Ranges) -> Axis:
    """One interval around all ``spans``; the whole axis where that is not known to be shorter."""
    whole = Axis(ZERO, extent)
    first = spans[0]
    if first is None:
        return whole
    low, high = 0, first.width
    for other in spans[1:]:
        if other is None:
            return whole
        offset = interval(simplify(sub(other.low, first.low), ranges), ranges)
        if offset is None:
            return whole
        low, high = min(low, offset[0]), max(high, offset[1] + other.width)
    start = simplify(add(first.low, const(low)), ranges)
    width = high - low
    if isinstance(start, Const):
        begin, end = max(int(start.value), 0), min(int(start.value) + width, extent)
        return Axis(const(begin), end - begin) if begin < end else whole
    if width >= extent:
        return whole
    bounds = interval(start, ranges)
    if bounds is None:
        return Axis(start, width, test_low=True, test_high=True)
    return Axis(start, width, bounds[0] < 0, bounds[1] + width > extent)


# -- the rewriting ----------------------------------------------------------------------------


def remove_stage(stmt: Stmt, nests: set[str], buffer: str) -> Stmt:
    def visit(node: Node) -> Node:
        if isinstance(node, Expr):
            return node
        if isinstance(node, Produce) and node.name in nests:
            return Seq(())
        node = map_children(node, visit)
        if isinstance(node, Alloc) and node.buffer.name == buffer:
            return node.body
        return node

    return cast(Stmt, visit(stmt))


def _restrict(nest: Produce, buffer: Buffer, axes: list[Axis]) -> Produce:
    """The nest over the needed box only: its loop over a cut axis runs from the box's start.

    for x in range(8): a[x] = f(x)   →   for x in range(4): a[start + x] = f(start + x)
    """
    indices, shape = _destination(nest, buffer)
    extents = {loop.var: loop.extent for loop in loops(nest)}
    cut: dict[Var, Axis] = {}
    for number, (axis, index) in enumerate(zip(axes, indices, strict=True)):
        if axis.start == ZERO and axis.extent == buffer.shape[number]:
            continue
        whole = isinstance(index, Var) and extents[index] == buffer.shape[number]
        if not isinstance(index, Var) or not whole or index in cut or shape[number] != 1:
            raise ScheduleError(
                f"{nest.name}: cannot compute only {axis.extent} of {buffer.shape[number]} "
                f"elements of axis {number} of {buffer.name}, which is not written by one loop of "
                "that extent; call compute_at before the axis is split, fused or tensorized"
            )
        cut[index] = axis
    body = substitute(nest.body, {var: add(axis.start, var) for var, axis in cut.items()})

    def resize(node: Node) -> Node:
        if isinstance(node, Expr):
            return node
        node = map_children(node, resize)
        if isinstance(node, For) and node.var in cut:
            return replace(node, extent=cut[node.var].extent)
        return node

    body = cast(Stmt, resize(body))
    # One test per axis: joined, the loop furthest in would decide where all of them are made, and
    # stages computed further out would run for elements that do not exist.
    for var, axis in cut.items():
        index = add(axis.start, var)
        if axis.test_low:
            body = guard(body, less_equal(ZERO, index))
        if axis.test_high:
            body = guard(body, less(index, const(buffer.shape[indices.index(var)])))
    return Produce(nest.name, body)


def _destination(nest: Produce, buffer: Buffer) -> tuple[tuple[Expr, ...], tuple[int, ...]]:
    """Start and shape of what the nest's innermost statement writes."""
    for node in own(nest):
        if isinstance(node, Store) and node.buffer.name == buffer.name:
            return node.indices, (1,) * len(node.indices)
        if isinstance(node, TensorCall) and node.operands[0].buffer.name == buffer.name:
            return node.operands[0].start, node.operands[0].shape
    raise AssertionError(f"{nest.name} does not write {buffer.name}")


def _insert(body: Stmt, buffer: Buffer, nests: list[Produce]) -> Stmt:
    """``nests`` right before the first statement of ``body`` that reads ``buffer``."""
    buffers, stmts = unblock(body)
    if len(stmts) == 1 and isinstance(stmts[0], If) and stmts[0].orelse is None:
        test = stmts[0]
        if not reads_of(test.cond, buffer.name):
            inner = _insert(test.then, buffer, nests)
            return block(buffers, [replace(test, then=inner)])
    first = next(i for i, stmt in enumerate(stmts) if reads_of(stmt, buffer.name))
    return block([*buffers, buffer], [seq([*stmts[:first], *nests, *stmts[first:]])])


def _rebase(stmt: Stmt, buffer: Buffer, shrunk: Buffer, starts: list[Expr], ranges: Ranges) -> Stmt:
    """Every access to ``buffer`` relative to the start of the box that ``shrunk`` holds."""

    def shift(indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        pairs = zip(indices, starts, strict=True)
        return tuple(simplify(sub(index, start), ranges) for index, start in pairs)

    def visit(node: Node) -> Node:
        node = map_children(node, visit)
        if isinstance(node, (Load, Store)) and node.buffer.name == buffer.name:
            return replace(node, buffer=shrunk, indices=shift(node.indices))
        if isinstance(node, TensorCall):
            operands = tuple(
                Region(shrunk, shift(r.start), r.shape) if r.buffer.name == buffer.name else r
                for r in node.operands
            )
            return replace(node, operands=operands)
        return node

    return cast(Stmt, visit(stmt))
