"""Gather nests of tensorized calls into micro-op kernels with hardware loops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, permutations
from math import prod

import numpy as np

from vta_isa import Buffer as Memory
from vta_isa import CompileError, Machine
from vta_isa.enums import AluOp, FusedOp

from ..ir.affine import Linear, Ranges, from_linear, interval, linear
from ..ir.build import add, const, mul, seq
from ..ir.nodes import (
    Emit,
    Expr,
    For,
    LoopKind,
    Program,
    Seq,
    Stmt,
    TensorCall,
    UopKernel,
    UopLoop,
    UopPush,
    Var,
)
from ..ir.printer import to_text
from ..ir.simplify import simplify
from ..ir.visit import map_children, map_program, substitute, variables

MAX_ITERATIONS = (1 << 14) - 1  # iter_out and iter_in have 14 bits
DISTANCE = 3  # a destination may come back in the third micro-op of a published kernel


def fold_uops(program: Program, machine: Machine) -> Program:
    """Replace every nest of one tensorized call by instructions of few micro-ops.

        for y in range(7):                             kernel gemm: loop 7 (dst 14, src 16, wgt 0)
          for x in range(14):                                       loop 14 (dst 1, src 1, wgt 0)
            for dy, dx in kernel:                →       for dy in range(3):
              gemm(acc[y * 14 + x],                        for dx in range(3):
                   inp[(y + dy) * 16 + x + dx],              for c in range(4):
                   wgt[...])                                   uop acc[c * 98], inp[...], wgt[...]

    Loops whose steps are proportional are merged first. Two of the rest become the hardware loops,
    those that leave the fewest micro-ops; what does not fit one kernel stays a loop around it.
    Loops of a product, a reset or an element-wise operation may be reordered: every iteration
    adds to, clears or changes its own entry, in any order. Micro-ops are ordered so that no
    destination repeats within three, as the published machine demands; a machine with extensions
    cannot be that one, and is spared. Of a REQUANTIZE only the outer loop may move the bias.
    GEMMs behind each other that add, with the same hardware loops, become one.

    Outer variables in the indices become parameters of the kernel.
    """
    extended = any(machine.extensions.model_dump().values())
    rules = _Rules(machine.depth(Memory.UOP), 1 if extended else DISTANCE)
    return map_program(program, lambda body: _visit(body, rules, {}))


@dataclass(frozen=True)
class _Rules:
    """Micro-ops a kernel may have, and how many of them on a destination may come back."""

    depth: int
    distance: int


def _visit(stmt: Stmt, rules: _Rules, ranges: Ranges) -> Stmt:
    nest = _call_nest(stmt)
    if nest is not None:
        return _Kernel(stmt, *nest, rules, ranges).lower()
    if isinstance(stmt, For):
        ranges = {**ranges, stmt.var: (0, stmt.extent - 1)}
    new = map_children(stmt, lambda n: _visit(n, rules, ranges) if isinstance(n, Stmt) else n)
    return seq(_joined(new.stmts, rules)) if isinstance(new, Seq) else new


def _joined(stmts: Sequence[Stmt], rules: _Rules) -> list[Stmt]:
    """Neighbouring kernels that add with the same loops as one, as far as the memory allows."""
    result: list[Stmt] = []
    for stmt in stmts:
        last = result[-1] if result else None
        if isinstance(last, UopKernel) and isinstance(stmt, UopKernel):
            params = tuple(sorted({*last.params, *stmt.params}, key=lambda v: v.name))
            adds = last.emit == stmt.emit == Emit("gemm")
            fits = _pushes(last.body) + _pushes(stmt.body) <= rules.depth
            # The last micro-ops of one and the first of the other may share a destination.
            if adds and last.loops == stmt.loops and len(params) <= 1 and fits:
                if rules.distance == 1:
                    body = seq([last.body, stmt.body])
                    result[-1] = UopKernel(last.emit, last.loops, body, params)
                    continue
        result.append(stmt)
    return result


def _pushes(stmt: Stmt) -> int:
    """How many micro-ops a kernel's body records."""
    if isinstance(stmt, For):
        return stmt.extent * _pushes(stmt.body)
    return sum(map(_pushes, stmt.stmts)) if isinstance(stmt, Seq) else 1


def _call_nest(stmt: Stmt) -> tuple[list[tuple[Var, int]], TensorCall] | None:
    loops: list[tuple[Var, int]] = []
    while isinstance(stmt, For) and stmt.kind is not LoopKind.VTHREAD:
        loops.append((stmt.var, stmt.extent))
        stmt = stmt.body
    return (loops, stmt) if isinstance(stmt, TensorCall) else None


Steps = tuple[int, int, int]  # what one iteration adds to the dst, src and wgt index


@dataclass(frozen=True)
class _Loop:
    var: Var
    extent: int
    steps: Steps

    def absorbs(self, outer: _Loop) -> bool:
        """Whether ``outer`` around this loop is one longer loop."""
        proportional = all(
            o == self.extent * i for o, i in zip(outer.steps, self.steps, strict=True)
        )
        return proportional and self.extent * outer.extent <= MAX_ITERATIONS


@dataclass(frozen=True)
class _Folding:
    """Which loops go where; each list outermost first."""

    host: tuple[_Loop, ...]
    hardware: tuple[_Loop, ...]
    recorded: tuple[_Loop, ...]


class _Kernel:
    """One nest on its way to kernels."""

    def __init__(
        self,
        stmt: Stmt,
        loops: list[tuple[Var, int]],
        call: TensorCall,
        rules: _Rules,
        outer: Ranges,
    ) -> None:
        self.stmt = stmt
        self.rules = rules
        self.emit = call.intrinsic.emit
        self.indices = _operand_indices(call)
        moving = {var for var, extent in loops if extent > 1}
        unit: dict[Var, Expr] = {var: const(0) for var, extent in loops if extent == 1}
        forms = [linear(simplify(substitute(index, unit))) for index in self.indices]
        self.commutes = _commutes(self.emit, forms, dict(loops), outer)
        self.loops: list[_Loop] = []
        opaque = {
            v
            for form in forms
            for term in form.terms
            if not isinstance(term, Var)
            for v in variables(term)
        }
        self.host: list[_Loop] = []
        for var, extent in loops:
            if var not in moving:
                continue
            if var in opaque:
                self.host.append(_Loop(var, extent, (0, 0, 0)))
            else:
                dst, src, wgt = (form.terms.get(var, 0) for form in forms)
                self.loops.append(_Loop(var, extent, (dst, src, wgt)))
        folded = {loop.var for loop in self.loops}
        self.bases = [
            Linear(f.const, {t: c for t, c in f.terms.items() if t not in folded}) for f in forms
        ]
        if self.host and not self.commutes:
            raise self.error(f"the index is not affine in {self.host[0].var.name}")

    def error(self, reason: str) -> CompileError:
        return CompileError(f"uops: {reason}; in\n{to_text(self.stmt)}")

    def lower(self) -> Stmt:
        loops = [part for loop in self._merged() for part in self._split(loop)]
        folding = self._fold(loops)
        stmt: Stmt = self._kernel(folding)
        for loop in reversed([*self.host, *folding.host]):
            stmt = For(loop.var, loop.extent, stmt)
        return stmt

    def _merged(self) -> list[_Loop]:
        """Proportional neighbours as one loop; any two are neighbours where order is free."""
        loops = [self._forward(loop) for loop in self.loops]
        while True:
            pairs = (
                permutations(range(len(loops)), 2)
                if self.commutes
                else ((i, i + 1) for i in range(len(loops) - 1))
            )
            for o, i in pairs:
                if loops[i].absorbs(loops[o]):
                    longer = replace(loops[i], extent=loops[i].extent * loops[o].extent)
                    loops = [longer if k == i else x for k, x in enumerate(loops) if k != o]
                    break
            else:
                return loops

    def _forward(self, loop: _Loop) -> _Loop:
        """A loop whose steps are all backwards is run from its end, where order is free."""
        if not self.commutes or not min(loop.steps) < 0 or max(loop.steps) > 0:
            return loop
        last = loop.extent - 1
        self.bases = [
            base + Linear(step * last, {})
            for base, step in zip(self.bases, loop.steps, strict=True)
        ]
        dst, src, wgt = loop.steps
        return replace(loop, steps=(-dst, -src, -wgt))

    def _split(self, loop: _Loop) -> list[_Loop]:
        """``loop`` as loops short enough for the hardware, outermost first."""
        if loop.extent <= MAX_ITERATIONS:
            return [loop]
        inner = max(n for n in range(1, MAX_ITERATIONS + 1) if loop.extent % n == 0)
        dst, src, wgt = (step * inner for step in loop.steps)
        around = _Loop(Var(f"{loop.var.name}.outer"), loop.extent // inner, (dst, src, wgt))
        return [around, replace(loop, extent=inner)]

    # -----------------------------------------------------------------------------------------
    # Choosing
    # -----------------------------------------------------------------------------------------

    def _fold(self, loops: list[_Loop]) -> _Folding:
        """The best legal folding: fewest kernels, then fewest micro-ops, then as written."""
        candidates = sorted(self._candidates(loops), key=lambda c: c[0])
        for _, folding in candidates:
            ordered = self._ordered(folding)
            if ordered is not None:
                return ordered
        raise self.error("no order of the loops keeps equal destinations three micro-ops apart")

    def _candidates(self, loops: list[_Loop]) -> Iterator[tuple[tuple[int, ...], _Folding]]:
        numbers = range(len(loops))
        for size in range(len(loops) + 1):
            for host in combinations(numbers, size):
                if not self.commutes and host != tuple(range(size)):
                    continue
                rest = [i for i in numbers if i not in host]
                for pair in (p for most in (2, 1, 0) for p in combinations(rest, most)):
                    if not self.commutes and pair != tuple(rest[: len(pair)]):
                        continue
                    if any(min(loops[i].steps) < 0 for i in pair):
                        continue
                    recorded = tuple(loops[i] for i in rest if i not in pair)
                    uops = prod(loop.extent for loop in recorded)
                    if uops > self.rules.depth:
                        continue
                    hardware = self._arranged(tuple(loops[i] for i in pair), recorded)
                    if hardware is None:
                        continue
                    kernels = prod(loops[i].extent for i in host)
                    folding = _Folding(tuple(loops[i] for i in host), hardware, recorded)
                    yield (kernels, uops, *pair), folding

    def _arranged(
        self, hardware: tuple[_Loop, ...], recorded: tuple[_Loop, ...]
    ) -> tuple[_Loop, ...] | None:
        """The hardware loops; of a REQUANTIZE, the one that moves the bias outside, None if there
        is no way."""
        if self.emit.fused is None:
            return hardware
        moving = [loop for loop in hardware if loop.steps[1]]
        if len(moving) > 1 or any(loop.steps[1] for loop in recorded):
            return None
        others = [loop for loop in hardware if not loop.steps[1]]
        if not moving or (hardware[0] is moving[0] and others):
            return hardware
        if not others:  # the only loop of an ALU kernel is the inner one
            return (moving[0], _Loop(Var("once"), 1, (0, 0, 0)))
        return (moving[0], others[0]) if self.commutes else None

    def _ordered(self, folding: _Folding) -> _Folding | None:
        """``folding`` with its micro-ops in an order the runtime accepts, if there is one."""
        loops = folding.recorded
        # Loops that move the destination most steadily go inside: long ones first.
        orders: Iterator[Sequence[_Loop]]
        if self.commutes:
            by_length = sorted(loops, key=lambda x: (x.steps[0] != 0, x.extent))
            orders = iter([loops, by_length, *permutations(loops)])
        else:
            orders = iter([loops])
        for order in orders:
            if _spaced(order, self.rules.distance):
                return replace(folding, recorded=tuple(order))
        return None

    def _kernel(self, folding: _Folding) -> UopKernel:
        indices: list[Expr] = []
        for k, base in enumerate(self.bases):
            index = from_linear(base)
            for loop in (*folding.host, *folding.recorded):
                index = add(index, mul(loop.var, const(loop.steps[k])))
            indices.append(simplify(index))
        body: Stmt = UopPush(self.emit, *indices)
        for loop in reversed(folding.recorded):
            body = For(loop.var, loop.extent, body)
        own = {loop.var for loop in folding.recorded}
        params = {v for index in indices for v in variables(index)} - own
        return UopKernel(
            self.emit,
            tuple(UopLoop(loop.extent, *loop.steps) for loop in folding.hardware),
            body,
            tuple(sorted(params, key=lambda v: v.name)),
        )


def _operand_indices(call: TensorCall) -> tuple[Expr, Expr, Expr]:
    """The entry indices of dst, src and wgt; what an operation does not use is 0.

    With an immediate the source is the destination, which every implementation of the ISA reads.
    """
    entries = [region.start[0] for region in call.operands]
    emit = call.intrinsic.emit
    zero = const(0)
    if emit.mode == "gemm":
        return (entries[0], zero, zero) if emit.reset else (entries[0], entries[1], entries[2])
    if emit.imm is not None:
        return entries[0], zero if emit.fused else entries[0], zero
    return entries[0], entries[2], zero


def _commutes(emit: Emit, forms: Sequence[Linear], extents: dict[Var, int], outer: Ranges) -> bool:
    """Whether the iterations of a nest may run in any order.

    Products add up, resets and immediate operations only meet themselves. A tensor operation
    commutes with itself where it reads nothing that another iteration writes.
    """
    if emit.mode == "gemm" or emit.imm is not None:
        return True
    dst, src = forms[0], forms[1]
    if emit.alu_op in (AluOp.SHR, FusedOp.REQUANTIZE) and any(
        dst.terms.get(v, 0) == 0 for v in extents
    ):
        return False  # shifts of one entry by several amounts, left and right, or several biases
    own = {v: (0, n - 1) for v, n in extents.items()}
    inside = [Linear(0, {t: c for t, c in f.terms.items() if t in own}) for f in (dst, src)]
    apart = interval(from_linear(src + dst.scaled(-1) + inside[0] + inside[1].scaled(-1)), outer)
    reach = [interval(from_linear(form), own) for form in inside]
    if apart is None or reach[0] is None or reach[1] is None:
        return False
    (dst_low, dst_high), (src_low, src_high) = reach[0], reach[1]
    return apart[0] + src_low > dst_high or apart[1] + src_high < dst_low


def _spaced(order: Sequence[_Loop], distance: int) -> bool:
    """Whether no micro-op has the destination of one of the ``distance - 1`` before it."""
    dst = np.zeros(1, dtype=np.int64)
    for loop in order:
        dst = (dst[:, None] + np.arange(loop.extent) * loop.steps[0]).ravel()
    return not any(
        bool(np.any(dst[gap:] == dst[:-gap])) for gap in range(1, min(distance, dst.size))
    )
