"""The instructions and the micro-op of a machine, as tables, and how to write them in Python.

Source: published VTA instruction set, revision B. Index widths follow the machine's buffers;
everything else is fixed.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from .enums import AluOp, Buffer, FusedOp, LowKind, Opcode, Stage
from .errors import EncodingError
from .layout import Field, Layout, Slot
from .suggest import did_you_mean

if TYPE_CHECKING:
    from .machine import Machine

INSN_BITS = 128
INSN_BYTES = INSN_BITS // 8
"""Of an instruction, in a stream and in DRAM."""
INSN_UNIT_BITS = 64  # no field of an instruction crosses a multiple of this
UOP_BITS = 32
UOP_BYTES = UOP_BITS // 8
"""Of a micro-op in DRAM."""
SRAM_ADDRESS_BITS = 16
IMMEDIATE_BITS = 16
SHIFT_BITS = 5  # of REQUANTIZE, which shifts right only

# fmt: off
PREFIX = (
    Field("opcode",     3, Opcode),
    Field("pop_prev",   1),          # wait for a token of the stage before this one
    Field("pop_next",   1),          # wait for a token of the stage after this one
    Field("push_prev",  1),          # give a token to the stage before, when done
    Field("push_next",  1),          # give a token to the stage after, when done
)
FLAGS = tuple(field.name for field in PREFIX if field.width == 1)

MEM = Layout.packed("MEM", INSN_BITS, INSN_UNIT_BITS, (
    *PREFIX,
    Field("buffer",       3, Buffer),
    Field("sram_base",   SRAM_ADDRESS_BITS, unit="entry"),  # first entry of `buffer` touched
    Field("dram_base",   32, unit="entry", hint="place the data lower in DRAM"),
    Field("y_size",      16, unit="row", hint="split the tile into shorter ones"),
    Field("x_size",      16, unit="entry", hint="split the tile into narrower ones"),
    Field("x_stride",    16, unit="entry", hint="move the rows one instruction each"),
    Field("y_pad_before", 4, unit="row"),
    Field("y_pad_after",  4, unit="row"),
    Field("x_pad_before", 4, unit="entry"),
    Field("x_pad_after",  4, unit="entry"),
), doc="LOAD and STORE: copy a 2-D tile between DRAM and one SRAM")

FINISH = Layout.packed("FINISH", INSN_BITS, INSN_UNIT_BITS, PREFIX,
                       doc="FINISH: the program is done; last instruction of a stream")
# fmt: on


@dataclass(frozen=True)
class IndexBits:
    """log2 of the entries of each buffer: all in which the encodings of machines differ."""

    uop: int
    inp: int
    wgt: int
    acc: int


@dataclass(frozen=True)
class Layouts:
    """Every word of one machine's instruction set."""

    mem: Layout
    gemm: Layout
    alu: Layout
    finish: Layout
    uop: Layout
    requantize: Layout | None = None  # of machines with that extension

    def __iter__(self) -> Iterator[Layout]:
        words = (self.mem, self.gemm, self.alu, self.requantize, self.finish, self.uop)
        return (word for word in words if word is not None)

    def of(self, opcode: int, alu_op: int = 0) -> Layout | None:
        """The layout of instructions with this opcode; None where the opcode is undefined.

        `alu_op` matters where the opcode is ALU: REQUANTIZE has fields of its own.
        """
        match opcode:
            case Opcode.LOAD | Opcode.STORE:
                return self.mem
            case Opcode.GEMM:
                return self.gemm
            case Opcode.ALU:
                fused = alu_op == FusedOp.REQUANTIZE and self.requantize is not None
                return self.requantize if fused else self.alu
            case Opcode.FINISH:
                return self.finish
        return None


def gemm_layout(bits: IndexBits) -> Layout:
    return Layout.packed(
        "GEMM",
        INSN_BITS,
        INSN_UNIT_BITS,
        (*_loop_fields(bits), *_factors("src", bits.inp), *_factors("wgt", bits.wgt)),
        doc="GEMM: multiply INP by WGT entries and add into ACC, or reset ACC",
    )


def alu_layout(bits: IndexBits) -> Layout:
    return Layout.packed(
        "ALU",
        INSN_BITS,
        INSN_UNIT_BITS,
        (
            *_loop_fields(bits),
            *_factors("src", bits.acc),
            Field("alu_op", 3, AluOp),
            Field("use_imm", 1),
            Field(
                "imm", IMMEDIATE_BITS, signed=True, hint="split the constant over two operations"
            ),
        ),
        doc="ALU: combine ACC entries with each other or with a constant",
    )


def overwrite_layout(bits: IndexBits) -> Layout:
    """GEMM of machines with ``extensions.gemm_overwrite``; every one has a bit to spare."""
    return gemm_layout(bits).extended("GEMM", INSN_UNIT_BITS, (Field("overwrite", 1),))


def requantize_layout(bits: IndexBits) -> Layout:
    """ALU with ``alu_op`` REQUANTIZE, of machines with ``extensions.alu_requantize``.

    Everything that ALU has stays where it is, but for ``src_factor_in``, which makes room, and
    ``imm``, whose bits but the sign hold ``high``.
    """
    word = alu_layout(bits).extended(
        "REQUANTIZE",
        INSN_UNIT_BITS,
        (Field("shift", SHIFT_BITS), Field("low_kind", 2, LowKind)),
        without=("src_factor_in",),
        doc="ALU REQUANTIZE: add a bias to ACC entries, shift right, clip",
    )
    renamed = {
        "alu_op": Field("alu_op", 3, FusedOp),
        "imm": Field("high", IMMEDIATE_BITS - 1, hint="clip by MIN instead"),
    }
    slots = (Slot(renamed.get(name, s.field), s.start) for name, s in word.slots.items())
    return Layout.placed(word.name, word.bits, slots, word.doc)


def uop_layout(bits: IndexBits) -> Layout:
    return Layout.packed(
        "UOP",
        UOP_BITS,
        UOP_BITS,
        (
            Field("dst", bits.acc, unit="acc entry"),
            Field("src", max(bits.acc, bits.inp), unit="inp or acc entry"),
            Field("wgt", bits.wgt, unit="wgt entry"),
        ),
        doc="micro-op: the indices that GEMM and ALU start from",
    )


def _loop_fields(bits: IndexBits) -> tuple[Field, ...]:
    """What GEMM and ALU share."""
    hint = "split the loop over two instructions"
    return (
        *PREFIX,
        Field("reset", 1),
        Field("uop_begin", bits.uop, unit="uop"),
        Field("uop_end", bits.uop + 1, unit="uop"),  # exclusive, so it must reach the depth itself
        Field("iter_out", 14, unit="iteration", hint=hint),
        Field("iter_in", 14, unit="iteration", hint=hint),
        *_factors("dst", bits.acc),
    )


def _factors(operand: str, width: int) -> tuple[Field, Field]:
    """How far the operand's index moves per outer and per inner iteration."""
    return (
        Field(f"{operand}_factor_out", width, unit="entry per iteration"),
        Field(f"{operand}_factor_in", width, unit="entry per iteration"),
    )


@lru_cache(maxsize=256)
def layouts_of_index_bits(
    bits: IndexBits, overwrite: bool = False, requantize: bool = False
) -> Layouts:
    """Raises LayoutOverflow where these widths do not fit the words."""
    return Layouts(
        mem=MEM,
        gemm=overwrite_layout(bits) if overwrite else gemm_layout(bits),
        alu=alu_layout(bits),
        finish=FINISH,
        uop=uop_layout(bits),
        requantize=requantize_layout(bits) if requantize else None,
    )


def layouts(machine: "Machine") -> Layouts:
    """The words of `machine`'s instruction set."""
    added = machine.extensions
    return layouts_of_index_bits(machine.all_index_bits, added.gemm_overwrite, added.alu_requantize)


def alu_operations(machine: "Machine") -> tuple[AluOp | FusedOp, ...]:
    """Every operation that ``alu_op`` may name on `machine`."""
    return (*AluOp, *(FusedOp if machine.extensions.alu_requantize else ()))


def _record_dtype() -> np.dtype[np.void]:
    """Every field of every instruction once, in the order of the layouts."""
    widths = IndexBits(1, 1, 1, 1)
    names: dict[str, str] = {}
    for layout in (MEM, overwrite_layout(widths), alu_layout(widths), requantize_layout(widths)):
        for name, slot in layout.slots.items():
            # 32 unsigned bits do not fit a signed 32-bit column.
            names[name] = "<i8" if slot.field.width >= 32 else "<i4"
    return np.dtype(list(names.items()), align=True)


INSN_DTYPE = _record_dtype()
"""One decoded instruction; fields that are not of the instruction's kind are 0."""

Insn = dict[str, int]
"""One instruction as its fields that are not 0 (and the opcode)."""


class Flags(TypedDict, total=False):
    """Dependence tokens an instruction takes before it starts and gives when it is done."""

    pop_prev: bool
    pop_next: bool
    push_prev: bool
    push_next: bool


def load(
    buffer: Buffer,
    *,
    sram_base: int,
    dram_base: int,
    x_size: int,
    y_size: int = 1,
    x_stride: int | None = None,
    y_pad: tuple[int, int] = (0, 0),
    x_pad: tuple[int, int] = (0, 0),
    **flags: Unpack[Flags],
) -> Insn:
    """LOAD of `y_size` rows of `x_size` entries, `x_stride` (default `x_size`) entries apart."""
    return _insn(
        Opcode.LOAD,
        flags,
        buffer=buffer,
        sram_base=sram_base,
        dram_base=dram_base,
        y_size=y_size,
        x_size=x_size,
        x_stride=x_size if x_stride is None else x_stride,
        y_pad_before=y_pad[0],
        y_pad_after=y_pad[1],
        x_pad_before=x_pad[0],
        x_pad_after=x_pad[1],
    )


def store(
    *,
    sram_base: int,
    dram_base: int,
    x_size: int,
    y_size: int = 1,
    x_stride: int | None = None,
    **flags: Unpack[Flags],
) -> Insn:
    """STORE of OUT entries to `y_size` rows, `x_stride` (default `x_size`) entries apart."""
    return _insn(
        Opcode.STORE,
        flags,
        buffer=Buffer.OUT,
        sram_base=sram_base,
        dram_base=dram_base,
        y_size=y_size,
        x_size=x_size,
        x_stride=x_size if x_stride is None else x_stride,
    )


def gemm(
    *,
    uops: tuple[int, int],
    iters: tuple[int, int] = (1, 1),
    dst: tuple[int, int] = (0, 0),
    src: tuple[int, int] = (0, 0),
    wgt: tuple[int, int] = (0, 0),
    reset: bool = False,
    overwrite: bool = False,
    **flags: Unpack[Flags],
) -> Insn:
    """GEMM over uops begin..end (exclusive); `iters` and the factors are (outer, inner).

    With `overwrite`, an extension, sums replace what ACC holds; not together with `reset`.
    """
    return _insn(
        Opcode.GEMM,
        flags,
        reset=reset,
        overwrite=overwrite,
        uop_begin=uops[0],
        uop_end=uops[1],
        iter_out=iters[0],
        iter_in=iters[1],
        dst_factor_out=dst[0],
        dst_factor_in=dst[1],
        src_factor_out=src[0],
        src_factor_in=src[1],
        wgt_factor_out=wgt[0],
        wgt_factor_in=wgt[1],
    )


def alu(
    op: AluOp,
    *,
    uops: tuple[int, int],
    iters: tuple[int, int] = (1, 1),
    dst: tuple[int, int] = (0, 0),
    src: tuple[int, int] = (0, 0),
    imm: int | None = None,
    **flags: Unpack[Flags],
) -> Insn:
    """ALU over uops begin..end (exclusive), with the constant `imm` or, if None, tensor-tensor."""
    return _insn(
        Opcode.ALU,
        flags,
        uop_begin=uops[0],
        uop_end=uops[1],
        iter_out=iters[0],
        iter_in=iters[1],
        dst_factor_out=dst[0],
        dst_factor_in=dst[1],
        src_factor_out=src[0],
        src_factor_in=src[1],
        alu_op=op,
        use_imm=imm is not None,
        imm=imm or 0,
    )


def requantize(
    *,
    uops: tuple[int, int],
    iters: tuple[int, int] = (1, 1),
    dst: tuple[int, int] = (0, 0),
    bias: int | None = None,
    shift: int = 0,
    low: LowKind,
    high: int,
    **flags: Unpack[Flags],
) -> Insn:
    """ALU REQUANTIZE, an extension: ``ACC = min(max((ACC + bias) >> shift, low), high)``.

    One entry of bias for each outer iteration: that of the first uop's src, `bias` entries apart;
    none where `bias` is None. The bounds are `high` and what `low` makes of it.
    """
    return _insn(
        Opcode.ALU,
        flags,
        uop_begin=uops[0],
        uop_end=uops[1],
        iter_out=iters[0],
        iter_in=iters[1],
        dst_factor_out=dst[0],
        dst_factor_in=dst[1],
        src_factor_out=bias or 0,
        shift=shift,
        low_kind=low,
        alu_op=FusedOp.REQUANTIZE,
        use_imm=bias is None,
        high=high,
    )


def finish(**flags: Unpack[Flags]) -> Insn:
    """FINISH, the last instruction of a stream."""
    return _insn(Opcode.FINISH, flags)


def noop(stage: Stage, **flags: Unpack[Flags]) -> Insn:
    """Carries tokens only; encoded as the published runtime encodes it for each stage."""
    match stage:
        case Stage.LOAD:
            return _insn(Opcode.LOAD, flags, buffer=Buffer.INP)
        case Stage.COMPUTE:
            return _insn(Opcode.LOAD, flags, buffer=Buffer.UOP)
        case Stage.STORE:
            return _insn(Opcode.STORE, flags, buffer=Buffer.UOP)


def _insn(opcode: Opcode, flags: Flags, **fields: int) -> Insn:
    given: dict[str, Any] = {**flags, **fields}
    return {"opcode": int(opcode)} | {name: int(v) for name, v in given.items() if v}


def records(insns: Iterable[Mapping[str, int]]) -> NDArray[np.void]:
    """(n,) INSN_DTYPE from one mapping of fields per instruction; fields not given are 0."""
    rows = list(insns)
    table = np.zeros(len(rows), dtype=INSN_DTYPE)
    columns: dict[str, tuple[list[int], list[int]]] = {}
    for number, row in enumerate(rows):
        for name, value in row.items():
            numbers, values = columns.setdefault(name, ([], []))
            numbers.append(number)
            values.append(value)
    for name, (numbers, values) in columns.items():
        if name not in (INSN_DTYPE.names or ()):
            guess = did_you_mean(name, INSN_DTYPE.names or ())
            raise EncodingError(f"insn {numbers[0]} has no field {name!r}{guess}")
        info = np.iinfo(INSN_DTYPE[name])
        for number, value in zip(numbers, values, strict=True):
            if not info.min <= value <= info.max:
                raise EncodingError(
                    f"insn {number}: {name} = {value} fits no instruction ({info.min}..{info.max})"
                )
        table[name][numbers] = values
    return table


def stages(table: NDArray[np.void]) -> NDArray[np.int32]:
    """(n,) the Stage that executes each instruction; undefined opcodes go to compute."""
    opcode, buffer = table["opcode"], table["buffer"]
    to_load = (opcode == Opcode.LOAD) & ((buffer == Buffer.INP) | (buffer == Buffer.WGT))
    stage = np.full(len(table), Stage.COMPUTE, dtype=np.int32)
    stage[to_load] = Stage.LOAD
    stage[opcode == Opcode.STORE] = Stage.STORE
    return stage
