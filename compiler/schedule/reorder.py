"""reorder: the same perfectly nested loops in another order."""

from __future__ import annotations

from dataclasses import replace

from vta_isa.errors import ScheduleError

from ..ir.nodes import Binary, BinaryOp, Expr, For, Load, Program, Stmt, Store
from ..ir.visit import Node, variables, walk
from .nests import find_loop, find_stage, own, replace_loop, short_name, stage_loops, where

# Operations whose operands may be combined in any order.
_COMMUTATIVE = {
    BinaryOp.ADD,
    BinaryOp.MUL,
    BinaryOp.MIN,
    BinaryOp.MAX,
    BinaryOp.AND,
    BinaryOp.OR,
}


def apply(program: Program, stage: str, *order: str) -> Program:
    """Put the named loops in this order; other loops between them keep their places.

    for i: for j: for k: s   →   (k, i)   →   for k: for j: for i: s
    """
    if len(set(order)) < len(order) or len(order) < 2:
        raise ScheduleError(f"{stage}: reorder takes two or more different loops, not {order}")
    named = {name: find_loop(program, stage, name) for name in order}
    nested = stage_loops(find_stage(program, stage))
    first = next(loop for loop in nested if short_name(stage, loop.var) in named)
    nest = _perfect_nest(stage, first, list(named.values()))
    wanted = iter(named[name] for name in order)
    moved = {loop.var for loop in named.values()}
    placed = [next(wanted) if loop.var in moved else loop for loop in nest]
    _require_commutative(program, stage, nest, placed)
    body = nest[-1].body
    for loop in reversed(placed):
        body = replace(loop, body=body)
    return replace_loop(program, first.var, lambda _: body)


def _perfect_nest(stage: str, first: For, wanted: list[For]) -> list[For]:
    """The loops from ``first`` inwards down to the last wanted one."""
    missing = {loop.var for loop in wanted} - {first.var}
    nest = [first]
    while missing:
        body: Stmt = nest[-1].body
        if not isinstance(body, For):
            lost = next(loop for loop in wanted if loop.var in missing)
            raise ScheduleError(
                f"{where(stage, lost)}: cannot reorder, other statements stand between it and "
                f"{where(stage, nest[-1])}; reorder before computing stages at that loop"
            )
        nest.append(body)
        missing.discard(body.var)
    return nest


def _require_commutative(program: Program, stage: str, nest: list[For], placed: list[For]) -> None:
    """Loops an accumulation runs over may change places only if its operation commutes."""
    for store in own(find_stage(program, stage)):
        if not isinstance(store, Store):
            continue
        indexed: set[Node] = {var for index in store.indices for var in variables(index)}
        reduced = [loop.var for loop in nest if _reduces(loop, indexed)]
        if reduced == [loop.var for loop in placed if _reduces(loop, indexed)]:
            continue
        if not _accumulates_commutatively(store):
            names = ", ".join(short_name(stage, var) for var in reduced)
            raise ScheduleError(
                f"{stage}: cannot reorder {names}: {store.buffer.name} is accumulated by an "
                f"operation that depends on the order; these loops must stay in the order {names}"
            )


def _reduces(loop: For, indexed: set[Node]) -> bool:
    return loop.extent > 1 and loop.var not in indexed


def _accumulates_commutatively(store: Store) -> bool:
    own_element = Load(store.buffer, store.indices)
    value = store.value
    if not any(isinstance(n, Load) and n.buffer == store.buffer for n in walk(value)):
        return True
    if not isinstance(value, Binary) or value.op not in _COMMUTATIVE:
        return False
    for side, other in ((value.a, value.b), (value.b, value.a)):
        if side == own_element and not _reads(other, store):
            return True
    return False


def _reads(expr: Expr, store: Store) -> bool:
    return any(isinstance(n, Load) and n.buffer == store.buffer for n in walk(expr))
