"""Whole instruction streams and micro-op images, to and from NumPy tables.

A stream is a sequence of 128-bit little-endian words, here (n, 2) uint64 with bits 0..63 first.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import EncodingError, StreamError
from .insn import INSN_BYTES, INSN_DTYPE, INSN_UNIT_BITS, PREFIX, Layouts, layouts
from .layout import Layout
from .machine import Machine

OPCODE_MASK = np.uint64((1 << PREFIX[0].width) - 1)
PREFIX_LAYOUT = Layout.packed(
    "undefined opcode", INSN_BYTES * 8, INSN_UNIT_BITS, PREFIX, doc="all that can be said of one"
)

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
    opcodes = (words[:, 0] & OPCODE_MASK).astype(np.int32)
    for layout, rows in _by_layout(opcodes, layouts(machine)):
        for name, slot in layout.slots.items():
            word, shift = divmod(slot.start, INSN_UNIT_BITS)
            values = (words[rows, word] >> np.uint64(shift)) & np.uint64(slot.mask)
            column = values.astype(np.int64)
            if slot.field.signed:
                sign = 1 << (slot.field.width - 1)
                column = (column ^ sign) - sign
            table[name][rows] = column
    return table


def encode_stream(records: NDArray[np.void], machine: Machine) -> NDArray[np.uint64]:
    """(n, 2) uint64 of an (n,) INSN_DTYPE table; reserved bits are 0.

    Raises EncodingError for the first instruction with a value that does not fit its field, or
    with a field that is not of its kind.
    """
    words = np.zeros((len(records), 2), dtype="<u8")
    opcode = PREFIX_LAYOUT.slots["opcode"].field
    opcodes = np.asarray(records["opcode"])
    _check_column(PREFIX_LAYOUT, opcode.name, opcodes, None)
    for layout, rows in _by_layout(opcodes, layouts(machine)):
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


def _by_layout(
    opcodes: NDArray[np.int32], kinds: Layouts
) -> Iterator[tuple[Layout, slice | NDArray[np.intp]]]:
    """Each layout that occurs, with the rows that have it (a slice where that is all of them)."""
    layout_of = [kinds.of(opcode) or PREFIX_LAYOUT for opcode in range(int(OPCODE_MASK) + 1)]
    distinct = list({id(layout): layout for layout in layout_of}.values())
    group_of = np.array([[id(d) for d in distinct].index(id(layout)) for layout in layout_of])
    groups = group_of[opcodes]
    for number, layout in enumerate(distinct):
        rows = np.flatnonzero(groups == number)
        if rows.size == opcodes.size and rows.size:
            yield layout, slice(None)
        elif rows.size:
            yield layout, rows


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
