"""Move allocations to where they can cover everything: the function or a virtual thread's body."""

from __future__ import annotations

from ..ir.build import block, seq
from ..ir.nodes import (
    Alloc,
    Buffer,
    DmaLoad,
    DmaStore,
    For,
    LoopKind,
    Produce,
    Program,
    Seq,
    Stmt,
    TensorCall,
)
from ..ir.visit import map_children, map_program, walk


def hoist_allocations(program: Program) -> Program:
    """Lift every allocation to the body of the innermost loop that needs its own copy.

        for t in vthread(2):                    for t in vthread(2):
          for i in range(4):             →        alloc a
            alloc a                               for i in range(4):
              produce a: ...                        ...

    A virtual thread owns its buffers; so does an iteration of a parallel loop of the host.
    Everything else goes to the top of the function: each scratchpad buffer
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
        case For(var, extent, body, kind, annotations) if _owns_buffers(stmt):
            inner: list[Buffer] = []
            lifted = _lift(body, inner)
            return For(var, extent, block(inner, [lifted]), kind, annotations)
    return map_children(stmt, lambda n: _lift(n, buffers) if isinstance(n, Stmt) else n)


def _owns_buffers(loop: For) -> bool:
    """Parallel loops with instructions inside run serially: there is one queue."""
    if loop.kind is LoopKind.PARALLEL:
        return not any(isinstance(s, (DmaLoad, DmaStore, TensorCall)) for s in walk(loop))
    return loop.kind is LoopKind.VTHREAD
