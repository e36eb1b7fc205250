"""Let the first products of a reduction overwrite, where the machine can, so that resets go."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from vta_isa import Machine
from vta_isa.enums import Stage

from ..intrinsics import gemm_overwrite
from ..ir.affine import Linear, linear
from ..ir.build import add, const, mul, seq
from ..ir.nodes import Coproc, Expr, For, Intrinsic, Program, Region, Seq, Stmt, TensorCall, Var
from ..ir.simplify import simplify, simplify_stmt
from ..ir.visit import map_program, map_stmt, substitute, variables


def overwrite_first(program: Program, machine: Machine) -> Program:
    """Drop the reset in front of a product, and let the first step of the product overwrite.

        for y: reset acc[y]                        for y: overwrite acc[y], inp[y], wgt[0]
        for y: for k in range(9):           →      for y: for k in range(8):
          gemm acc[y], inp[y + k], wgt[k]            gemm acc[y], inp[y + k + 1], wgt[k + 1]

    A reduction over several loops leaves one nest for each of them. Both nests must reach the same
    accumulators, the reset each of them once; other resets stay. Runs when every compute block is
    what it will be, before tokens: what the reset waited for, the first product waits for.
    """
    if not machine.extensions.gemm_overwrite:
        return program
    intrinsic = gemm_overwrite(machine)

    def visit(stmt: Stmt) -> Stmt:
        if isinstance(stmt, Coproc) and stmt.stage is Stage.COMPUTE and isinstance(stmt.body, Seq):
            return replace(stmt, body=seq(_joined(list(stmt.body.stmts), intrinsic)))
        return stmt

    return map_program(program, lambda body: map_stmt(body, visit))


def _joined(stmts: list[Stmt], intrinsic: Intrinsic) -> list[Stmt]:
    result: list[Stmt] = []
    for stmt in stmts:
        reset, product = _nest(result[-1]) if result else None, _nest(stmt)
        if reset is not None and product is not None and _clears(reset, product):
            result.pop()
            result.extend(_split(product, intrinsic))
        else:
            result.append(stmt)
    return result


@dataclass(frozen=True)
class _Nest:
    """Loops around one GEMM, outermost first, and how its destination moves with them."""

    loops: tuple[For, ...]
    call: TensorCall
    dst: Linear

    def step(self, loop: For) -> int:
        return self.dst.terms.get(loop.var, 0)

    @property
    def start(self) -> Linear:
        """The destination of the first iteration."""
        own = {loop.var for loop in self.loops}
        return Linear(self.dst.const, {t: c for t, c in self.dst.terms.items() if t not in own})

    @property
    def moves(self) -> list[tuple[int, int]]:
        """Step and extent of every loop that moves the destination, smallest step first."""
        return sorted(
            (self.step(loop), loop.extent)
            for loop in self.loops
            if loop.extent > 1 and self.step(loop)
        )


def _nest(stmt: Stmt) -> _Nest | None:
    nested: list[For] = []
    while isinstance(stmt, For):
        nested.append(stmt)
        stmt = stmt.body
    if not isinstance(stmt, TensorCall) or stmt.intrinsic.emit.mode != "gemm":
        return None
    region = stmt.operands[0]
    return _Nest(tuple(nested), stmt, linear(simplify(_flat(region))))


def _flat(region: Region) -> Expr:
    """The number of the entry in its buffer."""
    index: Expr = const(0)
    sizes = region.buffer.shape[:-2]
    for axis, start in enumerate(region.start[:-2]):
        index = add(index, mul(start, const(prod(sizes[axis + 1 :]))))
    return index


def _clears(reset: _Nest, product: _Nest) -> bool:
    """Whether ``reset`` zeroes what ``product`` adds to, each accumulator once, nothing else."""
    first, second = reset.call.intrinsic.emit, product.call.intrinsic.emit
    if not first.reset or second.reset or second.overwrite:
        return False
    if reset.call.operands[0].buffer != product.call.operands[0].buffer:
        return False
    if (reset.start, reset.moves) != (product.start, product.moves):
        return False
    for nest in (reset, product):
        opaque = {v for t in nest.dst.terms if not isinstance(t, Var) for v in variables(t)}
        if opaque & {loop.var for loop in nest.loops}:
            return False
    reached = 0
    for step, extent in reset.moves:
        if step <= reached:
            return False
        reached += step * (extent - 1)
    return True


def _split(product: _Nest, intrinsic: Intrinsic) -> list[Stmt]:
    """The first iteration of all reducing loops together, overwriting, then the others."""
    reducing = [loop.var for loop in product.loops if not product.step(loop)]
    zeros: dict[Var, Expr] = {var: const(0) for var in reducing}
    parts = [_part(product, zeros, {}, replace(product.call, intrinsic=intrinsic), "first")]
    for number in reversed(range(len(reducing))):
        fixed: dict[Var, Expr] = {var: const(0) for var in reducing[:number]}
        parts.append(_part(product, fixed, {reducing[number]: 1}, product.call, f"rest{number}"))
    return [part for part in parts if part is not None]


def _part(
    nest: _Nest, fixed: dict[Var, Expr], skipped: dict[Var, int], call: TensorCall, suffix: str
) -> Stmt | None:
    """The iterations with the variables ``fixed``, less the first ``skipped`` of others."""
    names: dict[Var, Expr] = dict(fixed)
    kept: list[tuple[Var, int]] = []
    for loop in nest.loops:
        if loop.var in fixed:
            continue
        extent = loop.extent - skipped.get(loop.var, 0)
        if extent < 1:
            return None
        var = Var(f"{loop.var.name}.{suffix}", loop.var.dtype)
        names[loop.var] = add(var, const(loop.extent - extent))
        kept.append((var, extent))
    stmt: Stmt = substitute(call, names)
    for var, extent in reversed(kept):
        stmt = For(var, extent, stmt)
    return simplify_stmt(stmt)
