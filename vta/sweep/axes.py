"""The axes of a sweep: lists, ranges and tied keys become choices, each a set of keys."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vta_isa.suggest import did_you_mean
from vta_isa.units import parse_quantity

from .keys import TIED, UNITS, axis_keys, check_value

MOST_CHOICES = 10_000  # of one axis; a range with a slip of the pen has millions


@dataclass(frozen=True)
class Choice:
    """One step along an axis: ``shown`` for people and tables, ``values`` for the description."""

    shown: dict[str, Any]
    values: dict[str, Any]


@dataclass(frozen=True)
class Axis:
    """``name`` as the file spells it; what its choices set, in order."""

    name: str
    choices: tuple[Choice, ...]

    def as_json(self) -> list[Any]:
        """The values: plain for one key, lists in the order of the keys otherwise."""
        rows = [list(choice.shown.values()) for choice in self.choices]
        return [row[0] if len(row) == 1 else row for row in rows]


def make_axis(name: str, given: object) -> Axis:
    """The axis ``name: given`` of a sweep file; ValueError says what is wrong with it.

    ``given`` is a list of values or a range ``{from, to, step}`` or ``{from, to, times}``, both
    ends included. A name may be several keys with commas between them: their values are lists
    of the same length, or one value for all of them.
    """
    parts = [part.strip() for part in name.split(",")]
    known = [*axis_keys(), *TIED]
    for part in parts:
        if part not in known:
            raise ValueError(f"unknown axis {part!r}{did_you_mean(part, known)}")
    keys = [key for part in parts for key in TIED.get(part, (part,))]
    for key in keys:
        if keys.count(key) > 1:
            raise ValueError(f"{key} is set twice; name it once")
    values = _range(given) if isinstance(given, Mapping) else given
    if not isinstance(values, list) or not values:
        raise ValueError(
            f"{given!r} gives no value; write a list, or a range such as "
            "{from: 4, to: 64, times: 2}"
        )
    choices = tuple(_choice(parts, value) for value in values)
    seen: set[str] = set()
    for value, choice in zip(values, choices, strict=True):
        if repr(choice) in seen:
            raise ValueError(f"{value!r} is given twice; a point is simulated once")
        seen.add(repr(choice))
    return Axis(name, choices)


def _choice(parts: list[str], value: object) -> Choice:
    each = [value] * len(parts)
    if len(parts) > 1 and isinstance(value, list):
        if len(value) != len(parts):
            raise ValueError(f"{value!r} has {len(value)} values for {len(parts)} keys")
        each = value
    shown: dict[str, Any] = {}
    values: dict[str, Any] = {}
    for part, item in zip(parts, each, strict=True):
        for key in TIED.get(part, (part,)):
            values[key] = shown[part] = check_value(key, item)
    return Choice(shown, values)


def _range(given: Mapping[Any, Any]) -> list[Any]:
    keys = {str(key) for key in given}
    for key in sorted(keys - {"from", "to", "step", "times"}):
        raise ValueError(f"unknown key {key!r} of a range{did_you_mean(key, RANGE_KEYS)}")
    for key in ("from", "to"):
        if key not in keys:
            raise ValueError(f"a range without {key!r}; write {{from: 4, to: 64, times: 2}}")
    if ("step" in keys) == ("times" in keys):
        raise ValueError("a range has either step (added) or times (multiplied)")
    first, last = (_whole(key, given[key]) for key in ("from", "to"))
    if first > last:
        raise ValueError(f"the range from {first} to {last} is empty; swap its ends")
    if "step" in keys:
        step = _whole("step", given["step"])
        if step < 1:
            raise ValueError(f"step = {step} never arrives; take 1 or more")
        count = (last - first) // step + 1
        if count > MOST_CHOICES:
            raise ValueError(f"{count:,} values; an axis has at most {MOST_CHOICES:,}")
        return [first + step * number for number in range(count)]
    times = _whole("times", given["times"])
    if times < 2 or first < 1:
        raise ValueError(f"times = {times} from {first} never arrives; take from >= 1, times >= 2")
    values = [first]
    while values[-1] * times <= last:
        values.append(values[-1] * times)
    return values


RANGE_KEYS = ("from", "to", "step", "times")


def _whole(key: str, value: object) -> int:
    """A number, with a unit if it has one."""
    if isinstance(value, str):
        try:
            value = parse_quantity(value, UNITS)
        except ValueError as error:
            raise ValueError(f"{key} = {value!r} {error}") from None
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{key} = {value!r} is no whole number")
    return value
