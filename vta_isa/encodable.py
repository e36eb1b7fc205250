"""Whether a machine can be encoded: its indices fit the instructions, its entries a DRAM page.

Each check returns messages instead of raising, so that a description is told all its problems.
"""

from collections.abc import Iterator
from itertools import groupby, product
from typing import TYPE_CHECKING

from .enums import Buffer
from .insn import SRAM_ADDRESS_BITS, IndexBits, alu_layout, gemm_layout, uop_layout
from .layout import LayoutOverflow
from .units import format_bytes

if TYPE_CHECKING:
    from .machine import Machine

DRAM_PAGE_BYTES = 4096
MOST_CHOICES = 4  # of sizes that fit, in one message
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
        what = f"one {name} entry ({shape} x {machine.bits(buffer)} bits) has"
        if bits < 8:
            more = 8 // bits
            yield f"{what} {bits} bits, which is no whole byte; take {more} times as many scalars"
        elif bits > 8 * DRAM_PAGE_BYTES:
            fitting = 8 * DRAM_PAGE_BYTES // machine.bits(buffer)
            choices = [
                f"gemm.{key} = {fitting // other}"
                for key, other in zip(machine.entry_axes(buffer), (cols, rows), strict=True)
                if fitting // other
            ]
            advice = " or ".join(choices) or f"{fitting} scalars in all"
            page = f"a DRAM page of {DRAM_PAGE_BYTES}"
            yield f"{what} {bits // 8} bytes, more than {page}; take at most {advice}"


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
        f"{overflow.layout}.{overflow.slot.field.name} ({overflow.slot.field.width} bits) ends "
        f"after {overflow.slot.end} bits, the word has {overflow.bits}"
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
    """The smaller buffers that fit with the fewest halvings in total, few changes first."""
    bits = machine.all_index_bits
    names = [buffer.name.lower() for buffer in SIZED]
    widths = [int(getattr(bits, name)) for name in names]
    leaving_one_bit = [range(width) for width in widths]
    choices: list[dict[Buffer, int]] = []
    for _, group in groupby(sorted(product(*leaving_one_bit), key=sum), key=sum):
        for halvings in group:
            smaller = [width - halved for width, halved in zip(widths, halvings, strict=True)]
            if not _overflows(IndexBits(**dict(zip(names, smaller, strict=True)))):
                zipped = zip(SIZED, smaller, widths, strict=True)
                choices.append({buffer: new for buffer, new, old in zipped if new != old})
        if choices:
            break
    choices.sort(key=len)
    texts = [
        " and ".join(_size(machine, buffer, width) for buffer, width in choice.items())
        for choice in choices[:MOST_CHOICES]
    ]
    return f"the nearest sizes that fit: {'; or '.join(texts)}"


def _size(machine: "Machine", buffer: Buffer, index_bits: int) -> str:
    return f"sram.{buffer.name.lower()} = {format_bytes(machine.entry_bytes(buffer) << index_bits)}"
