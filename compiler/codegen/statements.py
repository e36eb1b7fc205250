"""Statements of the IR as LLVM instructions."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from math import prod

from vta_isa import CompileError
from vta_runtime.calls import CALLS

from ..ir.nodes import (
    COMMAND,
    Alloc,
    Buffer,
    Call,
    Expr,
    For,
    If,
    Load,
    LoopKind,
    Produce,
    Seq,
    Stmt,
    Store,
    UopKernel,
)
from ..ir.printer import to_text
from ..ir.visit import walk
from .expressions import Expressions
from .types import element_bytes, memory_type
from .writer import FunctionWriter

KEYS = (
    99  # closure values per call site: the published runtime takes keys below 100, key = value + 1
)
STACK_BYTES = 16 * 1024  # allocations up to this size go on the stack
PARALLEL_FOR = "vta.parallel_for"
"""``void (function, environment, extent)``, provided by ``codegen.parallel``."""

_C_TYPES = {
    ctypes.c_void_p: "ptr",
    ctypes.c_uint32: "i32",
    ctypes.c_int32: "i32",
    ctypes.c_int: "i32",
    ctypes.c_size_t: "i64",
}


@dataclass
class Scope:
    """What code of one function can name."""

    variables: dict[str, str] = field(default_factory=dict)  # loop variables -> i64
    extents: dict[str, int] = field(default_factory=dict)  # and how far they run
    pointers: dict[str, str] = field(default_factory=dict)  # buffers -> address for the CPU
    handles: dict[str, str] = field(default_factory=dict)  # buffers -> what the runtime is given

    def copy(self) -> Scope:
        return Scope(
            dict(self.variables), dict(self.extents), dict(self.pointers), dict(self.handles)
        )


class Statements:
    """Writes statements into one function."""

    def __init__(self, out: FunctionWriter, scope: Scope):
        self.out = out
        self.scope = scope

    @property
    def values(self) -> Expressions:
        return Expressions(self.out, self.scope.variables, self.scope.pointers)

    def statement(self, stmt: Stmt) -> None:
        match stmt:
            case For():
                self.loop(stmt)
            case Store(buffer, indices, value):
                self.values.store(buffer, indices, value)
            case Seq(stmts):
                for item in stmts:
                    self.statement(item)
            case If(cond, then, orelse):
                self.branch(cond, then, orelse)
            case Alloc(buffer, body):
                self.allocate(buffer, body)
            case Produce(_, body):
                self.statement(body)
            case Call(name, args):
                self.call(name, args)
            case UopKernel():
                self.kernel(stmt)
            case _:
                raise CompileError(
                    f"codegen: {type(stmt).__name__} should have been lowered; in\n{to_text(stmt)}"
                )

    # -- control ------------------------------------------------------------------------------

    def loop(self, loop: For) -> None:
        """Iterations of vectorized and parallel loops are independent of each other.

        LLVM is told so of the accesses to buffers, which is all it needs; telling it to vectorize
        would let it reorder floating-point sums.
        """
        if loop.kind is LoopKind.PARALLEL and not calls_runtime(loop.body):
            self.parallel(loop)
            return
        out, metadata, around = self.out, "", self.out.access
        if loop.kind is LoopKind.UNROLL:
            metadata = out.module.loop_metadata('!"llvm.loop.unroll.full"')
        elif loop.kind is LoopKind.VECTORIZE:
            group = out.module.access_group()
            metadata = out.module.loop_metadata(f'!"llvm.loop.parallel_accesses", {group}')
            out.access = f", !llvm.access.group {group}"
        out.loop("0", str(loop.extent), lambda i: self.iteration(loop, i), metadata)
        out.access = around

    def iteration(self, loop: For, index: str) -> None:
        name = loop.var.name
        self.scope.variables[name] = index
        self.scope.extents[name] = loop.extent
        self.statement(loop.body)
        del self.scope.variables[name]

    def branch(self, cond: Expr, then: Stmt, orelse: Stmt | None) -> None:
        out = self.out
        yes, after = out.label(), out.label()
        no = after if orelse is None else out.label()
        out.branch(self.values.truth(cond), yes, no)
        out.start(yes)
        self.statement(then)
        out.jump(after)
        if orelse is not None:
            out.start(no)
            self.statement(orelse)
            out.jump(after)
        out.start(after)

    def parallel(self, loop: For) -> None:
        """The body as ``void body(environment, begin, end)``, run in chunks by a thread pool.

        The environment is an array of 64-bit words: loop variables, then buffer addresses.
        """
        out, scope = self.out, self.scope
        names = [name for name in scope.variables if name != COMMAND.name]
        buffers = list(scope.pointers)
        environment = out.slot(f"[{max(1, len(names) + len(buffers))} x i64]")
        for at, name in enumerate(names):
            out.do(f"store i64 {scope.variables[name]}, ptr {_word(out, environment, at)}")
        for at, name in enumerate(buffers, len(names)):
            out.do(f"store ptr {scope.pointers[name]}, ptr {_word(out, environment, at)}")

        function = out.module.unique("parallel")
        inner = FunctionWriter(
            out.module, f"define internal void @{function}(ptr %environment, i64 %begin, i64 %end)"
        )
        inside = Scope(extents=dict(scope.extents))
        for at, name in enumerate(names):
            inside.variables[name] = inner.let(f"load i64, ptr {_word(inner, '%environment', at)}")
        for at, name in enumerate(buffers, len(names)):
            inside.pointers[name] = inner.let(f"load ptr, ptr {_word(inner, '%environment', at)}")
        body = Statements(inner, inside)
        inner.loop("%begin", "%end", lambda i: body.iteration(loop, i))
        inner.finish("void")

        run = out.module.declare(PARALLEL_FOR, "void", ["ptr", "ptr", "i64"])
        out.do(f"call void {run}(ptr @{function}, ptr {environment}, i64 {loop.extent})")

    # -- memory -------------------------------------------------------------------------------

    def allocate(self, buffer: Buffer, body: Stmt) -> None:
        out, name = self.out, buffer.name
        size = prod(buffer.shape) * element_bytes(buffer.dtype)
        if name in device_buffers(body):
            handle = self.runtime("VTABufferAlloc", [str(size)])
            self.scope.handles[name] = handle
            if name in host_buffers(body):
                self.scope.pointers[name] = self.cpu_pointer(handle)
            self.statement(body)
            self.runtime("VTABufferFree", [handle])
            self.scope.handles.pop(name)
        elif size <= STACK_BYTES:
            kind = f"[{prod(buffer.shape)} x {memory_type(buffer.dtype)}]"
            self.scope.pointers[name] = out.slot(kind, align=64)
            self.statement(body)
        else:
            out.module.declare("malloc", "ptr", ["i64"])
            out.module.declare("free", "void", ["ptr"])
            self.scope.pointers[name] = out.let(f"call noalias ptr @malloc(i64 {size})")
            self.statement(body)
            out.do(f"call void @free(ptr {self.scope.pointers[name]})")
        self.scope.pointers.pop(name, None)

    def cpu_pointer(self, handle: str) -> str:
        return self.runtime("VTABufferCPUPtr", [self.command(), handle])

    # -- the runtime --------------------------------------------------------------------------

    def command(self) -> str:
        return self.scope.variables[COMMAND.name]

    def runtime(self, name: str, operands: list[str]) -> str:
        """A call of the runtime with operands of its types."""
        call = CALLS[name]
        kinds = [_C_TYPES[kind] for _, kind in call.arguments]
        result = "void" if call.result is None else _C_TYPES[call.result]
        function = self.out.module.declare(name, result, kinds)
        args = ", ".join(f"{k} {v}" for k, v in zip(kinds, operands, strict=True))
        text = f"call {result} {function}({args})"
        if result != "void":
            return self.out.let(text)
        self.out.do(text)
        return ""

    def call(self, name: str, args: tuple[Expr | Buffer, ...]) -> None:
        operands: list[str] = []
        for arg, (_, kind) in zip(args, CALLS[name].arguments, strict=True):
            if isinstance(arg, Buffer):
                operands.append(self.scope.handles[arg.name])
                continue
            value = self.values.value(arg)
            if _C_TYPES[kind] == "i32":
                number = value.lstrip("-").isdigit()
                value = value if number else self.out.let(f"trunc i64 {value} to i32")
            operands.append(value)
        self.runtime(name, operands)

    def kernel(self, kernel: UopKernel) -> None:
        """``VTAPushGEMMOp(&handle, finit, signature, nbytes)`` with the recording as ``finit``.

        The kernel's parameters, as one number, choose a handle and a closure value below
        ``KEYS``: so any number of values can be told apart. The signature holds the closure
        value, which the runtime reads, and then the parameters, which only ``finit`` reads.
        """
        out, module = self.out, self.out.module
        params = kernel.params
        total = prod(self.scope.extents[p.name] for p in params)
        function = self.recording(kernel)
        handles = module.unique("handles")
        count = -(-total // KEYS)
        module.parts.append(f"@{handles} = internal global [{count} x ptr] zeroinitializer")
        handle, signature, nbytes = f"@{handles}", "null", "0"
        if params:
            number = "0"
            for p in params:
                number = out.let(f"mul i64 {number}, {self.scope.extents[p.name]}")
                number = out.let(f"add i64 {number}, {self.scope.variables[p.name]}")
            site = out.let(f"udiv i64 {number}, {KEYS}")
            handle = _word(out, handle, site)
            key = out.let(f"trunc i64 {out.let(f'urem i64 {number}, {KEYS}')} to i32")
            signature, nbytes = out.slot(f"[{1 + len(params)} x i64]"), "4"
            out.do(f"store i32 {key}, ptr {signature}")
            for at, p in enumerate(params, 1):
                value = self.scope.variables[p.name]
                out.do(f"store i64 {value}, ptr {_word(out, signature, at)}")
        push = "VTAPushGEMMOp" if kernel.emit.mode == "gemm" else "VTAPushALUOp"
        self.runtime(push, [handle, f"@{function}", signature, nbytes])

    def recording(self, kernel: UopKernel) -> str:
        """``int finit(void *signature)``: the calls that record the kernel."""
        name = self.out.module.unique("finit")
        inner = FunctionWriter(self.out.module, f"define internal i32 @{name}(ptr %signature)")
        scope = Scope()
        for at, p in enumerate(kernel.params, 1):
            scope.variables[p.name] = inner.let(f"load i64, ptr {_word(inner, '%signature', at)}")
        Statements(inner, scope).statement(kernel.body)
        inner.finish("i32 0")
        return name


def _word(out: FunctionWriter, base: str, at: int | str) -> str:
    """The address of a 64-bit word behind ``base``."""
    return out.let(f"getelementptr inbounds i64, ptr {base}, i64 {at}")


def calls_runtime(stmt: Stmt) -> bool:
    return any(isinstance(n, (Call, UopKernel)) for n in walk(stmt))


def device_buffers(stmt: Stmt) -> set[str]:
    """Buffers the accelerator touches: those handed to calls."""
    return {
        arg.name
        for n in walk(stmt)
        if isinstance(n, Call)
        for arg in n.args
        if isinstance(arg, Buffer)
    }


def host_buffers(stmt: Stmt) -> set[str]:
    """Buffers the host touches."""
    return {n.buffer.name for n in walk(stmt) if isinstance(n, (Load, Store))}
