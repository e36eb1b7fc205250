"""Whole instruction streams and micro-op images, to and from NumPy tables.

A stream is a sequence of 128-bit little-endian words, here (n, 2) uint64 with bits 0..63 first.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .enums import FusedOp, Opcode
from .errors import EncodingError, StreamError
from .insn import INSN_BYTES, INSN_DTYPE, INSN_UNIT_BITS, PREFIX, Layouts, layouts
from .layout import Layout
from .machine import Machine

OPCODE_MASK = np.uint64((1 << PREFIX[0].width) - 1)
_REQUANTIZE = int(OPCODE_MASK) + 1  # stands for the opcode ALU with a layout of its own
PREFIX_LAYOUT = Layout.packed(
    "undefined opcode", INSN_BYTES * 8, INSN_UNIT_BITS, PREFIX, doc="all that can be said of one"
)

BLOCK_INSNS = 4096  # decoded together: what is in between fits the cache

Stream = bytes | bytearray | memoryview | NDArray[np.generic]


def as_words(stream: Stream) -> NDArray[np.uint64]:
    """(n, 2) uint64 of a stream: bytes, or any array of integers, lowest bits first.

    Shapes such as (n, 2) uint64, (n, 4) uint32, (n, 16) uint8 and flat ones are all the same to
    it. Raises StreamError when the last instruction is cut.
    """
    if isinstance(stream, np.ndarray):
        if stream.dtype.names is not None or stream.dtype.kind not in "iuV":
            raise StreamError(
                f"a stream is bytes or an array of integers, not of {stream.dtype}; "
                "encode decoded instructions with encode_stream"
            )
        little = stream.astype(stream.dtype.newbyteorder("<"), copy=False)
        data = np.ascontiguousarray(little).reshape(-1).view(np.uint8)
    else:
        try:
            data = np.frombuffer(stream, dtype=np.uint8)
        except TypeError:
            raise StreamError(
                f"a stream is bytes or an array of integers, not a {type(stream).__name__}; "
                "read a file with read_bytes(), make an array of a list"
            ) from None
    whole, rest = divmod(data.size, INSN_BYTES)
    if rest:
        raise StreamError(
            f"insn {whole} is cut: the stream has {data.size} bytes, which leaves {rest} of its "
            f"{INSN_BYTES}; a whole stream has a multiple of {INSN_BYTES}",
            insn=whole,
        )
    return np.ascontiguousarray(data).view("<u8").reshape(whole, 2)


def decode_stream(stream: Stream, machine: Machine) -> NDArray[np.void]:
    """(n,) INSN_DTYPE. Reserved bits are ignored; undefined opcodes keep opcode and flags only."""
    words = as_words(stream)
    table = np.zeros(len(words), dtype=INSN_DTYPE)
    kinds = layouts(machine)
    for first in range(0, len(words), BLOCK_INSNS):
        block = words[first : first + BLOCK_INSNS]
        records = table[first : first + BLOCK_INSNS]
        opcodes: NDArray[np.integer] = (block[:, 0] & OPCODE_MASK).astype(np.intp)
        if kinds.requantize is not None:
            word, shift = divmod(kinds.alu.slots["alu_op"].start, INSN_UNIT_BITS)
            mask = np.uint64(kinds.alu.slots["alu_op"].mask)
            opcodes = _with_requantize(opcodes, block[:, word] >> np.uint64(shift) & mask)
        units = records.view(np.int32).reshape(len(records), -1)
        for layout, rows in _by_layout(opcodes, kinds):
            fields = _extraction(layout)
            values = block[rows][:, fields.word]
            values >>= fields.shift
            values &= fields.mask
            # Values that fit their field without a sign are nonnegative: 32 bits hold them as they
            # are, and the upper half of a 64-bit column stays 0.
            column = values.astype(np.int32)
            for place, sign in fields.signed:
                column[:, place] = (column[:, place] ^ sign) - sign
            filled = np.zeros((len(column), units.shape[1]), dtype=np.int32)
            filled[:, fields.unit] = column
            units[rows] = filled
    return table


@dataclass(frozen=True)
class _Extraction:
    """How the fields of a layout are taken out of words, one array element per field."""

    word: NDArray[np.intp]  # which unit of the instruction holds it
    shift: NDArray[np.uint64]
    mask: NDArray[np.uint64]
    unit: NDArray[np.intp]  # where it goes in a record of 32-bit units
    signed: tuple[tuple[int, int], ...]  # (place among the fields, sign bit)


def _unit_of(name: str) -> int:
    """The first 32-bit unit of a column of INSN_DTYPE."""
    assert INSN_DTYPE.fields is not None
    offset: int = INSN_DTYPE.fields[name][1]
    return offset // 4


@lru_cache(maxsize=256)
def _extraction(layout: Layout) -> _Extraction:
    slots = layout.slots.values()
    assert all(slot.field.width <= 32 for slot in slots)
    return _Extraction(
        word=np.array([slot.start // INSN_UNIT_BITS for slot in slots]),
        shift=np.array([slot.start % INSN_UNIT_BITS for slot in slots], dtype=np.uint64),
        mask=np.array([slot.mask for slot in slots], dtype=np.uint64),
        unit=np.array([_unit_of(name) for name in layout.slots]),
        signed=tuple(
            (place, 1 << (slot.field.width - 1))
            for place, slot in enumerate(slots)
            if slot.field.signed
        ),
    )


def encode_stream(records: NDArray[np.void], machine: Machine) -> NDArray[np.uint64]:
    """(n, 2) uint64 of an (n,) INSN_DTYPE table; reserved bits are 0.

    Raises EncodingError for the first instruction with a value that does not fit its field, or
    with a field that is not of its kind.
    """
    words = np.zeros((len(records), 2), dtype="<u8")
    opcode = PREFIX_LAYOUT.slots["opcode"].field
    opcodes = np.asarray(records["opcode"])
    _check_column(PREFIX_LAYOUT, opcode.name, opcodes, None)
    kinds = layouts(machine)
    if kinds.requantize is not None:
        opcodes = _with_requantize(opcodes, records["alu_op"])
    for layout, rows in _by_layout(opcodes, kinds):
        for name in INSN_DTYPE.names or ():
            values = records[name][rows]
            if name not in layout.slots:
                _check_unused(layout, name, values, rows)
                continue
            _check_column(layout, name, values, rows)
            slot = layout.slots[name]
            word, shift = divmod(slot.start, INSN_UNIT_BITS)
            # Negative numbers become two's complement here, and lose the bits above the field.
            bits = values.astype(np.uint64) & np.uint64(slot.mask)
            words[rows, word] |= bits << np.uint64(shift)
    return words


def encode_uops(indices: ArrayLike, machine: Machine) -> NDArray[np.uint32]:
    """(n,) uint32 micro-ops of (n, 3) indices: dst, src, wgt."""
    layout = layouts(machine).uop
    table = np.asarray(indices, dtype=np.int64).reshape(-1, len(layout.slots))
    uops = np.zeros(len(table), dtype="<u4")
    for column, (name, slot) in enumerate(layout.slots.items()):
        _check_column(layout, name, table[:, column], None, noun="uop")
        uops |= table[:, column].astype(np.uint32) << np.uint32(slot.start)
    return uops


def decode_uops(uops: ArrayLike, machine: Machine) -> NDArray[np.int32]:
    """(n, 3) int32 indices dst, src, wgt of (n,) uint32 micro-ops."""
    layout = layouts(machine).uop
    words = np.asarray(uops, dtype=np.uint32).reshape(-1)
    columns = [
        (words >> np.uint32(slot.start)) & np.uint32(slot.mask) for slot in layout.slots.values()
    ]
    return np.stack(columns, axis=-1).astype(np.int32)


def _with_requantize(
    opcodes: NDArray[np.integer], alu_ops: NDArray[np.integer]
) -> NDArray[np.integer]:
    """The opcodes, with a number of its own for ALU REQUANTIZE."""
    fused = (opcodes == Opcode.ALU) & (alu_ops == FusedOp.REQUANTIZE)
    return np.where(fused, _REQUANTIZE, opcodes)


def _by_layout(
    opcodes: NDArray[np.integer], kinds: Layouts
) -> Iterator[tuple[Layout, slice | NDArray[np.intp]]]:
    """Each layout that occurs, with the rows that have it (a slice where that is all of them)."""
    distinct, group_of = _groups(kinds)
    groups = group_of[opcodes]
    for number, layout in enumerate(distinct):
        rows = np.flatnonzero(groups == number)
        if rows.size == opcodes.size and rows.size:
            yield layout, slice(None)
        elif rows.size:
            yield layout, rows


@lru_cache(maxsize=64)
def _groups(kinds: Layouts) -> tuple[list[Layout], NDArray[np.intp]]:
    """The layouts of all opcodes without repetition, and which of them an opcode has."""
    layout_of = [kinds.of(opcode) or PREFIX_LAYOUT for opcode in range(_REQUANTIZE)]
    layout_of.append(kinds.requantize or PREFIX_LAYOUT)
    distinct = list({id(layout): layout for layout in layout_of}.values())
    return distinct, np.array([[id(d) for d in distinct].index(id(layout)) for layout in layout_of])


def _check_column(
    layout: Layout,
    name: str,
    values: NDArray[np.integer],
    rows: slice | NDArray[np.intp] | None,
    noun: str = "insn",
) -> None:
    field = layout.slots[name].field
    if values.size and (values.min() < field.low or values.max() > field.high):
        first = int(np.flatnonzero((values < field.low) | (values > field.high))[0])
        where = f"{noun} {_row(rows, first)}: "
        raise EncodingError(layout.misfit(name, int(values[first]), where))


def _check_unused(
    layout: Layout, name: str, values: NDArray[np.integer], rows: slice | NDArray[np.intp]
) -> None:
    if values.any():
        first = int(np.flatnonzero(values)[0])
        raise EncodingError(
            f"insn {_row(rows, first)}: {layout.name} has no field {name}, which is "
            f"{values[first]}; set it to 0"
        )


def _row(rows: slice | NDArray[np.intp] | None, position: int) -> int:
    return int(rows[position]) if isinstance(rows, np.ndarray) else position
