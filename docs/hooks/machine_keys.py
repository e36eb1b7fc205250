"""The keys of a machine description, from the classes that validate it.

``<!-- machine: keys -->`` in a page becomes one table per section of the description.
"""

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from vta_isa import Machine
from vta_isa.sections import OneOf, Whole
from vta_isa.units import BYTES, HERTZ, format_bytes

PLACE = "<!-- machine: keys -->"
UNITS = dict(sorted(HERTZ.items(), key=lambda unit: -unit[1]))


def on_page_markdown(markdown: str, **_: object) -> str:
    return markdown.replace(PLACE, "\n\n".join(_sections())) if PLACE in markdown else markdown


def _sections() -> Iterator[str]:
    plain = {}
    for name, field in Machine.model_fields.items():
        section = field.annotation
        if isinstance(section, type) and issubclass(section, BaseModel):
            yield f"### {name}\n\n{_first_line(section)}\n\n{_table(section.model_fields)}"
        else:
            plain[name] = field
    yield f"### Outside of sections\n\n{_table(plain)}"


def _table(fields: dict[str, FieldInfo]) -> str:
    rows = [("key", "meaning", "allowed", "default"), ("---",) * 4]
    for name, field in fields.items():
        rule = _rule(field)
        default = "" if field.default is None else _shown(field.default, rule)
        allowed = "on, off" if field.annotation is bool else _allowed(rule)
        rows.append((f"`{name}`", field.description or "", allowed, default))
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _rule(field: FieldInfo) -> Whole | OneOf | None:
    """The validator that decides what the key may be; it may sit inside an ``X | None``."""
    found = [*field.metadata, *_metadata_inside(field.annotation)]
    functions = (getattr(each, "func", None) for each in found)
    return next((each for each in functions if isinstance(each, Whole | OneOf)), None)


def _metadata_inside(annotation: Any) -> Iterator[Any]:
    for part in getattr(annotation, "__args__", ()):
        yield from getattr(part, "__metadata__", ())


def _allowed(rule: Whole | OneOf | None) -> str:
    match rule:
        case OneOf(words):
            return ", ".join(words)
        case Whole():
            powers = ", powers of two" if rule.power_of_two else ""
            return f"{_shown(rule.low, rule)} to {_shown(rule.high, rule)}{powers}"
    return ""


def _shown(value: object, rule: Whole | OneOf | None) -> str:
    if isinstance(rule, Whole) and isinstance(value, int):
        if rule.units is BYTES:
            return format_bytes(value)
        if rule.units is HERTZ:
            return next(f"{value / n:g} {u}" for u, n in UNITS.items() if value >= n)
        return rule.show(value)
    return "on" if value is True else "off" if value is False else str(value)


def _first_line(section: type[BaseModel]) -> str:
    return (section.__doc__ or "").strip().splitlines()[0]
