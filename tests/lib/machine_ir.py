"""Executes programs at any stage of lowering, and follows their tokens: the judge of the passes.

NumPy on entries, in program order. Unlike ``compiler.ir.interpreter`` it knows transfers, micro-op
kernels, stages and tokens. Every statement that becomes an instruction is recorded with what it
touches, so that ``check_order`` can tell whether tokens order every conflict.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compiler.ir.arithmetic import apply, convert
from compiler.ir.nodes import (
    Alloc,
    Binary,
    BinaryOp,
    Buffer,
    Cast,
    Const,
    Coproc,
    DepPop,
    DepPush,
    DmaLoad,
    DmaStore,
    Emit,
    Expr,
    For,
    If,
    Load,
    Not,
    Produce,
    Program,
    Scope,
    Select,
    Seq,
    Stmt,
    Store,
    Synchronize,
    TensorCall,
    UopKernel,
    UopPush,
    Var,
)
from compiler.passes.accesses import Accesses, accesses
from vta_isa.enums import AluOp, Stage

Array = NDArray[Any]


@dataclass
class Event:
    """Something a stage does: an instruction, or a token alone."""

    stage: Stage | None  # None: the host, or a synchronisation
    what: str
    reads: frozenset[tuple[str, int]] = frozenset()
    writes: frozenset[tuple[str, int]] = frozenset()
    push: tuple[Stage, Stage] | None = None
    pop: tuple[Stage, Stage] | None = None
    barrier: bool = False


@dataclass
class Machine:
    """Memory by buffer name, and what happened."""

    arrays: dict[str, Array]
    events: list[Event] = field(default_factory=list)
    instructions: int = 0
    uops: int = 0


def execute(program: Program, arrays: Mapping[str, Array], *, published: bool = True) -> Machine:
    """Run ``program`` on ``arrays``, outputs written in place.

    ``published``: destinations must keep the distance that the published machine needs.
    """
    machine = Machine(dict(arrays))
    _Runner(machine, published).run(program.body, {}, None)
    return machine


class _Runner:
    def __init__(self, machine: Machine, published: bool):
        self.machine = machine
        self.published = published
        self.arrays = machine.arrays
        self.known: dict[int, tuple[Stmt, Accesses]] = {}  # the statement keeps its id in use

    def touched(self, stmt: Stmt) -> Accesses:
        if id(stmt) not in self.known:
            self.known[id(stmt)] = stmt, accesses(stmt)
        return self.known[id(stmt)][1]

    def value(self, expr: Expr, env: dict[str, int]) -> Any:
        match expr:
            case Const(value):
                return value
            case Var(name):
                return env[name]
            case Binary(BinaryOp.AND, a, b):
                return self.value(a, env) and self.value(b, env)
            case Binary(BinaryOp.OR, a, b):
                return self.value(a, env) or self.value(b, env)
            case Binary(op, a, b):
                return apply(op, self.value(a, env), self.value(b, env), a.dtype)
            case Not(a):
                return not self.value(a, env)
            case Select(cond, a, b):
                return self.value(a if self.value(cond, env) else b, env)
            case Cast(a, dtype):
                return convert(self.value(a, env), dtype)
            case Load(buffer, indices):
                at = tuple(self.value(i, env) for i in indices)
                assert all(0 <= i < n for i, n in zip(at, buffer.shape, strict=True)), (buffer, at)
                return self.arrays[buffer.name][at].item()
        raise AssertionError(f"cannot compute {expr}")

    def run(self, stmt: Stmt, env: dict[str, int], stage: Stage | None) -> None:
        match stmt:
            case For(var, extent, body):
                for i in range(extent):
                    env[var.name] = i
                    self.run(body, env, stage)
            case Seq(stmts):
                for s in stmts:
                    self.run(s, env, stage)
            case If(cond, then, orelse):
                chosen = then if self.value(cond, env) else orelse
                if chosen is not None:
                    self.run(chosen, env, stage)
            case Alloc(buffer, body):
                # Garbage that no test value has, so that reading it shows.
                garbage = np.full(buffer.shape, -99 if buffer.dtype != "bool" else 1)
                self.arrays[buffer.name] = garbage.astype(buffer.dtype)
                self.run(body, env, stage)
            case Produce(_, body):
                self.run(body, env, stage)
            case Coproc(own, body):
                assert stage is None, "a block inside a block"
                self.run(body, env, own)
            case Store(buffer, indices, value):
                at = tuple(self.value(i, env) for i in indices)
                assert all(0 <= i < n for i, n in zip(at, buffer.shape, strict=True)), (buffer, at)
                touched = self.touched(stmt)
                self.arrays[buffer.name][at] = self.value(value, env)
                reads = frozenset((b.name, 0) for b in touched.reads)
                self.event(None, "host", reads, frozenset({(buffer.name, 0)}))
            case TensorCall():
                self.tensor(stmt, env, stage)
            case DmaLoad():
                self.load(stmt, env, stage)
            case DmaStore():
                self.store(stmt, env, stage)
            case UopKernel():
                self.kernel(stmt, env, stage)
            case DepPush(p, q):
                assert stage in (None, p)
                self.machine.events.append(Event(p, "push", push=(p, q)))
            case DepPop(p, q):
                assert stage in (None, q)
                self.machine.events.append(Event(q, "pop", pop=(p, q)))
            case Synchronize():
                self.machine.events.append(Event(None, "synchronize", barrier=True))
            case _:
                raise AssertionError(f"cannot execute {stmt}")

    def event(self, stage, what, reads, writes) -> None:  # type: ignore[no-untyped-def]
        self.machine.events.append(Event(stage, what, frozenset(reads), frozenset(writes)))

    def entries(self, buffer: Buffer) -> Array:
        """(entries, rows, columns), a view."""
        return self.arrays[buffer.name].reshape(-1, *buffer.shape[-2:])

    def load(self, dma: DmaLoad, env: dict[str, int], stage: Stage | None) -> None:
        sram = self.entries(dma.sram)
        dram = self.arrays[dma.dram.name].reshape(-1, *dma.sram.shape[-2:])
        shape = (dma.sram_index, dma.dram_offset, dma.x_size, dma.y_size, dma.x_stride)
        fields = (*shape, *dma.x_pad, *dma.y_pad)
        at, offset, xs, ys, stride, xb, xa, yb, ya = (self.value(e, env) for e in fields)
        assert xs > 0, "x_size 0 is a no-op"
        assert max(xs, ys, stride) < 1 << 16
        assert min(xs, ys, stride, xb, xa, yb, ya) >= 0
        assert max(xb, xa, yb, ya) < 16
        width, height = xb + xs + xa, yb + ys + ya
        assert 0 <= at <= at + width * height <= len(sram), (dma, at, width, height)
        block = np.zeros((height, width, *sram.shape[1:]), sram.dtype)
        for row in range(ys):
            begin = offset + row * stride
            assert 0 <= begin <= begin + xs <= len(dram), (dma, begin, xs)
            block[yb + row, xb : xb + xs] = dram[begin : begin + xs]
        sram[at : at + width * height] = block.reshape(-1, *sram.shape[1:])
        writes = {(dma.sram.name, i) for i in range(at, at + width * height)}
        self.machine.instructions += 1
        self.event(stage, "load", {(dma.dram.name, 0)}, writes)

    def store(self, dma: DmaStore, env: dict[str, int], stage: Stage | None) -> None:
        sram = self.entries(dma.sram)
        dram = self.arrays[dma.dram.name].reshape(-1, *dma.sram.shape[-2:])
        at, offset, xs, ys, stride = (
            self.value(e, env)
            for e in (dma.sram_index, dma.dram_offset, dma.x_size, dma.y_size, dma.x_stride)
        )
        assert xs > 0
        for row in range(ys):
            begin, source = offset + row * stride, at + row * xs
            assert 0 <= begin <= begin + xs <= len(dram)
            assert 0 <= source <= source + xs <= len(sram)
            dram[begin : begin + xs] = sram[source : source + xs].astype(dram.dtype)
        reads = {(dma.sram.name, i) for i in range(at, at + xs * ys)}
        self.machine.instructions += 1
        self.event(stage, "store", reads, {(dma.dram.name, 0)})

    def tensor(self, call: TensorCall, env: dict[str, int], stage: Stage | None) -> None:
        places = []
        for region in call.operands:
            at = [self.value(i, env) for i in region.start]
            shape = region.buffer.shape
            assert all(0 <= i < n for i, n in zip(at, shape, strict=True)), (call, at)
            places.append((region.buffer, int(np.ravel_multi_index(at[:-2], shape[:-2]))))
        emit = call.intrinsic.emit
        if emit.mode == "alu":
            # Not in place yet: the destination takes the first operand's value first.
            (dst, d), (x, i) = places[0], places[1]
            self.entries(dst)[d] = self.entries(x)[i]
            places = [places[0], *places[2:]] if emit.imm is None else [places[0], places[0]]
        self.operate(emit, places)
        touched = {(b.name, i) for b, i in places}
        self.event(stage, call.intrinsic.name, touched, {(places[0][0].name, places[0][1])})

    def operate(
        self, emit: Emit, places: list[tuple[Buffer, int]], bias: Array | None = None
    ) -> None:
        (dst, d), rest = places[0], places[1:]
        acc = self.entries(dst)
        operands = [self.entries(b)[i].astype(np.int64) for b, i in rest]
        with np.errstate(over="ignore"):
            if emit.mode == "gemm":
                before = 0 if emit.overwrite else acc[d]
                new = 0 if emit.reset else before + operands[0] @ operands[1].T
            elif emit.fused is not None:
                low, high = emit.fused.bounds
                added = operands[0] if bias is None else bias.astype(np.int64)
                if emit.imm is not None:
                    added = np.zeros_like(added)
                total = (acc[d].astype(np.int64) + added).astype(acc.dtype)
                new = np.clip(total >> emit.fused.shift, low, high)
            else:
                y = operands[0] if emit.imm is None else np.int64(emit.imm)
                new = _alu(emit.alu_op, acc[d].astype(np.int64), y)
            acc[d] = np.asarray(new).astype(acc.dtype)

    def kernel(self, kernel: UopKernel, env: dict[str, int], stage: Stage | None) -> None:
        free = {p.name for p in kernel.params}
        recorded: list[tuple[int, int, int]] = []

        def record(stmt: Stmt, own: dict[str, int]) -> None:
            match stmt:
                case For(var, extent, body):
                    for i in range(extent):
                        record(body, {**own, var.name: i})
                case Seq(stmts):
                    for s in stmts:
                        record(s, own)
                case UopPush(_, dst, src, wgt):
                    recorded.append(tuple(self.value(e, own) for e in (dst, src, wgt)))  # type: ignore[arg-type]

        record(kernel.body, {name: env[name] for name in free})
        assert len(kernel.loops) <= 2
        assert all(0 < level.extent < 1 << 14 for level in kernel.loops)
        for gap in (1, 2) if self.published else ():
            same = [a[0] == b[0] for a, b in zip(recorded, recorded[gap:], strict=False)]
            assert not any(same), "a destination comes back too soon"
        self.machine.instructions += 1
        self.machine.uops += len(recorded)
        factors = [(lv.dst_factor, lv.src_factor, lv.wgt_factor) for lv in kernel.loops]
        assert all(f >= 0 for level in factors for f in level)
        names = {"dst": "acc.sram", "src": "inp.sram", "wgt": "wgt.sram"}
        if kernel.emit.mode == "alu":
            names["src"] = "acc.sram"
        reads: set[tuple[str, int]] = set()
        writes: set[tuple[str, int]] = set()
        biased = kernel.emit.fused is not None and kernel.emit.imm is None
        bias: Array | None = None
        for point in np.ndindex(*(level.extent for level in kernel.loops)):
            steps = [sum(i * f[k] for i, f in zip(point, factors, strict=True)) for k in range(3)]
            if biased and not any(point[-1:]):  # an outer iteration begins
                assert not any(level[1] for level in factors[-1:]), "the inner loop moves the bias"
                bias = self.arrays["acc.sram"][recorded[0][1] + steps[1]].copy()
            for uop in recorded:
                d, s, w = (u + step for u, step in zip(uop, steps, strict=True))
                used = [("acc.sram", d)]
                if kernel.emit.mode == "alu":
                    used.append((names["src"], s))
                elif not kernel.emit.reset:
                    used += [(names["src"], s), (names["wgt"], w)]
                places = [(_whole(self.arrays[name], name), i) for name, i in used]
                for name, i in used:
                    assert 0 <= i < len(self.arrays[name]), (name, i)
                assert bias is None or s == recorded[0][1] + steps[1], "two biases"
                self.operate(kernel.emit, places, bias)
                reads.update(used)
                writes.add(used[0])
        self.event(stage, "kernel", reads, writes)


def _whole(array: Array, name: str) -> Buffer:
    return Buffer(name, array.shape, array.dtype.name, Scope.ACC)


def _alu(op: AluOp | None, x: Array, y: Any) -> Array:
    match op:
        case AluOp.MIN:
            return np.minimum(x, y)
        case AluOp.MAX:
            return np.maximum(x, y)
        case AluOp.ADD:
            return x + y
        case AluOp.MUL:
            return x * y
    y = np.clip(y, -31, 31)
    return np.where(y >= 0, x >> np.maximum(y, 0), x << np.maximum(-y, 0))


def check_order(events: list[Event], note: str = "") -> None:
    """Every push meets its pop, none is left, and every conflict between stages is ordered."""
    queues: dict[tuple[Stage, Stage], deque[int]] = {}
    last: dict[Stage | None, int] = {}  # ancestors of a stage's latest event, itself included
    everything = 0
    for number, event in enumerate(events):
        own = 1 << number
        if event.barrier:
            left = {edge: len(q) for edge, q in queues.items() if q}
            assert not left, f"tokens left at a synchronisation: {left} {note}"
            last = dict.fromkeys(last, everything)
            for stage in Stage:
                last[stage] = everything
            continue
        if event.stage is None:  # the host runs at once: everything before must be done already
            continue
        before = last.get(event.stage, 0)
        if event.pop is not None:
            queue = queues.setdefault(event.pop, deque())
            assert queue, f"event {number}: {event.pop} has no token {note}"
            before |= queue.popleft()
        last[event.stage] = before | own
        everything |= own
        if event.push is not None:
            queues.setdefault(event.push, deque()).append(before | own)
        for earlier, other in enumerate(events[:number]):
            if other.stage in (None, event.stage):
                continue
            clash = (event.writes & (other.reads | other.writes)) | (event.reads & other.writes)
            assert not clash or before >> earlier & 1, (
                f"{other.what} ({earlier}) and {event.what} ({number}) race for "
                f"{sorted(clash)[:4]} {note}"
            )
    left = {edge: len(q) for edge, q in queues.items() if q}
    assert not left, f"tokens left at the end: {left} {note}"
    _check_host(events, note)


def _check_host(events: list[Event], note: str) -> None:
    """The host touches nothing that queued instructions still read or write."""
    reads: set[tuple[str, int]] = set()
    writes: set[tuple[str, int]] = set()
    for number, event in enumerate(events):
        if event.barrier:
            reads, writes = set(), set()
        elif event.stage is None:
            clash = (event.writes & (reads | writes)) | (event.reads & writes)
            assert not clash, f"the host ({number}) races for {sorted(clash)[:4]} {note}"
        else:
            reads |= event.reads
            writes |= event.writes
    assert not writes, f"not synchronized at the end: {sorted(writes)[:4]} {note}"
