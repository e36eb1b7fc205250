"""The bit layout of a machine's instruction set as rows, for people and documentation."""

from dataclasses import dataclass

from .insn import layouts
from .layout import Layout, Reserved
from .machine import Machine


@dataclass(frozen=True)
class BitRow:
    """One field, or one run of reserved bits, of one word."""

    word: str  # MEM, GEMM, ALU, REQUANTIZE, FINISH, UOP
    field: str  # empty for reserved bits
    first_bit: int
    last_bit: int
    allowed: str  # range and unit; empty for reserved bits
    meaning: str  # names of the values, where they have names

    @property
    def width(self) -> int:
        """How many bits."""
        return self.last_bit - self.first_bit + 1

    @property
    def bits(self) -> str:
        """``7..9``, or ``3`` for a single bit."""
        single = self.first_bit == self.last_bit
        return str(self.first_bit) if single else f"{self.first_bit}..{self.last_bit}"


def bit_table(machine: Machine) -> list[BitRow]:
    """Every bit of every word, lowest bit first, no bit left out."""
    kinds = layouts(machine)
    return [row for layout in kinds for row in layout_rows(layout)]


def layout_rows(layout: Layout) -> list[BitRow]:
    rows = []
    for start, part in layout:
        last = start + part.width - 1
        if isinstance(part, Reserved):
            rows.append(BitRow(layout.name, "", start, last, "", ""))
            continue
        meaning = ", ".join(f"{int(v)} {v.name}" for v in part.meaning or ())
        rows.append(BitRow(layout.name, part.name, start, last, part.allowed, meaning))
    return rows
