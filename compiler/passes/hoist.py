"""Move allocations to where they can cover everything: the function or a virtual thread's body."""

from __future__ import annotations

from ..ir.build import block, seq
from ..ir.nodes import Alloc, Buffer, For, LoopKind, Produce, Program, Scope, Seq, Stmt
from ..ir.visit import map_children, map_program


def hoist_allocations(program: Program) -> Program:
    """Lift every allocation to the body of the innermost loop that needs its own copy.

        for t in vthread(2):                    for t in vthread(2):
          for i in range(4):             →        alloc a
            alloc a                               for i in range(4):
              produce a: ...                        ...

    A virtual thread owns its buffers; so does an iteration of a parallel loop, of which only DRAM
    buffers can be meant. Everything else goes to the top of the function: each scratchpad buffer
    gets a range of its own whatever its lifetime, because a range could be shared only where
    tokens order its users. ``Produce`` names have done their work and go.
    """
    return map_program(program, lambda body: _with_allocations(body))


def _with_allocations(body: Stmt) -> Stmt:
    buffers: list[Buffer] = []
    lifted = _lift(body, buffers)
    return block(buffers, [lifted])


def _lift(stmt: Stmt, buffers: list[Buffer]) -> Stmt:
    match stmt:
        case Alloc(buffer, body):
            buffers.append(buffer)
            return _lift(body, buffers)
        case Produce(_, body):
            return _lift(body, buffers)
        case Seq(stmts):
            return seq(_lift(s, buffers) for s in stmts)
        case For(var, extent, body, kind, annotations) if kind in _OWNERS:
            inner: list[Buffer] = []
            lifted = _lift(body, inner)
            owned = [b for b in inner if _OWNERS[kind] or b.scope is Scope.GLOBAL]
            buffers.extend(b for b in inner if b not in owned)
            return For(var, extent, block(owned, [lifted]), kind, annotations)
    return map_children(stmt, lambda n: _lift(n, buffers) if isinstance(n, Stmt) else n)


_OWNERS = {LoopKind.VTHREAD: True, LoopKind.PARALLEL: False}  # owns scratchpad buffers too?
