"""Walking and rebuilding trees of IR nodes.

Nodes are frozen dataclasses; their children are found from their fields, so a new node needs no
code here. A loop's own variable binds, it is not a child.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import fields, replace
from functools import cache
from typing import Any, TypeAlias, TypeVar, cast

from .nodes import Alloc, Buffer, Expr, For, Load, Program, Region, Stmt, Store, TensorCall, Var

Node: TypeAlias = Expr | Stmt
AnyNode = TypeVar("AnyNode", bound=Expr | Stmt)

_BINDERS = frozenset({"var", "params"})  # For.var, UopKernel.params


@cache
def _fields(kind: Hashable) -> tuple[str, ...]:
    return tuple(f.name for f in fields(cast(Any, kind)) if f.name not in _BINDERS)


def children(node: Node) -> list[Node]:
    """The expressions and statements directly below ``node``, in the order of its fields."""
    found: list[Node] = []
    for name in _fields(cast(Hashable, type(node))):
        _collect(getattr(node, name), found)
    return found


def _collect(value: object, found: list[Node]) -> None:
    if isinstance(value, (Expr, Stmt)):
        found.append(value)
    elif isinstance(value, tuple):
        for item in value:
            _collect(item, found)
    elif isinstance(value, Region):
        found.extend(value.start)


def walk(node: Node) -> Iterator[Node]:
    """``node`` and everything below it, parents first."""
    stack = [node]
    while stack:
        top = stack.pop()
        yield top
        stack.extend(reversed(children(top)))


def statements(stmt: Stmt) -> Iterator[Stmt]:
    """``stmt`` and every statement below it, parents first: ``walk`` without the expressions."""
    stack = [stmt]
    while stack:
        top = stack.pop()
        yield top
        if not isinstance(top, Store):  # most leaves; they hold expressions only
            stack.extend(node for node in reversed(children(top)) if isinstance(node, Stmt))


def map_children(node: AnyNode, fn: Callable[[Node], Node]) -> AnyNode:
    """``node`` with ``fn`` applied to each direct child; the same object where nothing changed."""
    changed: dict[str, object] = {}
    for name in _fields(cast(Hashable, type(node))):
        old = getattr(node, name)
        new = _map_value(old, fn)
        if new is not old:
            changed[name] = new
    if not changed:
        return node
    return replace(cast(Any, node), **changed)  # type: ignore[no-any-return]


def _map_value(value: object, fn: Callable[[Node], Node]) -> object:
    if isinstance(value, (Expr, Stmt)):
        return fn(value)
    if isinstance(value, tuple):
        new = tuple(_map_value(item, fn) for item in value)
        return value if all(a is b for a, b in zip(new, value, strict=True)) else new
    if isinstance(value, Region):
        start = _map_value(value.start, fn)
        return (
            value if start is value.start else replace(value, start=cast(tuple[Expr, ...], start))
        )
    return value


def map_expr(expr: Expr, fn: Callable[[Expr], Expr]) -> Expr:
    """``fn`` applied to every sub-expression, operands first."""

    def visit(node: Node) -> Node:
        return fn(cast(Expr, map_children(node, visit)))

    return cast(Expr, visit(expr))


def map_stmt(
    stmt: Stmt,
    stmt_fn: Callable[[Stmt], Stmt] | None = None,
    expr_fn: Callable[[Expr], Expr] | None = None,
) -> Stmt:
    """``stmt_fn`` applied to every statement and ``expr_fn`` to every expression, leaves first."""

    def visit(node: Node) -> Node:
        if isinstance(node, Expr):
            return node if expr_fn is None else map_expr(node, expr_fn)
        new = map_children(node, visit)
        return new if stmt_fn is None else stmt_fn(new)

    return cast(Stmt, visit(stmt))


def substitute(node: AnyNode, values: Mapping[Var, Expr]) -> AnyNode:
    """``node`` with every use of a variable in ``values`` replaced."""
    if not values:
        return node

    def visit(n: Node) -> Node:
        if isinstance(n, Var):
            return values.get(n, n)
        return map_children(n, visit)

    return cast(AnyNode, visit(node))


def rename_loops(stmt: Stmt, names: Mapping[Var, Var]) -> Stmt:
    """``stmt`` with loop variables renamed where they are bound and where they are used."""

    def visit(n: Node) -> Node:
        if isinstance(n, Var):
            return names.get(n, n)
        if isinstance(n, For) and n.var in names:
            n = replace(n, var=names[n.var])
        return map_children(n, visit)

    return cast(Stmt, visit(stmt))


def map_buffers(node: AnyNode, fn: Callable[[Buffer], Buffer]) -> AnyNode:
    """``node`` with ``fn`` applied to every buffer it names, whatever node holds it."""

    def buffer_of(value: object) -> object:
        if isinstance(value, Buffer):
            return fn(value)
        if isinstance(value, Region):
            return replace(value, buffer=fn(value.buffer))
        if isinstance(value, tuple):
            return tuple(buffer_of(item) for item in value)
        return value

    def visit(n: Node) -> Node:
        n = map_children(n, visit)
        changed: dict[str, object] = {}
        for name in _fields(cast(Hashable, type(n))):
            old = getattr(n, name)
            if isinstance(old, (Buffer, Region, tuple)):
                new = buffer_of(old)
                if new != old:
                    changed[name] = new
        return replace(cast(Any, n), **changed) if changed else n

    return cast(AnyNode, visit(node))


def replace_buffers(node: AnyNode, buffers: Mapping[str, Buffer]) -> AnyNode:
    """``node`` with the buffers of the given names exchanged."""
    return map_buffers(node, lambda b: buffers.get(b.name, b))


def variables(node: Node) -> set[Var]:
    """Every variable used below ``node`` (loops that only bind do not count)."""
    return {n for n in walk(node) if isinstance(n, Var)}


def loops(stmt: Stmt) -> list[For]:
    """Every loop below ``stmt``, outer ones first."""
    return [n for n in statements(stmt) if isinstance(n, For)]


def stored_buffers(stmt: Stmt) -> set[Buffer]:
    """Buffers written by a ``Store`` or as the destination of a ``TensorCall``."""
    found: set[Buffer] = set()
    for n in statements(stmt):
        if isinstance(n, Store):
            found.add(n.buffer)
        elif isinstance(n, TensorCall):
            found.add(n.operands[0].buffer)
    return found


def read_operands(call: TensorCall) -> list[Region]:
    """The operands whose contents the call reads; the destination of an accumulation is one."""
    read = {n.buffer.name for n in walk(call.intrinsic.body) if isinstance(n, Load)}
    pairs = zip(call.intrinsic.formals, call.operands, strict=True)
    return [region for formal, region in pairs if formal.name in read]


def allocated_buffers(stmt: Stmt) -> list[Buffer]:
    """Buffers that come into being inside ``stmt``."""
    return [n.buffer for n in statements(stmt) if isinstance(n, Alloc)]


def map_program(program: Program, fn: Callable[[Stmt], Stmt]) -> Program:
    """``program`` with its body replaced by ``fn(body)``."""
    return replace(program, body=fn(program.body))
