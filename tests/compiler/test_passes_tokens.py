"""Tokens: on random programs every conflict is ordered, every push meets its pop."""

import random
from itertools import count

import numpy as np
import pytest
from machine_ir import check_order, execute

from compiler import intrinsics
from compiler.ir.build import const, floormod, seq
from compiler.ir.nodes import (
    Alloc,
    Binary,
    BinaryOp,
    Buffer,
    DmaLoad,
    DmaStore,
    For,
    If,
    Intrinsic,
    LoopKind,
    Program,
    Region,
    Scope,
    Stmt,
    Store,
    TensorCall,
    Var,
)
from compiler.ir.printer import to_text
from compiler.passes.hoist import hoist_allocations
from compiler.passes.peel import peel_reductions
from compiler.passes.stages import mark_stages
from compiler.passes.synchronize import synchronize_dram
from compiler.passes.tokens import insert_tokens
from compiler.passes.virtual_threads import interleave_virtual_threads
from vta_isa import load_machine

TINY = load_machine("tiny")
GEMM, RESET = intrinsics.gemm(TINY), intrinsics.gemm_reset(TINY)
PASSES = (
    hoist_allocations,
    mark_stages,
    peel_reductions,
    synchronize_dram,
    insert_tokens,
    interleave_virtual_threads,
)


def lowered(program: Program, peel: bool = True) -> Program:
    for run in PASSES:
        if peel or run is not peel_reductions:
            program = run(program)
    return program


def inp(name: str) -> Buffer:
    return Buffer(name, (1, 1, 4), "int8", Scope.INP)


def wgt(name: str) -> Buffer:
    return Buffer(name, (1, 4, 4), "int8", Scope.WGT)


def acc(name: str) -> Buffer:
    return Buffer(name, (1, 1, 4), "int32", Scope.ACC)


def dram(name: str, dtype: str = "int8") -> Buffer:
    return Buffer(name, (1, 1, 4), dtype)


def load(to: Buffer, source: Buffer) -> Stmt:
    pads = (const(0), const(0))
    return DmaLoad(to, const(0), source, const(0), const(1), const(1), const(1), pads, pads)


def store(source: Buffer, to: Buffer) -> Stmt:
    return DmaStore(source, const(0), to, const(0), const(1), const(1), const(1))


def call(intrinsic: Intrinsic, *buffers: Buffer) -> Stmt:
    zero = const(0)
    return TensorCall(
        intrinsic, tuple(Region(b, (zero,) * len(b.shape), (1, *b.shape[1:])) for b in buffers)
    )


def arrays(program: Program) -> dict[str, np.ndarray]:
    return {b.name: np.zeros(b.shape, b.dtype) for b in program.params}


def ordered(program: Program, note: str = "") -> None:
    for peel in (False, True):
        after = lowered(program, peel)
        text = f"{note}\nbefore\n{to_text(program)}\nafter\n{to_text(after)}"
        check_order(execute(after, arrays(after)).events, text)


def tokens(program: Program) -> list[str]:
    """Every line of the lowered program, without indentation."""
    return [line.strip() for line in to_text(lowered(program)).splitlines()]


# ---------------------------------------------------------------------------------------------


class Trees:
    """Random loop trees over a few buffers."""

    def __init__(self, seed: int):
        self.rng = random.Random(seed)
        self.names = count()
        self.params = [dram("A"), Buffer("W", (1, 4, 4), "int8"), dram("B"), dram("C")]

    def fresh(self, stem: str) -> str:
        return f"{stem}{next(self.names)}"

    def program(self) -> Program:
        body = self.tree(3, [], [], threaded=False)
        return Program("random", tuple(self.params), body, tuple(self.params[2:]))

    def tree(self, depth: int, shared: list[Buffer], loops: list[Var], threaded: bool) -> Stmt:
        """A subtree with buffers of its own; it may read what it shares with other threads."""
        own = [
            inp(self.fresh("i")),
            wgt(self.fresh("w")),
            acc(self.fresh("a")),
            acc(self.fresh("b")),
        ]
        used = own[: self.rng.randint(3, 4)]
        stmt = self.block(depth, used, shared, loops, threaded)
        for buffer in own:
            stmt = Alloc(buffer, stmt)
        return stmt

    def block(
        self, depth: int, own: list[Buffer], shared: list[Buffer], loops: list[Var], threaded: bool
    ) -> Stmt:
        parts = [
            self.part(depth, own, shared, loops, threaded) for _ in range(self.rng.randint(1, 4))
        ]
        return seq(parts)

    def part(
        self, depth: int, own: list[Buffer], shared: list[Buffer], loops: list[Var], threaded: bool
    ) -> Stmt:
        kind = self.rng.random()
        if depth == 0 or kind < 0.4:
            return self.leaf(own, shared)
        if kind < 0.75:
            var = Var(self.fresh("n"))
            body = self.block(depth - 1, own, shared, [*loops, var], threaded)
            return For(var, self.rng.randint(1, 3), body)
        if kind < 0.87 and loops:
            var = self.rng.choice(loops)
            cond = Binary(BinaryOp.EQ, floormod(var, 2), const(self.rng.randint(0, 1)), "bool")
            then = self.block(depth - 1, own, shared, loops, True)
            orelse = self.block(depth - 1, own, shared, loops, True)
            return If(cond, then, orelse if self.rng.random() < 0.5 else None)
        if threaded and kind < 0.97:
            return self.leaf(own, shared)
        if any(isinstance(b, Var) for b in loops) and threaded:
            return self.leaf(own, shared)
        var = Var(self.fresh("t"))
        body = self.tree(depth - 1, [*shared, *own], loops, threaded=True)
        return For(var, self.rng.randint(1, 3), body, LoopKind.VTHREAD)

    def leaf(self, own: list[Buffer], shared: list[Buffer]) -> Stmt:
        rng = self.rng
        a, w, b, c = self.params
        inps, wgts, accs = (
            [x for x in own if x.scope is scope] for scope in (Scope.INP, Scope.WGT, Scope.ACC)
        )
        readable = {scope: [x for x in (*own, *shared) if x.scope is scope] for scope in Scope}
        match rng.randint(0, 9):
            case 0 | 1:
                return load(rng.choice(inps), rng.choice([a, a, a, b]))
            case 2:
                return load(rng.choice(wgts), w)
            case 3 | 4 | 5:
                operands = [rng.choice(readable[scope]) for scope in (Scope.INP, Scope.WGT)]
                return call(GEMM, rng.choice(accs), *operands)
            case 6:
                return call(RESET, rng.choice(accs))
            case 7 if rng.random() < 0.1:
                at = (const(0),) * 3
                return Store(rng.choice([b, c]), at, const(1, "int8"))
        return store(rng.choice(readable[Scope.ACC]), rng.choice([b, c, c, c]))


@pytest.mark.parametrize("start", range(0, 240, 20))
def test_random_trees_are_ordered(start: int) -> None:
    for seed in range(start, start + 20):
        ordered(Trees(seed).program(), f"seed {seed}")
