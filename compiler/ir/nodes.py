"""The loop IR: frozen nodes for expressions, statements and programs.

One program is a nest of loops over buffers. Schedule primitives rewrite it, passes lower it, the
interpreter executes it at every step, the code generator turns it into LLVM IR. The nodes come in
three groups: *pure* nodes that any schedule may hold, *tensorized* calls to an intrinsic, and
*machine* nodes that only passes introduce.

Every loop variable name is unique in its program. Extents are integers: a tail that does not fill
its tile is guarded by ``If``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum

from vta_isa.enums import AluOp, FusedOp, Stage
from vta_runtime.requantize import Requantize

# ---------------------------------------------------------------------------------------------
# Buffers
# ---------------------------------------------------------------------------------------------


class Scope(StrEnum):
    """Where a buffer lives: DRAM, or one of the scratchpads of the machine."""

    GLOBAL = "global"
    INP = "inp"
    WGT = "wgt"
    ACC = "acc"


@dataclass(frozen=True)
class Buffer:
    """A dense row-major array; ``name`` is unique in its program.

    A buffer in a scratchpad scope ends in two axes that are exactly one entry of that scratchpad
    (``machine.entry_shape``); its leading axes, row-major, count entries.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    scope: Scope = Scope.GLOBAL


# ---------------------------------------------------------------------------------------------
# Expressions
# ---------------------------------------------------------------------------------------------

INDEX = "int64"  # the type of loop variables and buffer indices


class BinaryOp(StrEnum):
    """Operations of two operands. Division and remainder round towards minus infinity;
    integer arithmetic wraps at the width of its type; ``>>`` is arithmetic. Comparisons and the
    two logical operations yield ``bool``."""

    ADD = "+"
    SUB = "-"
    MUL = "*"
    FLOORDIV = "//"
    FLOORMOD = "%"
    DIV = "/"  # floating point only
    MIN = "min"
    MAX = "max"
    SHR = ">>"
    SHL = "<<"
    LT = "<"
    LE = "<="
    EQ = "=="
    NE = "!="
    AND = "and"
    OR = "or"


class Expr:
    """A scalar value; ``dtype`` is a NumPy type name or ``bool``."""

    dtype: str


@dataclass(frozen=True)
class Const(Expr):
    value: int | float
    dtype: str = INDEX


@dataclass(frozen=True)
class Var(Expr):
    """A loop variable, named ``stage.axis`` where a schedule made it."""

    name: str
    dtype: str = INDEX


@dataclass(frozen=True)
class Binary(Expr):
    op: BinaryOp
    a: Expr
    b: Expr
    dtype: str = INDEX


@dataclass(frozen=True)
class Not(Expr):
    a: Expr
    dtype: str = "bool"


@dataclass(frozen=True)
class Select(Expr):
    """``a if cond else b``; only the chosen side is evaluated: the other may be out of bounds."""

    cond: Expr
    a: Expr
    b: Expr
    dtype: str = INDEX


@dataclass(frozen=True)
class Cast(Expr):
    """``a`` converted to ``dtype``; integers keep their low bits."""

    a: Expr
    dtype: str


@dataclass(frozen=True)
class Load(Expr):
    buffer: Buffer
    indices: tuple[Expr, ...]

    @property
    def dtype(self) -> str:  # type: ignore[override]
        return self.buffer.dtype


# ---------------------------------------------------------------------------------------------
# Statements any schedule may hold
# ---------------------------------------------------------------------------------------------


class Stmt:
    """Something executed."""


class LoopKind(Enum):
    """What runs the iterations of a loop."""

    SERIAL = "serial"
    UNROLL = "unroll"
    VECTORIZE = "vectorize"
    PARALLEL = "parallel"
    VTHREAD = "vthread"  # virtual threads: iterations interleaved, on-chip buffers separate


@dataclass(frozen=True)
class For(Stmt):
    """``for var in range(extent): body``; ``extent`` is at least 1."""

    var: Var
    extent: int
    body: Stmt
    kind: LoopKind = LoopKind.SERIAL
    annotations: Mapping[str, object] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class Store(Stmt):
    buffer: Buffer
    indices: tuple[Expr, ...]
    value: Expr


@dataclass(frozen=True)
class Seq(Stmt):
    stmts: tuple[Stmt, ...]


@dataclass(frozen=True)
class If(Stmt):
    cond: Expr
    then: Stmt
    orelse: Stmt | None = None


@dataclass(frozen=True)
class Alloc(Stmt):
    """``buffer`` exists while ``body`` runs; its contents are undefined at the start."""

    buffer: Buffer
    body: Stmt


@dataclass(frozen=True)
class Produce(Stmt):
    """The nest that computes one tensor (or its reduction's initial value, ``name.init``).

    Primitives find nests by this name.
    """

    name: str
    body: Stmt


# ---------------------------------------------------------------------------------------------
# Tensorized statements
# ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Region:
    """A box of a buffer: ``start[i] .. start[i] + shape[i]`` on every axis.

    For a scratchpad operand the box is one entry: leading extents are 1, the last two are the
    entry's shape and start at 0.
    """

    buffer: Buffer
    start: tuple[Expr, ...]
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Emit:
    """The micro-op an intrinsic becomes."""

    mode: str  # "gemm" or "alu"
    reset: bool = False
    alu_op: AluOp | FusedOp | None = None
    imm: int | None = None  # immediate operand of an ALU micro-op
    overwrite: bool = False  # of a GEMM: sums replace what is there
    fused: Requantize | None = None  # the settings of a REQUANTIZE; without a bias, imm is 0


@dataclass(frozen=True)
class Intrinsic:
    """A hardware operation: what it means, as a loop nest over ``formals``, and what it emits.

    Formals of a GEMM are ``(acc, inp, wgt)``, of a reset ``(acc,)``, of an ALU operation
    ``(dst, x)`` with an immediate and ``(dst, x, y)`` without; the destination comes first. The
    ``y`` of a REQUANTIZE is its bias.
    """

    name: str
    formals: tuple[Buffer, ...]
    body: Stmt
    emit: Emit


@dataclass(frozen=True)
class TensorCall(Stmt):
    """``intrinsic`` applied to boxes of buffers, one per formal."""

    intrinsic: Intrinsic
    operands: tuple[Region, ...]


# ---------------------------------------------------------------------------------------------
# Statements only passes introduce
# ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DmaLoad(Stmt):
    """One LOAD: ``y_size`` rows of ``x_size`` entries from DRAM, with zero padding around them.

    ``sram_index`` is an entry index relative to the start of ``sram``; ``dram_offset`` counts
    entries of ``sram``'s scratchpad from the start of ``dram``. Sizes, stride and pads are in
    entries and rows.
    """

    sram: Buffer
    sram_index: Expr
    dram: Buffer
    dram_offset: Expr
    x_size: Expr
    y_size: Expr
    x_stride: Expr
    x_pad: tuple[Expr, Expr]
    y_pad: tuple[Expr, Expr]
    widen: bool = False  # 8-bit scalars in DRAM into the accumulator memory


@dataclass(frozen=True)
class DmaStore(Stmt):
    """One STORE: the narrowed entries of an accumulator buffer to rows in DRAM."""

    sram: Buffer
    sram_index: Expr
    dram: Buffer
    dram_offset: Expr  # OUT entries from the start of ``dram``
    x_size: Expr
    y_size: Expr
    x_stride: Expr


@dataclass(frozen=True)
class Coproc(Stmt):
    """A run of statements that all execute on one stage of the accelerator, tokens included."""

    stage: Stage
    body: Stmt


@dataclass(frozen=True)
class DepPush(Stmt):
    """The producer's last instruction so far gives a token to ``consumer``."""

    producer: Stage
    consumer: Stage


@dataclass(frozen=True)
class DepPop(Stmt):
    """The consumer's next instruction waits for a token of ``producer``."""

    producer: Stage
    consumer: Stage


@dataclass(frozen=True)
class Synchronize(Stmt):
    """Run everything queued so far on the accelerator and wait for it."""


@dataclass(frozen=True)
class UopLoop:
    """A hardware loop level of a micro-op kernel, with the factor it adds to each index."""

    extent: int
    dst_factor: int
    src_factor: int
    wgt_factor: int


@dataclass(frozen=True)
class UopPush(Stmt):
    """One micro-op recorded; indices are absolute entry indices."""

    emit: Emit
    dst: Expr
    src: Expr
    wgt: Expr


@dataclass(frozen=True)
class UopKernel(Stmt):
    """A GEMM or ALU instruction: at most two hardware ``loops`` around the micro-ops of ``body``.

    ``body`` holds ``For``, ``Seq`` and ``UopPush`` only. It is recorded the first time it is met;
    ``params`` are the outer variables it depends on, at most one.
    """

    emit: Emit
    loops: tuple[UopLoop, ...]
    body: Stmt
    params: tuple[Var, ...] = ()


@dataclass(frozen=True)
class Call(Stmt):
    """A runtime call by its C name; a string argument names a buffer whose handle is passed."""

    name: str
    args: tuple[Expr | Buffer, ...]


COMMAND = Var("cmd", "handle")
"""The calling thread's command queue, the first argument of most calls."""


# ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Program:
    """A function over DRAM buffers. ``params`` are inputs then outputs, in call order."""

    name: str
    params: tuple[Buffer, ...]
    body: Stmt
    outputs: tuple[Buffer, ...] = ()
