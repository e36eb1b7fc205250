"""Finding stages and loops in a program, and putting changed ones back."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import cast

from vta_isa.errors import ScheduleError

from ..ir.affine import Ranges
from ..ir.nodes import (
    Alloc,
    Buffer,
    Expr,
    For,
    If,
    Load,
    LoopKind,
    Produce,
    Program,
    Seq,
    Stmt,
    Store,
    TensorCall,
    Var,
)
from ..ir.simplify import simplify_stmt
from ..ir.visit import (
    Node,
    allocated_buffers,
    children,
    loops,
    map_children,
    read_operands,
    statements,
    stored_buffers,
    variables,
    walk,
)
from .naive import INIT

# -- names ------------------------------------------------------------------------------------


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    """``no stage 'cnv'; did you mean 'conv'? There are pad, conv``"""
    names = [str(n) for n in known]
    listing = f"here are {', '.join(names)}" if names else "here are none"
    near = difflib.get_close_matches(name, names, 1)
    return f"no {what} {name!r}; " + (f"did you mean {near[0]!r}? T" if near else "t") + listing


def stage_names(program: Program) -> list[str]:
    """Every stage, in the order they begin."""
    return [n.name for n in statements(program.body) if isinstance(n, Produce)]


def find_stage(program: Program, stage: str) -> Produce:
    for node in statements(program.body):
        if isinstance(node, Produce) and node.name == stage:
            return node
    raise ScheduleError(f"{program.name}: {unknown('stage', stage, stage_names(program))}")


def own(node: Node) -> Iterator[Node]:
    """Everything in a stage's nest but the stages computed inside it; the stage itself left out."""
    for child in children(node):
        if not isinstance(child, Produce):
            yield child
            yield from own(child)


def stage_loops(produce: Produce) -> list[For]:
    """The loops of a stage itself, outer ones first."""
    found: list[For] = []
    stack: list[Stmt] = [produce.body]
    while stack:
        stmt = stack.pop()
        if isinstance(stmt, For):
            found.append(stmt)
        inside = (n for n in reversed(children(stmt)) if isinstance(n, Stmt))
        stack.extend(n for n in inside if not isinstance(n, Produce))
    return found


def short_name(stage: str, var: Var) -> str:
    """``conv.co_o`` in stage ``conv``  →  ``co_o``"""
    return var.name.removeprefix(stage + ".")


def find_loop(program: Program, stage: str, loop: str) -> For:
    produce = find_stage(program, stage)
    found = stage_loops(produce)
    for node in found:
        if short_name(stage, node.var) == loop:
            return node
    names = [short_name(stage, node.var) for node in found]
    raise ScheduleError(f"{stage}: {unknown('loop', loop, names)}")


def find_buffer(program: Program, name: str) -> Buffer:
    """The buffer of a tensor, parameter or allocated."""
    buffers = {b.name: b for b in program.params}
    buffers.update((b.name, b) for b in allocated_buffers(program.body))
    if name not in buffers:
        raise ScheduleError(f"{program.name}: {unknown('tensor', name, buffers)}")
    return buffers[name]


def nests_of(program: Program, tensor: str) -> list[Produce]:
    """The nests that write a tensor: the initial values of a reduction, then the tensor."""
    names = (tensor + INIT, tensor)
    return [n for n in statements(program.body) if isinstance(n, Produce) and n.name in names]


def require_serial(stage: str, loop: For, action: str) -> None:
    if loop.kind is not LoopKind.SERIAL:
        raise ScheduleError(
            f"{where(stage, loop)}: cannot {action} a loop that is {loop.kind.value}; "
            f"{action} it before it is marked"
        )


def where(stage: str, loop: For) -> str:
    """How errors name a loop: ``conv.co (extent 8)``."""
    return f"{stage}.{short_name(stage, loop.var)} (extent {loop.extent})"


def fresh_var(program: Program, name: str) -> Var:
    """A variable no loop has yet."""
    if any(node.var.name == name for node in loops(program.body)):
        raise ScheduleError(f"{program.name}: there is a loop {name} already; rename it first")
    return Var(name)


def is_param(program: Program, name: str) -> bool:
    return any(buffer.name == name for buffer in program.params)


# -- rewriting --------------------------------------------------------------------------------


def tidy(program: Program) -> Program:
    """Simple indices, flat sequences; loops of extent 1 stay, so that they can be named."""
    return replace(program, body=simplify_stmt(program.body))


def replace_loop(program: Program, var: Var, fn: Callable[[For], Stmt]) -> Program:
    """The loop of ``var`` exchanged for what ``fn`` makes of it."""

    def visit(node: Node) -> Node:
        if isinstance(node, Expr):
            return node
        if isinstance(node, For) and node.var == var:
            return fn(node)
        return map_children(node, visit)

    return replace(program, body=cast(Stmt, visit(program.body)))


def replace_stage(stmt: Stmt, stage: str, fn: Callable[[Produce], Stmt]) -> Stmt:
    """The nest of ``stage`` exchanged for what ``fn`` makes of it."""

    def visit(node: Node) -> Node:
        if isinstance(node, Expr):
            return node
        if isinstance(node, Produce) and node.name == stage:
            return fn(node)
        return map_children(node, visit)

    return cast(Stmt, visit(stmt))


@dataclass(frozen=True)
class Path:
    """The way from a stage's name down to the statement that computes it."""

    loops: list[For]
    tests: list[Expr]
    stmt: Stmt


def main_path(produce: Produce) -> Path:
    """The loops and tests around a stage's own statement, the last one wherever several stand."""
    path = Path([], [], produce.body)
    stmt = produce.body
    while True:
        match stmt:
            case For(_, _, body):
                path.loops.append(stmt)
                stmt = body
            case If(cond, then, None):
                path.tests.append(cond)
                stmt = then
            case Alloc(_, body):
                stmt = body
            case Seq(stmts):
                stmt = stmts[-1]
            case _:
                return replace(path, stmt=stmt)


def map_own(produce: Produce, fn: Callable[[Node], Node]) -> Produce:
    """``fn`` applied, leaves first, to the nodes of a stage but not of stages inside it."""

    def visit(node: Node) -> Node:
        return node if isinstance(node, Produce) else fn(map_children(node, visit))

    return map_children(produce, visit)


def guard(stmt: Stmt, condition: Expr) -> Stmt:
    """``stmt`` run only where ``condition`` holds.

    for i: for j: s   →   for i: for j: if c(i): s

    The test moves inwards through loops that have nothing but a loop in them, so that nests stay
    perfect and can be reordered. It stops above a sequence, so that the stages computed inside are
    skipped with their consumer, unless it needs a loop further in: then it follows the last
    statement, which is where a stage's own nest goes on.
    """
    bound_inside = {node.var for node in loops(stmt)}
    return _guard(stmt, condition, {v for v in variables(condition) if v in bound_inside})


def _guard(stmt: Stmt, condition: Expr, unbound: set[Var]) -> Stmt:
    match stmt:
        case For(var):
            return replace(stmt, body=_guard(stmt.body, condition, unbound - {var}))
        case Alloc(_, body):
            return replace(stmt, body=_guard(body, condition, unbound))
        case If(_, then, None):
            return replace(stmt, then=_guard(then, condition, unbound))
        case Seq(stmts) if unbound and stmts:
            return Seq((*stmts[:-1], _guard(stmts[-1], condition, unbound)))
    return If(condition, stmt)


# -- questions --------------------------------------------------------------------------------


def ranges_of(stmt: Stmt) -> Ranges:
    """The inclusive range of every loop variable below ``stmt``."""
    return {node.var: (0, node.extent - 1) for node in loops(stmt)}


def enclosing_loops(stmt: Stmt, inner: Callable[[Node], bool]) -> list[For] | None:
    """The loops around the first statement that ``inner`` accepts, outermost first."""
    if inner(stmt):
        return []
    for child in children(stmt):
        if isinstance(child, Stmt):
            path = enclosing_loops(child, inner)
            if path is not None:
                return [stmt, *path] if isinstance(stmt, For) else path
    return None


def reads_of(node: Node, name: str) -> bool:
    """Whether anything below ``node`` reads the buffer called ``name``."""
    for n in walk(node):
        if isinstance(n, Load) and n.buffer.name == name:
            return True
        if isinstance(n, TensorCall) and any(r.buffer.name == name for r in read_operands(n)):
            return True
    return False


def readers(program: Program, name: str) -> list[str]:
    """The stages that read a tensor, apart from those that compute it."""
    found = []
    for node in statements(program.body):
        if isinstance(node, Produce) and node.name not in (name, name + INIT):
            shallow = (n for n in own(node) if isinstance(n, (Load, TensorCall)))
            if any(reads_of(n, name) for n in shallow):
                found.append(node.name)
    return found


def shared_write(loop: For, allowed: Iterable[str]) -> Buffer | None:
    """A buffer that several iterations of ``loop`` may write the same element of.

    Buffers that come into being inside the loop do not count, nor do the ``allowed`` ones where
    the loop's variable selects the element.
    """
    inside = {buffer.name for buffer in allocated_buffers(loop.body)}
    free = set(allowed)
    for node in statements(loop.body):
        if isinstance(node, Store):
            buffer, indices = node.buffer, node.indices
        elif isinstance(node, TensorCall):
            buffer, indices = node.operands[0].buffer, node.operands[0].start
        else:
            continue
        selects = any(loop.var in variables(index) for index in indices)
        if buffer.name not in inside and not (buffer.name in free and selects):
            return buffer
    return None


def written_names(stmt: Stmt) -> set[str]:
    return {buffer.name for buffer in stored_buffers(stmt)}
