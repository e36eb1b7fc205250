"""Numbers with units, as people write them in machine descriptions."""

import re

from .suggest import did_you_mean

BYTES = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
HERTZ = {"Hz": 1, "kHz": 10**3, "MHz": 10**6, "GHz": 10**9}

_QUANTITY = re.compile(r"\s*([0-9_]+)(?:\.([0-9_]+))?\s*([^\s0-9]\S*)?\s*")


def parse_quantity(text: str, units: dict[str, int]) -> int:
    """``"32 KiB"`` -> 32768; a number without a unit counts the unit whose factor is 1.

    Raises ValueError with what is wrong, for a validator to complete with the key.
    """
    match = _QUANTITY.fullmatch(text)
    example = f"a number and a unit, for example '32 {list(units)[1]}'"
    if match is None:
        raise ValueError(f"is not a quantity; write {example}")
    whole: str = match.group(1)
    fraction: str = match.group(2) or ""
    unit: str | None = match.group(3)
    if unit is not None and unit not in units:
        raise ValueError(f"has the unknown unit {unit!r}{did_you_mean(unit, units)}")
    factor = 1 if unit is None else units[unit]
    digits = fraction.replace("_", "")
    scaled = int(whole + digits) * factor
    value, rest = divmod(scaled, int(10 ** len(digits)))
    if rest:
        base = next(name for name, size in units.items() if size == 1)
        raise ValueError(f"is not a whole number of {base}; write {example}")
    return value


def format_quantity(value: int, units: dict[str, int]) -> str:
    """In the largest unit that is exact: 32768 -> ``"32 KiB"``, 1000 bytes -> ``"1000 B"``."""
    unit, factor = max(
        ((name, size) for name, size in units.items() if value % size == 0 and value >= size),
        key=lambda item: item[1],
        default=next(iter(units.items())),
    )
    return f"{value // factor} {unit}"


def format_bytes(value: int) -> str:
    return format_quantity(value, BYTES)


def format_hertz(value: int) -> str:
    return format_quantity(value, HERTZ)
