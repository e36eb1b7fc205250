"""tensorize: a nest of loops as one call of a hardware intrinsic that means the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import permutations

from vta_isa.errors import ScheduleError

from ..ir.arithmetic import convert, is_integer
from ..ir.build import ZERO, all_of, guarded, sub
from ..ir.nodes import (
    Binary,
    BinaryOp,
    Buffer,
    Cast,
    Const,
    Expr,
    For,
    If,
    Intrinsic,
    Load,
    Not,
    Program,
    Region,
    Select,
    Stmt,
    Store,
    TensorCall,
    Var,
)
from ..ir.printer import buffer_text, to_text
from ..ir.simplify import simplify
from ..ir.visit import map_expr, substitute, variables
from .nests import find_loop, replace_loop, where

_COMMUTATIVE = {
    BinaryOp.ADD,
    BinaryOp.MUL,
    BinaryOp.MIN,
    BinaryOp.MAX,
    BinaryOp.AND,
    BinaryOp.OR,
    BinaryOp.EQ,
    BinaryOp.NE,
}


def apply(program: Program, stage: str, loop: str, intrinsic: Intrinsic) -> Program:
    """Replace the nest from ``loop`` inwards by a call of ``intrinsic``.

    for b: for o: for k:                        →   gemm(c[i, 0, 0:+4], a[i, 0, 0:+4],
        c[i, b, o] = c[i, b, o] + a[..] * w[..]          w[j, 0:+4, 0:+4])

    The nest and the intrinsic's body must be the same up to the names and order of loops, loops
    of extent 1, how indices are written, and the order of operands of + and the like. Tests that
    do not depend on the replaced loops stay around the call.
    """
    target = find_loop(program, stage, loop)
    found = _perfect(target)
    if found is None:
        raise _failure(stage, target, intrinsic, "it is no perfect nest around one assignment")
    inner = {node.var for node in found.loops}
    for test in found.tests:
        if variables(test) & inner:
            reason = f"`if {to_text(test)}` cuts iterations of the nest off"
            raise _failure(stage, target, intrinsic, f"{reason}; split it into whole tiles")
    call = _match(stage, target, found, intrinsic)
    return replace_loop(program, target.var, lambda _: guarded(all_of(found.tests), call))


@dataclass(frozen=True)
class _Nest:
    """A perfect nest taken apart; loops of extent 1 are gone from ``store``."""

    loops: tuple[For, ...]
    tests: tuple[Expr, ...]
    store: Store

    @property
    def axes(self) -> list[tuple[Var, int]]:
        return [(node.var, node.extent) for node in self.loops if node.extent > 1]


def _perfect(stmt: Stmt) -> _Nest | None:
    nested: list[For] = []
    tests: list[Expr] = []
    while not isinstance(stmt, Store):
        match stmt:
            case For(_, _, body):
                nested.append(stmt)
                stmt = body
            case If(cond, then, None):
                tests.append(cond)
                stmt = then
            case _:
                return None
    unit = {node.var: ZERO for node in nested if node.extent == 1}
    store = substitute(stmt, unit)
    indices = tuple(simplify(index) for index in store.indices)
    store = Store(store.buffer, indices, _normal(store.value))
    return _Nest(tuple(nested), tuple(tests), store)


def _normal(value: Expr) -> Expr:
    """One way to write a value: no neutral elements, subtraction of a constant as addition."""

    def step(expr: Expr) -> Expr:
        match expr:
            case Binary(BinaryOp.SUB, a, Const(number), dtype) if is_integer(dtype):
                return Binary(BinaryOp.ADD, a, Const(convert(-number, dtype), dtype), dtype)
        return expr

    return map_expr(simplify(value), step)


def _match(stage: str, target: For, nest: _Nest, intrinsic: Intrinsic) -> TensorCall:
    pattern = _perfect(intrinsic.body)
    assert pattern is not None, f"the body of {intrinsic.name} is no perfect nest"
    first: str | None = None
    for names in _namings(pattern.axes, nest.axes):
        matcher = _Matcher({f.name: f for f in intrinsic.formals}, {var for var, _ in nest.axes})
        difference = matcher.store(substitute(pattern.store, names), nest.store)
        if difference is None:
            regions = matcher.regions
            return TensorCall(intrinsic, tuple(regions[f.name] for f in intrinsic.formals))
        first = first or difference
    if first is None:
        have = ", ".join(f"{var.name} {extent}" for var, extent in nest.axes) or "none above 1"
        need = ", ".join(f"{var.name} {extent}" for var, extent in pattern.axes) or "none above 1"
        first = f"the loops differ: the nest has {have}, {intrinsic.name} has {need}"
    raise _failure(stage, target, intrinsic, first)


def _namings(
    pattern: list[tuple[Var, int]], nest: list[tuple[Var, int]]
) -> Iterator[Mapping[Var, Expr]]:
    """Every way to pair the loops of the intrinsic with loops of the same extent."""
    if len(pattern) != len(nest):
        return
    for order in permutations(nest):
        if all(a == b for (_, a), (_, b) in zip(pattern, order, strict=True)):
            yield {p: n for (p, _), (n, _) in zip(pattern, order, strict=True)}


def _failure(stage: str, target: For, intrinsic: Intrinsic, reason: str) -> ScheduleError:
    formals = "\n".join(f"    {buffer_text(formal)}" for formal in intrinsic.formals)
    return ScheduleError(
        f"{where(stage, target)}: cannot be tensorized as {intrinsic.name}: {reason}\n"
        f"  the nest is\n{_indented(to_text(target))}\n"
        f"  {intrinsic.name} is\n{formals}\n{_indented(to_text(intrinsic.body))}"
    )


def _indented(text: str) -> str:
    return "\n".join("    " + line for line in text.splitlines())


@dataclass
class _Matcher:
    """Compares a body, its loops renamed to those of the nest, with the nest.

    Every method returns None for a match, or the first difference in words. ``regions`` collects
    what each formal stands for.
    """

    formals: Mapping[str, Buffer]
    inner: set[Var]
    regions: dict[str, Region] = field(default_factory=dict)

    def store(self, pattern: Store, nest: Store) -> str | None:
        formal = self.formals[pattern.buffer.name]
        bound = self.operand(formal, pattern.indices, nest.buffer, nest.indices)
        return bound or self.value(pattern.value, nest.value)

    def value(self, pattern: Expr, nest: Expr) -> str | None:
        differ = (
            f"first difference: {to_text(pattern)} in the intrinsic, {to_text(nest)} in the nest"
        )
        match pattern, nest:
            case Load(formal, at), Load(buffer, indices):
                return self.operand(self.formals[formal.name], at, buffer, indices)
            case Binary(op, a, b), Binary(other, c, d) if op is other:
                return self.binary(op, (a, b), (c, d))
            case Cast(a, dtype), Cast(c, other_dtype) if dtype == other_dtype:
                return self.value(a, c)
            case Not(a), Not(c):
                return self.value(a, c)
            case Select(p, a, b), Select(q, c, d):
                return self.value(p, q) or self.value(a, c) or self.value(b, d)
        return None if pattern == nest else differ

    def binary(
        self, op: BinaryOp, pattern: tuple[Expr, Expr], nest: tuple[Expr, Expr]
    ) -> str | None:
        before = dict(self.regions)
        straight = self.value(pattern[0], nest[0]) or self.value(pattern[1], nest[1])
        if straight is None or op not in _COMMUTATIVE:
            return straight
        self.regions = dict(before)
        crossed = self.value(pattern[0], nest[1]) or self.value(pattern[1], nest[0])
        if crossed is not None:
            self.regions = before
            return straight
        return None

    def operand(
        self,
        formal: Buffer,
        at: tuple[Expr, ...],
        buffer: Buffer,
        indices: tuple[Expr, ...],
    ) -> str | None:
        """Bind ``formal[at]`` to ``buffer[indices]``: its last axes are one whole operand."""
        what = f"first difference: operand {formal.name} against {buffer.name}: "
        for name, wanted, came in (
            ("scope", formal.scope, buffer.scope),
            ("type", formal.dtype, buffer.dtype),
        ):
            if wanted != came:
                return f"{what}its {name} is {came}, not {wanted}"
        leading = len(buffer.shape) - len(formal.shape)
        if leading < 0 or buffer.shape[leading:] != formal.shape:
            return f"{what}its shape {list(buffer.shape)} does not end in {list(formal.shape)}"
        for index in indices[:leading]:
            if variables(index) & self.inner:
                return f"{what}index {to_text(index)} changes inside the nest"
        for wanted_index, index in zip(at, indices[leading:], strict=True):
            if simplify(sub(index, wanted_index)) != ZERO:
                return f"{what}index {to_text(index)} where {to_text(wanted_index)} is needed"
        start = (*indices[:leading], *(ZERO for _ in formal.shape))
        region = Region(buffer, start, (1,) * leading + formal.shape)
        if self.regions.setdefault(formal.name, region) != region:
            return f"{what}two different elements of it are used"
        return None
