"""Turn copy nests between DRAM and the scratchpads into LOAD and STORE."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce
from math import prod

from vta_isa import Buffer as Memory
from vta_isa import CompileError, Machine

from ..ir.affine import Linear, from_linear, interval, linear
from ..ir.build import (
    add,
    all_of,
    binary,
    const,
    guarded,
    less,
    less_equal,
    mul,
    seq,
    sub,
)
from ..ir.nodes import (
    INDEX,
    Binary,
    BinaryOp,
    Buffer,
    Cast,
    Const,
    DmaLoad,
    DmaStore,
    Expr,
    For,
    If,
    Load,
    LoopKind,
    Program,
    Scope,
    Select,
    Stmt,
    Store,
    Var,
)
from ..ir.printer import to_text
from ..ir.simplify import simplify
from ..ir.visit import map_children, map_program, variables, walk
from .accesses import MEMORY_OF

MAX_SIZE = (1 << 16) - 1  # x_size, y_size and x_stride have 16 bits
MAX_PAD = (1 << 4) - 1  # a padding has 4

Ranges = Mapping[Var, tuple[int, int]]


def inject_dma(program: Program, machine: Machine) -> Program:
    """Replace every copy nest by as few 2-D transfers as cover it.

        for y in range(9):                              dma a[0] <- A[(y0 - 1 + pad) * 56]
          for x in range(56):                             y_size = 9 - pad, x_size = 56,
            for b, k in entry:                   →        y_pad = (pad, 0)
              a[y, x, b, k] =                             where pad = max(1 - y0, 0)
                A[y0 + y - 1, x, b, k] if 1 <= y0 + y
                else 0

    The value is a load of the other side, or zero outside a box of the indices, or zero everywhere;
    a load may widen 8-bit scalars into ``acc``, a store narrows. The two dimensions of a transfer
    are found by merging axes that are contiguous on both sides; what is left stays a loop around
    it. Padding that changes from iteration to iteration is an expression of the outer loops.
    """
    anywhere = next((param for param in program.params if param.scope is Scope.GLOBAL), None)
    return map_program(program, lambda body: _visit(body, {}, machine, anywhere))


def _visit(stmt: Stmt, ranges: Ranges, machine: Machine, anywhere: Buffer | None) -> Stmt:
    """``anywhere`` is what a LOAD names that reads nothing."""
    nest = _copy_nest(stmt)
    if nest is not None:
        return _Transfer(stmt, nest, ranges, machine, anywhere).lower()
    match stmt:
        case For(var, extent, body):
            inner = {**ranges, var: (0, extent - 1)}
            return replace(stmt, body=_visit(body, inner, machine, anywhere))
        case Store(buffer) if buffer.scope is not Scope.GLOBAL:
            raise CompileError(
                _message(stmt, f"{buffer.name} is on chip, the host cannot write it")
            )
        case Store(value=value) if _scratch_loads(value):
            name = _scratch_loads(value)[0].buffer.name
            raise CompileError(_message(stmt, f"{name} is on chip, the host cannot read it"))
    return map_children(
        stmt, lambda n: _visit(n, ranges, machine, anywhere) if isinstance(n, Stmt) else n
    )


def _message(stmt: Stmt, reason: str) -> str:
    return f"dma: {reason}; in\n{to_text(stmt)}"


# ---------------------------------------------------------------------------------------------
# Recognising a copy
# ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Nest:
    """A perfect nest around one ``Store``, with the conditions under which it copies."""

    loops: tuple[tuple[Var, int], ...]
    guards: tuple[Expr, ...]
    store: Store


def _copy_nest(stmt: Stmt) -> _Nest | None:
    """The nest, if ``stmt`` is one and copies into or out of a scratchpad."""
    loops: list[tuple[Var, int]] = []
    guards: list[Expr] = []
    while True:
        match stmt:
            case For(var, extent, body, kind) if kind is not LoopKind.VTHREAD:
                loops.append((var, extent))
                stmt = body
            case If(cond, then, None):
                guards.append(cond)
                stmt = then
            case Store(buffer, _, value):
                if buffer.scope is not Scope.GLOBAL or isinstance(_source(value), Load):
                    scratch = buffer.scope is not Scope.GLOBAL or _scratch_loads(value)
                    return _Nest(tuple(loops), tuple(guards), stmt) if scratch else None
                return None
            case _:
                return None


def _scratch_loads(value: Expr) -> list[Load]:
    return [n for n in walk(value) if isinstance(n, Load) and n.buffer.scope is not Scope.GLOBAL]


def _source(value: Expr) -> Expr:
    """What is copied, beneath conversions and selections."""
    while True:
        match value:
            case Cast(a) | Select(_, a, _):
                value = a
            case _:
                return value


def _conjuncts(cond: Expr) -> list[Expr]:
    if isinstance(cond, Binary) and cond.op is BinaryOp.AND:
        return _conjuncts(cond.a) + _conjuncts(cond.b)
    return [cond]


# ---------------------------------------------------------------------------------------------
# From indices to dimensions
# ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Bounds:
    """The part ``low <= var < high`` of an axis that holds data; both may lie outside it."""

    low: Expr
    high: Expr


@dataclass(frozen=True)
class _Axis:
    """A loop of the nest that counts entries, with its step on both sides."""

    var: Var
    extent: int
    sram_step: int
    dram_step: int
    bounds: _Bounds | None = None

    def absorbs(self, outer: _Axis) -> bool:
        """Whether ``outer`` around this axis is one longer axis."""
        return (
            self.bounds is None
            and outer.bounds is None
            and outer.sram_step == self.extent * self.sram_step
            and outer.dram_step == self.extent * self.dram_step
            and outer.extent * self.extent <= MAX_SIZE
        )

    def merged(self, outer: _Axis) -> _Axis:
        return replace(self, extent=self.extent * outer.extent)


_UNIT = _Axis(Var("one"), 1, 1, 1)


@dataclass(frozen=True)
class _Part:
    """The data of one axis of a transfer: ``before`` entries of padding, ``size`` of data, ..."""

    before: Expr
    size: Expr
    after: Expr


class _Transfer:
    """One copy nest on its way to instructions."""

    def __init__(
        self, stmt: Stmt, nest: _Nest, ranges: Ranges, machine: Machine, anywhere: Buffer | None
    ):
        self.stmt = stmt
        self.nest = nest
        self.ranges = {**ranges, **{var: (0, extent - 1) for var, extent in nest.loops}}
        value = nest.store.value
        source = _source(value)
        self.loads = nest.store.buffer.scope is not Scope.GLOBAL
        to = nest.store.buffer, nest.store.indices
        # All padding: as if read from an image of the scratchpad, which is then never read.
        self.all_zero = self.loads and source == Const(0, to[0].dtype) and anywhere is not None
        if self.all_zero:
            source = Load(replace(to[0], scope=Scope.GLOBAL), to[1])
        if not isinstance(source, Load):
            raise self.error("the value is not a plain copy of one buffer")
        taken = source.buffer, source.indices
        (self.sram, sram_at), (self.dram, dram_at) = (to, taken) if self.loads else (taken, to)
        if self.dram.scope is not Scope.GLOBAL:
            raise self.error(f"{self.sram.name} and {self.dram.name} are both on chip")
        conditions = [c for guard in nest.guards for c in _conjuncts(guard)]
        conditions += self._conditions(value)
        self._check_types(machine)

        rows, cols = machine.entry_shape(MEMORY_OF[self.sram.scope])
        self.entry = rows * cols
        around = self._coupled(conditions)
        self.around = [loop for loop in nest.loops if loop[0] in around]
        self.loops = [loop for loop in nest.loops if loop[0] not in around]
        moving = {var for var, _ in self.loops}
        sram_form = self._flat(self.sram, sram_at)
        dram_form = self._flat(self.dram, dram_at)
        self.sram_base, sram_steps = self._split(sram_form, moving, self.sram)
        self.dram_base, dram_steps = self._split(dram_form, moving, self.dram)
        self.outer_conditions: list[Expr] = []
        bounds = self._bounds(conditions, moving)
        if self.all_zero and anywhere is not None:
            self.dram = anywhere
        self.axes = self._axes(sram_steps, dram_steps, bounds)

    def error(self, reason: str) -> CompileError:
        return CompileError(_message(self.stmt, reason))

    def _conditions(self, value: Expr) -> list[Expr]:
        """Conditions of the selections around the copied value."""
        match value:
            case Cast(a):
                return self._conditions(a)
            case Select(cond, a, b):
                if not (isinstance(b, Const) and b.value == 0):
                    raise self.error("padding must be the constant 0")
                if not self.loads:
                    raise self.error("a store cannot write padding")
                return _conjuncts(cond) + self._conditions(a)
        return []

    def _check_types(self, machine: Machine) -> None:
        memory = MEMORY_OF[self.sram.scope]
        on_chip = machine.dtype(memory).name
        if self.sram.dtype != on_chip:
            raise self.error(f"{self.sram.name} holds {self.sram.dtype}, {memory.name} {on_chip}")
        self.widen = False
        if self.loads:
            self.widen = memory is Memory.ACC and self.dram.dtype == "int8" and on_chip == "int32"
            if self.dram.dtype != on_chip and not self.widen:
                raise self.error(
                    f"{self.dram.name} holds {self.dram.dtype}, {memory.name} {on_chip}"
                )
            return
        if memory is not Memory.ACC:
            raise self.error(f"only acc can be stored, {self.sram.name} is in {self.sram.scope}")
        out = machine.dtype(Memory.OUT).name
        if self.dram.dtype != out:
            raise self.error(f"{self.dram.name} holds {self.dram.dtype}, a store writes {out}")

    def _flat(self, buffer: Buffer, indices: tuple[Expr, ...]) -> Linear:
        form = Linear(0, {})
        for axis, index in enumerate(indices):
            form = form + linear(self._simple(index)).scaled(prod(buffer.shape[axis + 1 :]))
        return form

    def _split(self, form: Linear, moving: set[Var], buffer: Buffer) -> tuple[Expr, dict[Var, int]]:
        """The scalar index as (entry index of the outer loops, step in scalars per own loop)."""
        steps: dict[Var, int] = {}
        fixed = Linear(form.const, {})
        for term, step in form.terms.items():
            if isinstance(term, Var) and term in moving:
                steps[term] = step
            elif variables(term) & moving:
                raise self.error(f"the index of {buffer.name} is not affine in {to_text(term)}")
            else:
                fixed = fixed + Linear(0, {term: step})
        if fixed.const % self.entry or any(c % self.entry for c in fixed.terms.values()):
            raise self.error(
                f"{buffer.name} is not accessed by whole entries of {self.entry} scalars"
            )
        entries = Linear(
            fixed.const // self.entry, {t: c // self.entry for t, c in fixed.terms.items()}
        )
        return from_linear(entries), steps

    def _axes(
        self, sram: dict[Var, int], dram: dict[Var, int], bounds: dict[Var, _Bounds]
    ) -> list[_Axis]:
        """The loops that count entries, innermost in the scratchpad first."""
        covered = 1
        axes: list[_Axis] = []
        loops = [(v, n) for v, n in self.loops if n > 1]
        for var, extent in sorted(loops, key=lambda loop: abs(sram.get(loop[0], 0))):
            on_chip, off_chip = sram.get(var, 0), dram.get(var, 0)
            if on_chip <= 0:
                what = "backwards" if on_chip else "again and again"
                raise self.error(f"loop {var.name} walks {self.sram.name} {what}")
            if on_chip < self.entry:
                if on_chip != covered or off_chip != covered:
                    raise self.error(
                        f"loop {var.name} is inside an entry and steps {on_chip} scalars on chip, "
                        f"{off_chip} in DRAM; an entry is {self.entry} contiguous scalars"
                    )
                if var in bounds:
                    raise self.error(f"loop {var.name} is inside an entry and cannot be padded")
                covered *= extent
            elif on_chip % self.entry or off_chip % self.entry:
                raise self.error(f"loop {var.name} does not step whole entries of {self.entry}")
            else:
                steps = on_chip // self.entry, off_chip // self.entry
                axes.append(_Axis(var, extent, *steps, bounds.get(var)))
        if covered != self.entry:
            raise self.error(f"an entry is {self.entry} scalars, the inner loops copy {covered}")
        return axes

    # -----------------------------------------------------------------------------------------
    # Padding
    # -----------------------------------------------------------------------------------------

    def _bounds(self, conditions: list[Expr], moving: set[Var]) -> dict[Var, _Bounds]:
        extents = dict(self.loops)
        low: dict[Var, list[Expr]] = {}
        high: dict[Var, list[Expr]] = {}
        for condition in conditions:
            margin = self._margin(condition)
            if self._never_negative(margin):
                continue
            form = linear(margin)
            own = [t for t in form.terms if variables(t) & moving]
            if not own:  # decided by the loops around: the copy is data as a whole or not at all
                self.outer_conditions.append(condition)
                continue
            if len(own) != 1 or not isinstance(own[0], Var):
                raise self.error(
                    f"the condition {to_text(condition)} is not a bound of one loop of the copy"
                )
            var = own[0]
            step = form.terms[var]
            rest = from_linear(form + Linear(0, {var: -step}))
            if step > 0:  # var >= ceil(-rest / step)
                bound = sub(const(0), _floordiv(rest, step))
                low.setdefault(var, []).append(bound)
            else:  # var <= floor(rest / -step)
                high.setdefault(var, []).append(add(_floordiv(rest, -step), const(1)))
        return {
            var: _Bounds(
                self._extreme(BinaryOp.MAX, [const(0), *low.get(var, [])]),
                self._extreme(BinaryOp.MIN, [const(extents[var]), *high.get(var, [])]),
            )
            for var in low.keys() | high.keys()
        }

    def _coupled(self, conditions: list[Expr]) -> set[Var]:
        """Loops that stay around the transfer, since a condition bounds an inner one by them."""
        own = [var for var, extent in self.nest.loops if extent > 1]
        found: set[Var] = set()
        for condition in conditions:
            margin = self._margin(condition)
            if not self._never_negative(margin):
                found.update([var for var in own if var in variables(margin)][:-1])
        return found

    def _never_negative(self, margin: Expr) -> bool:
        known = interval(margin, self.ranges)
        return known is not None and known[0] >= 0

    def _margin(self, condition: Expr) -> Expr:
        """An index that is at least 0 where ``condition`` holds."""
        match condition:
            case Binary(BinaryOp.LE, a, b) if a.dtype == INDEX:
                return self._simple(sub(b, a))
            case Binary(BinaryOp.LT, a, b) if a.dtype == INDEX:
                return self._simple(sub(sub(b, a), const(1)))
            case Const(value):
                return const(0 if value else -1)
        raise self.error(f"the condition {to_text(condition)} is not a bound of an index")

    def _extreme(self, op: BinaryOp, values: list[Expr]) -> Expr:
        """``min`` or ``max`` of ``values``, without those that never decide."""
        return self._simple(reduce(lambda a, b: binary(op, a, b), values))

    def _simple(self, expr: Expr) -> Expr:
        return simplify(expr, self.ranges)

    def _part(self, axis: _Axis) -> _Part:
        """Padding and data of an axis that becomes a dimension of the transfer."""
        zero, extent = const(0), const(axis.extent)
        if axis.bounds is None:
            return _Part(zero, extent, zero)
        before = self._extreme(BinaryOp.MIN, [extent, axis.bounds.low])
        end = self._extreme(BinaryOp.MAX, [before, axis.bounds.high])
        return _Part(before, self._simple(sub(end, before)), self._simple(sub(extent, end)))

    def _upper(self, expr: Expr) -> int:
        known = interval(expr, self.ranges)
        if known is None:
            raise self.error(f"{to_text(expr)} has no known upper bound")
        return known[1]

    def _never_empty(self, size: Expr) -> bool:
        known = interval(size, self.ranges)
        return known is not None and known[0] > 0

    def _pads_fit(self, axis: _Axis) -> bool:
        part = self._part(axis)
        return self._upper(part.before) <= MAX_PAD and self._upper(part.after) <= MAX_PAD

    # -----------------------------------------------------------------------------------------
    # Instructions
    # -----------------------------------------------------------------------------------------

    def lower(self) -> Stmt:
        """The loops that are left around one transfer."""
        x, y, outer = self._dimensions()
        if self.loads and not self._pads_fit(x) and y is not _UNIT:
            # Rows with wide padding are loaded one by one.
            self.ranges[y.var] = (0, y.extent - 1)  # longer than its loop was where axes merged
            y, outer = _UNIT, [y, *outer]
        stmt = self._load(x, y, outer) if self.loads else self._store(x, y, outer)
        for axis in outer:
            stmt = For(axis.var, axis.extent, stmt)
        for var, extent in reversed(self.around):
            stmt = For(var, extent, stmt)
        return stmt

    def _dimensions(self) -> tuple[_Axis, _Axis, list[_Axis]]:
        """The axes that become x and y, and the loops around them from the inside out."""
        rest = list(self.axes)
        x = y = _UNIT
        if (
            rest
            and rest[0].sram_step == 1
            and rest[0].dram_step == 1
            and rest[0].extent <= MAX_SIZE
        ):
            x, rest = self._grow(rest)
        if rest and self._is_second(rest[0], x):
            y, rest = self._grow(rest)
        return x, y, rest

    def _grow(self, axes: list[_Axis]) -> tuple[_Axis, list[_Axis]]:
        axis, rest = axes[0], axes[1:]
        while rest and axis.absorbs(rest[0]):
            axis, rest = axis.merged(rest[0]), rest[1:]
        return axis, rest

    def _is_second(self, axis: _Axis, x: _Axis) -> bool:
        if axis.sram_step != x.extent or not 0 <= axis.dram_step <= MAX_SIZE:
            return False
        if axis.extent > MAX_SIZE:
            return False
        # Rows in SRAM are dense: a store whose rows are cut short cannot have a second one.
        return self._pads_fit(axis) if self.loads else x.bounds is None

    def _at(self, base: Expr, outer: list[_Axis], side: str) -> Expr:
        for axis in outer:
            base = add(base, mul(axis.var, const(getattr(axis, side))))
        return base

    def _load(self, x: _Axis, y: _Axis, outer: list[_Axis]) -> Stmt:
        sram_index = self._simple(self._at(self.sram_base, outer, "sram_step"))
        if self.all_zero:
            return self._zeros(sram_index, x, y)
        px, py = self._part(x), self._part(y)
        stride = y.dram_step if y.extent > 1 else x.extent
        offset = self._at(self.dram_base, outer, "dram_step")
        offset = add(offset, mul(px.before, const(x.dram_step)))
        offset = add(offset, mul(py.before, const(y.dram_step)))
        if not self._never_empty(py.size):
            # Where no row is taken, the row that would come first may lie before the buffer.
            offset = self._extreme(BinaryOp.MAX, [const(0), offset])
        inside = self._inside(outer)
        if not self._never_empty(px.size):
            inside.append(less(const(0), px.size))
        start, wide = sram_index, not self._pads_fit(x)
        if wide:  # zeros all over, and the data on top of them
            start = self._simple(add(sram_index, px.before))
            px = _Part(const(0), px.size, const(0))
        load = DmaLoad(
            self.sram,
            start,
            self.dram,
            self._simple(offset),
            px.size,
            py.size,
            const(stride),
            (px.before, px.after),
            (py.before, py.after),
            self.widen,
        )
        if not inside and not wide:
            return load
        zeros = self._zeros(sram_index, x, y)
        if wide:
            return seq([zeros, guarded(all_of(inside), load)])
        return If(all_of(inside), load, zeros)

    def _inside(self, outer: list[_Axis]) -> list[Expr]:
        """Conditions under which an iteration of the loops around has data at all."""
        conditions = list(self.outer_conditions)
        for axis in outer:
            if axis.bounds is not None:
                if axis.bounds.low != const(0):
                    conditions.append(less_equal(axis.bounds.low, axis.var))
                if axis.bounds.high != const(axis.extent):
                    conditions.append(less(axis.var, axis.bounds.high))
        return conditions

    def _zeros(self, sram_index: Expr, x: _Axis, y: _Axis) -> Stmt:
        """A LOAD of one row of padding: x_size must not be 0, that would be a no-op; y_size may.

        The tile's rows are dense in the scratchpad, so they can be one, as long as the field holds.
        """
        zero, size = const(0), x.extent * y.extent
        if size > MAX_SIZE:
            raise self.error(f"a tile of {size} entries may lie in the padding as a whole")
        pads = (zero, zero), (const(1), zero)
        shape = const(size), zero, const(size)
        return DmaLoad(self.sram, sram_index, self.dram, zero, *shape, *pads, self.widen)

    def _store(self, x: _Axis, y: _Axis, outer: list[_Axis]) -> Stmt:
        px, py = self._part(x), self._part(y)
        stride = y.dram_step if y.extent > 1 else x.extent
        sram = self._at(self.sram_base, outer, "sram_step")
        dram = self._at(self.dram_base, outer, "dram_step")
        for axis, part in ((x, px), (y, py)):
            sram = add(sram, mul(part.before, const(axis.sram_step)))
            dram = add(dram, mul(part.before, const(axis.dram_step)))
        store = DmaStore(
            self.sram,
            self._simple(sram),
            self.dram,
            self._simple(dram),
            px.size,
            py.size,
            const(stride),
        )
        inside = self._inside(outer)
        inside += [
            less(const(0), part.size) for part in (px, py) if not self._never_empty(part.size)
        ]
        return If(all_of(inside), store) if inside else store


def _floordiv(expr: Expr, by: int) -> Expr:
    return expr if by == 1 else binary(BinaryOp.FLOORDIV, expr, const(by))
