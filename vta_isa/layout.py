"""Bit layouts as tables: fields, reserved bits, encoding, decoding and range checks.

A layout names every bit. Which bits those are follows from the order and the widths of the fields
and from one packing rule, so a machine with other index widths gets other positions but no other
code.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property

from .errors import EncodingError
from .suggest import did_you_mean


@dataclass(frozen=True)
class Field:
    """``width`` bits that mean one number; two's complement where ``signed``."""

    name: str
    width: int
    meaning: type[IntEnum] | None = None
    unit: str = ""
    signed: bool = False
    hint: str = ""  # what to do when a value does not fit

    @property
    def low(self) -> int:
        """The smallest value."""
        return -(1 << (self.width - 1)) if self.signed else 0

    @property
    def high(self) -> int:
        """The largest value."""
        return (1 << (self.width - self.signed)) - 1

    @property
    def allowed(self) -> str:
        """The range in words, for messages and tables: ``0..65535 entry``."""
        return f"{self.low}..{self.high}" + (f" {self.unit}" if self.unit else "")


@dataclass(frozen=True)
class Reserved:
    """``width`` bits without meaning: written as 0, ignored when read."""

    width: int


@dataclass(frozen=True)
class Slot:
    """A field and the bit at which it starts."""

    field: Field
    start: int

    @property
    def end(self) -> int:
        """The bit after the last one."""
        return self.start + self.field.width

    @property
    def mask(self) -> int:
        return (1 << self.field.width) - 1


class LayoutOverflow(EncodingError):
    """Fields that need more bits than the word has; ``slot`` is the first that ends outside."""

    def __init__(self, layout: str, slot: Slot, bits: int):
        super().__init__(
            f"{layout}.{slot.field.name} would occupy bits {slot.start}..{slot.end - 1} "
            f"of a {bits}-bit word"
        )
        self.layout = layout
        self.slot = slot
        self.bits = bits


@dataclass(frozen=True)
class Layout:
    """A word of ``bits`` bits, cut into fields and reserved bits; widths add up to ``bits``."""

    name: str
    bits: int
    fields: tuple[Field | Reserved, ...]
    doc: str = ""

    def __post_init__(self) -> None:
        total = sum(field.width for field in self.fields)
        assert total == self.bits, f"{self.name}: fields cover {total} of {self.bits} bits"

    @classmethod
    def packed(
        cls, name: str, bits: int, unit_bits: int, fields: Iterable[Field], doc: str = ""
    ) -> "Layout":
        """Place `fields` in order so that none crosses a multiple of `unit_bits`.

        A field that would cross is moved to that multiple, and the bits skipped are reserved. This
        is what C compilers do with bit-fields of `unit_bits`-bit type, and therefore the published
        encoding. Raises LayoutOverflow where the word is too short.
        """
        placed: list[Field | Reserved] = []
        position = 0
        for field in fields:
            last_unit = (position + field.width - 1) // unit_bits
            start = position if position // unit_bits == last_unit else last_unit * unit_bits
            if start + field.width > bits:
                raise LayoutOverflow(name, Slot(field, position), bits)
            if start > position:
                placed.append(Reserved(start - position))
            placed.append(field)
            position = start + field.width
        if position < bits:
            placed.append(Reserved(bits - position))
        return cls(name, bits, tuple(placed), doc)

    @classmethod
    def placed(cls, name: str, bits: int, slots: Iterable[Slot], doc: str = "") -> "Layout":
        """Fields at bits already chosen; the bits between them are reserved."""
        parts: list[Field | Reserved] = []
        position = 0
        for slot in sorted(slots, key=lambda slot: slot.start):
            if slot.start > position:
                parts.append(Reserved(slot.start - position))
            parts.append(slot.field)
            position = slot.end
        if position < bits:
            parts.append(Reserved(bits - position))
        return cls(name, bits, tuple(parts), doc)

    def extended(
        self,
        name: str,
        unit_bits: int,
        fields: Iterable[Field],
        *,
        without: Collection[str] = (),
        doc: str = "",
    ) -> "Layout":
        """This word with more `fields` in free bits: reserved ones and those of fields `without`.

        Each takes the lowest free bits that are wide enough and cross no multiple of `unit_bits`;
        no other field moves. There have to be such bits.
        """
        slots = [slot for slot in self.slots.values() if slot.field.name not in without]
        for field in fields:
            owned = sum(slot.mask << slot.start for slot in slots)
            starts = (
                start
                for start in range(self.bits - field.width + 1)
                if start // unit_bits == (start + field.width - 1) // unit_bits
                and not (owned >> start) & ((1 << field.width) - 1)
            )
            start = next(starts, None)
            assert start is not None, f"{name}: no room for {field.name}"
            slots.append(Slot(field, start))
        return Layout.placed(name, self.bits, slots, doc or self.doc)

    def __iter__(self) -> Iterator[tuple[int, Field | Reserved]]:
        """(first bit, field or reserved bits), from bit 0 upwards without gaps."""
        position = 0
        for field in self.fields:
            yield position, field
            position += field.width

    @cached_property
    def slots(self) -> dict[str, Slot]:
        """The fields by name, lowest bit first; reserved bits left out."""
        return {part.name: Slot(part, start) for start, part in self if isinstance(part, Field)}

    @cached_property
    def reserved_mask(self) -> int:
        """Ones in every bit that no field owns."""
        owned = sum(slot.mask << slot.start for slot in self.slots.values())
        return ((1 << self.bits) - 1) ^ owned

    def check(self, name: str, value: int, where: str = "") -> None:
        """Raise EncodingError unless `value` fits the field `name`."""
        field = self.slots[name].field
        if not field.low <= value <= field.high:
            raise EncodingError(self.misfit(name, value, where))

    def misfit(self, name: str, value: int, where: str = "") -> str:
        """The message for a value that does not fit; `where` comes first."""
        field = self.slots[name].field
        plural = "" if field.width == 1 else "s"
        hint = f"; {field.hint}" if field.hint else ""
        return (
            f"{where}{self.name}.{name} = {value} does not fit "
            f"{field.width} bit{plural} ({field.allowed}){hint}"
        )

    def encode(self, **values: int) -> int:
        """The word with these fields; fields not given are 0, so are reserved bits."""
        word = 0
        for name, value in values.items():
            if name not in self.slots:
                raise EncodingError(
                    f"{self.name} has no field {name!r}{did_you_mean(name, self.slots)}"
                )
            self.check(name, value)
            slot = self.slots[name]
            word |= (int(value) & slot.mask) << slot.start
        return word

    def decode(self, word: int) -> dict[str, int]:
        """Every field of `word`; reserved bits are ignored."""
        values = {}
        for name, slot in self.slots.items():
            value = word >> slot.start & slot.mask
            values[name] = value - (slot.mask + 1) if value > slot.field.high else value
        return values
