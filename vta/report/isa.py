"""The bit layout of a machine's instructions and micro-op, as tables and as plain data."""

from collections.abc import Iterator

from rich import box
from rich.table import Table

from vta_isa import Field, Layout, Machine, layouts


def tables(machine: Machine) -> Iterator[Table]:
    """One table per layout: bits, field, unit, values."""
    for layout in layouts(machine):
        title = f"{layout.doc}  ({layout.bits} bits, {machine.name})"
        table = Table(title=title, box=box.SIMPLE_HEAD)
        table.add_column("bits", justify="right", no_wrap=True)
        table.add_column("width", justify="right")
        table.add_column("field", no_wrap=True)
        table.add_column("values")
        for start, part in layout:
            last = start + part.width - 1
            bits = str(start) if part.width == 1 else f"{last}..{start}"
            if isinstance(part, Field):
                table.add_row(bits, str(part.width), part.name, _values(part))
            else:
                table.add_row(bits, str(part.width), "", "reserved, written as 0")
        yield table


def as_json(machine: Machine) -> dict[str, object]:
    """The same, in plain data."""
    return {
        "machine": {"name": machine.name, "hash": machine.hash},
        "layouts": [_layout(layout) for layout in layouts(machine)],
    }


def _layout(layout: Layout) -> dict[str, object]:
    return {
        "name": layout.name,
        "doc": layout.doc,
        "bits": layout.bits,
        "fields": [
            {
                "name": slot.field.name,
                "start": slot.start,
                "width": slot.field.width,
                "signed": slot.field.signed,
                "unit": slot.field.unit,
                "meaning": {member.name: int(member) for member in slot.field.meaning}
                if slot.field.meaning
                else {},
            }
            for slot in layout.slots.values()
        ],
    }


def _values(field: Field) -> str:
    if field.meaning is None:
        return field.allowed
    return " ".join(f"{int(member)}={member.name}" for member in field.meaning)
