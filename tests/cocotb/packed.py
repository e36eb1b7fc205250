"""Fast ways in and out of packed ports: an Amaranth layout as places in an integer."""

from amaranth.lib import data


def fields_of(layout: data.Layout) -> dict[str, tuple[int, int]]:
    """Name -> (lowest bit, mask), for every field of a structure."""
    fields = {}
    for name, field in layout:
        fields[name] = (field.offset, (1 << field.width) - 1)
    return fields


def pack(layout: data.Layout, **values: int) -> int:
    """An integer with ``values`` in their fields, and zeros elsewhere."""
    word = 0
    for name, (low, mask) in fields_of(layout).items():
        word |= (values.pop(name, 0) & mask) << low
    assert not values, f"no such fields: {', '.join(values)}"
    return word


def unpack(layout: data.Layout, word: int) -> dict[str, int]:
    """Every field of a structure, unsigned."""
    return {name: word >> low & mask for name, (low, mask) in fields_of(layout).items()}
