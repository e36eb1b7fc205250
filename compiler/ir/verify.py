"""Checks that a program is well formed; says everything that is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from vta_isa.enums import Buffer as Memory
from vta_isa.errors import CompileError
from vta_isa.machine import Machine

from .arithmetic import DTYPES
from .nodes import (
    INDEX,
    Alloc,
    Binary,
    Buffer,
    Expr,
    For,
    If,
    Load,
    Not,
    Produce,
    Program,
    Region,
    Scope,
    Select,
    Stmt,
    Store,
    TensorCall,
    Var,
)
from .printer import buffer_text, to_text
from .visit import children, walk

_MEMORIES = {Scope.INP: Memory.INP, Scope.WGT: Memory.WGT, Scope.ACC: Memory.ACC}


def verify(program: Program, machine: Machine | None = None) -> None:
    """Raise ``CompileError`` with every fault of ``program``.

    Loop and stage names are unique, extents at least 1, variables bound, buffers declared before
    they are used and by one shape, indices of the right number and type, operand types equal.
    With a ``machine``, scratchpad buffers end in one entry of their scratchpad and have its type.
    """
    checker = _Checker(machine)
    for buffer in program.params:
        checker.declare(buffer)
        if buffer.scope is not Scope.GLOBAL:
            checker.faults.append(f"parameter {buffer_text(buffer)} must be in {Scope.GLOBAL}")
    for buffer in program.outputs:
        if buffer not in program.params:
            checker.faults.append(f"output {buffer_text(buffer)} is not a parameter")
    checker.statement(program.body, {b.name: b for b in program.params}, frozenset())
    if checker.faults:
        listing = "\n".join(f"  {fault}" for fault in checker.faults)
        raise CompileError(f"{program.name} is not well formed:\n{listing}")


@dataclass
class _Checker:
    machine: Machine | None
    faults: list[str] = field(default_factory=list)
    buffers: set[str] = field(default_factory=set)
    loops: set[str] = field(default_factory=set)
    stages: set[str] = field(default_factory=set)

    # -- declarations -------------------------------------------------------------------------

    def unique(self, what: str, name: str, seen: set[str]) -> None:
        if name in seen:
            self.faults.append(f"two {what} are named {name}")
        seen.add(name)

    def declare(self, buffer: Buffer) -> None:
        self.unique("buffers", buffer.name, self.buffers)
        text = buffer_text(buffer)
        if not buffer.shape or any(extent < 1 for extent in buffer.shape):
            self.faults.append(f"buffer {text}: extents are at least 1, axes at least one")
        if buffer.dtype not in DTYPES:
            self.faults.append(f"buffer {text}: unknown type {buffer.dtype}")
        if self.machine is not None and buffer.scope in _MEMORIES:
            memory = _MEMORIES[buffer.scope]
            entry, dtype = self.machine.entry_shape(memory), str(self.machine.dtype(memory))
            if buffer.shape[-2:] != entry or buffer.dtype != dtype:
                self.faults.append(
                    f"buffer {text}: does not end in one {memory.name} entry, "
                    f"{dtype}[{entry[0]}, {entry[1]}]"
                )

    # -- statements ---------------------------------------------------------------------------

    def statement(self, stmt: Stmt, known: Mapping[str, Buffer], bound: frozenset[Var]) -> None:
        match stmt:
            case Alloc(buffer):
                self.declare(buffer)
                known = {**known, buffer.name: buffer}
            case For(var, extent):
                self.unique("loops", var.name, self.loops)
                if extent < 1:
                    self.faults.append(f"loop {var.name}: extent {extent} is less than 1")
                bound = bound | {var}
            case Produce(name):
                self.unique("stages", name, self.stages)
            case Store(buffer, indices, value):
                self.access(buffer, indices, known)
                self.same("store to " + buffer.name, buffer.dtype, value.dtype)
            case If(cond):
                self.same(f"if {to_text(cond)}", "bool", cond.dtype)
            case TensorCall():
                self.call(stmt, known)
        for child in children(stmt):
            if isinstance(child, Stmt):
                self.statement(child, known, bound)
            else:
                self.expression(child, known, bound)

    def call(self, call: TensorCall, known: Mapping[str, Buffer]) -> None:
        formals = call.intrinsic.formals
        if len(formals) != len(call.operands):
            self.faults.append(
                f"{call.intrinsic.name}: {len(call.operands)} operands for {len(formals)} formals"
            )
        for formal, region in zip(formals, call.operands, strict=False):
            self.region(call.intrinsic.name, formal, region, known)

    def region(
        self, name: str, formal: Buffer, region: Region, known: Mapping[str, Buffer]
    ) -> None:
        buffer = region.buffer
        self.access(buffer, region.start, known)
        where = f"{name}: operand {formal.name} in {buffer_text(buffer)}"
        self.same(where, formal.dtype, buffer.dtype)
        if formal.scope is not buffer.scope:
            self.faults.append(f"{where}: must be in {formal.scope}")
        leading = len(region.shape) - len(formal.shape)
        if leading < 0 or region.shape != (1,) * leading + formal.shape:
            self.faults.append(
                f"{where}: the box {list(region.shape)} is not one {list(formal.shape)}"
            )

    # -- expressions --------------------------------------------------------------------------

    def expression(self, expr: Expr, known: Mapping[str, Buffer], bound: frozenset[Var]) -> None:
        for node in walk(expr):
            match node:
                case Var(name):
                    if node not in bound:
                        self.faults.append(f"variable {name} is used outside its loop")
                case Load(buffer, indices):
                    self.access(buffer, indices, known)
                case Binary(op, a, b):
                    self.same(f"{op} in {to_text(node)}", a.dtype, b.dtype)
                case Select(cond, a, b):
                    self.same(f"condition of {to_text(node)}", "bool", cond.dtype)
                    self.same(to_text(node), a.dtype, b.dtype)
                case Not(a):
                    self.same(to_text(node), "bool", a.dtype)

    def access(
        self, buffer: Buffer, indices: tuple[Expr, ...], known: Mapping[str, Buffer]
    ) -> None:
        declared = known.get(buffer.name)
        if declared is None:
            self.faults.append(f"buffer {buffer.name} is used outside its allocation")
        elif declared != buffer:
            self.faults.append(
                f"buffer {buffer_text(buffer)} is declared as {buffer_text(declared)}"
            )
        if len(indices) != len(buffer.shape):
            self.faults.append(
                f"{buffer.name}: {len(indices)} indices for {len(buffer.shape)} axes"
            )
        for index in indices:
            self.same(f"index {to_text(index)} of {buffer.name}", INDEX, index.dtype)

    def same(self, where: str, wanted: str, came: str) -> None:
        if wanted != came:
            self.faults.append(f"{where}: {came} where {wanted} is needed")
