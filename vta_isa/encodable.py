"""Whether a machine can be encoded: its indices fit the instructions, its entries a DRAM page.

Each check returns messages instead of raising, so that a description is told all its problems.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from .enums import Buffer
from .insn import SRAM_ADDRESS_BITS, IndexBits, alu_layout, gemm_layout, uop_layout
from .layout import LayoutOverflow
from .units import format_bytes

if TYPE_CHECKING:
    from .machine import Machine

DRAM_PAGE_BYTES = 4096
SIZED = (Buffer.UOP, Buffer.INP, Buffer.WGT, Buffer.ACC)


def problems(machine: "Machine") -> list[str]:
    """Why `machine` cannot be encoded; empty if it can. Later checks need the earlier ones."""
    return list(_types(machine)) + (
        list(_entries(machine)) or list(_depths(machine)) or list(_words(machine))
    )


def _types(machine: "Machine") -> Iterator[str]:
    if machine.bits(Buffer.OUT) > machine.bits(Buffer.ACC):
        yield (
            f"types.out = {machine.types.out!r} is wider than types.acc = {machine.types.acc!r}; "
            "results are the low bits of accumulators, so make out at most as wide"
        )


def _entries(machine: "Machine") -> Iterator[str]:
    """An entry is a whole number of bytes and lies within one DRAM page."""
    for buffer in (Buffer.INP, Buffer.WGT, Buffer.ACC, Buffer.OUT):
        name = buffer.name.lower()
        rows, cols = machine.entry_shape(buffer)
        bits = machine.entry_bits(buffer)
        shape = " x ".join(
            f"{key} {getattr(machine.gemm, key)}" for key in machine.entry_axes(buffer)
        )
        what = f"a {name} entry ({shape} x {machine.bits(buffer)} bits) has"
        if bits < 8:
            yield f"{what} {bits} bits, which is no whole byte; it needs {8 // bits} times as many scalars"
        elif bits > 8 * DRAM_PAGE_BYTES:
            fitting = 8 * DRAM_PAGE_BYTES // machine.bits(buffer)
            choices = [
                f"gemm.{key} = {fitting // other}"
                for key, other in zip(machine.entry_axes(buffer), (cols, rows), strict=True)
                if fitting // other
            ]
            advice = " or ".join(choices) or f"{fitting} scalars in all"
            yield f"{what} {bits // 8} bytes, more than a DRAM page of {DRAM_PAGE_BYTES}; take at most {advice}"


def _depths(machine: "Machine") -> Iterator[str]:
    """Every buffer has at least two entries and at most as many as LOAD can address."""
    for buffer in SIZED:
        name = buffer.name.lower()
        entry = machine.entry_bytes(buffer)
        size = getattr(machine.sram, name)
        smallest, largest = 2 * entry, entry << SRAM_ADDRESS_BITS
        if not smallest <= size <= largest:
            yield (
                f"sram.{name} = {format_bytes(size)} holds {size // entry} entries of {entry} "
                f"bytes, but a buffer has 2 to {1 << SRAM_ADDRESS_BITS} (LOAD.sram_base has "
                f"{SRAM_ADDRESS_BITS} bits); the nearest size that fits is "
                f"{format_bytes(smallest if size < smallest else largest)}"
            )


def _words(machine: "Machine") -> Iterator[str]:
    """Indices fit the 128-bit instructions and the 32-bit micro-op."""
    bits = machine.all_index_bits
    overflows = _overflows(bits)
    if not overflows:
        return
    fields = "; ".join(
        f"{overflow.layout}.{overflow.slot.field.name} ({overflow.slot.field.width} bits) ends at bit "
        f"{overflow.slot.end} of {overflow.bits}"
        for overflow in overflows
    )
    yield f"the instruction set cannot encode this machine: {fields}; {_sizes_that_fit(machine)}"


def _overflows(bits: IndexBits) -> list[LayoutOverflow]:
    found = []
    for build in (gemm_layout, alu_layout, uop_layout):
        try:
            build(bits)
        except LayoutOverflow as overflow:
            found.append(overflow)
    return found


def _sizes_that_fit(machine: "Machine") -> str:
    """The nearest smaller sizes: of one buffer alone where that helps, else of several together."""
    bits = machine.all_index_bits
    alone = []
    for buffer in SIZED:
        name = buffer.name.lower()
        width = getattr(bits, name)
        for smaller in range(width - 1, 0, -1):
            if not _overflows(replace(bits, **{name: smaller})):
                alone.append(_size(machine, buffer, smaller))
                break
    if alone:
        return f"the nearest sizes that fit: {' or '.join(alone)}"
    widths = {buffer: int(getattr(bits, buffer.name.lower())) for buffer in SIZED}
    while _overflows(IndexBits(**{b.name.lower(): width for b, width in widths.items()})):
        deepest = max(widths, key=lambda b: widths[b])
        widths[deepest] -= 1
    together = [
        _size(machine, b, width)
        for b, width in widths.items()
        if width != getattr(bits, b.name.lower())
    ]
    return f"sizes that fit: {' with '.join(together)}"


def _size(machine: "Machine", buffer: Buffer, index_bits: int) -> str:
    return f"sram.{buffer.name.lower()} = {format_bytes(machine.entry_bytes(buffer) << index_bits)}"
