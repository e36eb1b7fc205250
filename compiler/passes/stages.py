"""Say which stage of the accelerator executes what."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import groupby

from vta_isa.enums import Stage

from ..ir.build import seq
from ..ir.nodes import (
    Alloc,
    Coproc,
    DmaLoad,
    DmaStore,
    For,
    If,
    Load,
    LoopKind,
    Program,
    Scope,
    Seq,
    Stmt,
    TensorCall,
)
from ..ir.visit import map_program, walk


def mark_stages(program: Program) -> Program:
    """Wrap every maximal run of statements of one stage.

        for k in range(4):                      for k in range(4):
          dma a <- A                              coproc load:
          dma b <- B                     →          dma a <- A
          for i in range(8): gemm                   dma b <- B
                                                  coproc compute:
                                                    for i in range(8): gemm

    Loads of ``inp`` and ``wgt`` belong to the load stage, loads of ``acc`` and all arithmetic to
    the compute stage, stores to the store stage. A loop over virtual threads is never inside a
    block: its iterations are told apart block by block. Host statements stay bare.
    """
    return map_program(program, lambda body: _wrapped(*_mark(body)))


def stage_of(leaf: Stmt) -> Stage | None:
    """The stage that executes ``leaf``; None is the host."""
    match leaf:
        case DmaLoad(sram):
            return Stage.COMPUTE if sram.scope is Scope.ACC else Stage.LOAD
        case TensorCall():
            return Stage.COMPUTE
        case DmaStore():
            return Stage.STORE
    return None


_Marked = tuple[Stmt, Stage | None]  # None: of the host, or of several stages and wrapped inside


def _mark(stmt: Stmt) -> _Marked:
    match stmt:
        case For(body=body, kind=kind):
            inner, stage = _mark(body)
            if stage is None or kind is LoopKind.VTHREAD:
                return replace(stmt, body=_wrapped(inner, stage)), None
            return replace(stmt, body=inner), stage
        case Seq(stmts):
            return _mark_run([_mark(s) for s in stmts])
        case If(_, then, orelse):
            arms = [_mark(arm) for arm in (then, orelse) if arm is not None]
            stages = {stage for _, stage in arms}
            # A condition that reads memory is evaluated by the host, which may have to wait for it.
            reads = any(isinstance(n, Load) for n in walk(stmt.cond))
            common = stages.pop() if len(stages) == 1 and not reads else None
            bodies = [arm if common is not None else _wrapped(arm, s) for arm, s in arms]
            return If(stmt.cond, bodies[0], bodies[1] if len(bodies) > 1 else None), common
        case Alloc(buffer, body):
            return Alloc(buffer, _wrapped(*_mark(body))), None
    return stmt, stage_of(stmt)


def _mark_run(marked: Iterable[_Marked]) -> _Marked:
    runs = [
        (seq(stmt for stmt, _ in group), stage) for stage, group in groupby(marked, lambda m: m[1])
    ]
    if len(runs) == 1:
        return runs[0]
    return seq(_wrapped(*run) for run in runs), None


def _wrapped(stmt: Stmt, stage: Stage | None) -> Stmt:
    return stmt if stage is None else Coproc(stage, stmt)
