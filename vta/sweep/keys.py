"""The keys an axis may have: those of a machine description, and those of the compiler."""

from collections.abc import Iterator
from functools import cache
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from vta_isa.machine import Machine
from vta_isa.sections import Section
from vta_isa.units import BYTES, HERTZ

COMPILE = "compile"
GEMM_BLOCK = "gemm.block"
# One name for keys that a sweep nearly always changes together.
TIED = {GEMM_BLOCK: ("gemm.block_in", "gemm.block_out")}
UNITS = BYTES | HERTZ


class CompileOptions(Section):
    """How the layers are mapped onto the machine."""

    vthreads: bool = Field(default=True, description="loads, products and stores overlap")
    tile_candidates: Annotated[int, Field(ge=1)] | None = Field(
        default=None,
        description="tiles whose time is worked out, the most promising first; all if empty",
    )


@cache
def axis_keys() -> dict[str, TypeAdapter[Any]]:
    """Key → what its values may be; nested keys are joined by dots."""
    keys = dict(_leaves(Machine, ""))
    del keys["name"]
    return keys | dict(_leaves(CompileOptions, f"{COMPILE}."))


@cache
def default_values() -> dict[str, Any]:
    """Key → default. A description leaves some keys out while they have it."""
    return {key: _default(Machine, key.split(".")) for key in axis_keys() if key not in _COMPILING}


_COMPILING = frozenset(f"{COMPILE}.{name}" for name in CompileOptions.model_fields)


def _default(model: type[BaseModel], path: list[str]) -> Any:
    field = model.model_fields[path[0]]
    if len(path) == 1:
        return field.default
    assert isinstance(field.annotation, type)
    return _default(field.annotation, path[1:])


def check_value(key: str, value: object) -> object:
    """``value`` as the description holds it (``"32 KiB"`` → 32768); ValueError says why not."""
    try:
        return axis_keys()[key].validate_python(value)
    except ValidationError as error:
        first = error.errors()[0]
        if first["type"] == "value_error":
            reason = str(first["ctx"]["error"])
        else:
            reason = f"is not allowed: {first['msg']}"
        raise ValueError(f"{key} = {value!r} {reason}") from None


def flat(description: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """``{"gemm": {"batch": 1}}`` → ``{"gemm.batch": 1}``."""
    found: dict[str, Any] = {}
    for key, value in description.items():
        if isinstance(value, dict):
            found |= flat(value, f"{prefix}{key}.")
        else:
            found[f"{prefix}{key}"] = value
    return found


def nested(values: dict[str, Any]) -> dict[str, Any]:
    """``{"gemm.batch": 1}`` → ``{"gemm": {"batch": 1}}``."""
    tree: dict[str, Any] = {}
    for key, value in values.items():
        *above, last = key.split(".")
        section = tree
        for name in above:
            section = section.setdefault(name, {})
        section[last] = value
    return tree


def _leaves(model: type[BaseModel], prefix: str) -> Iterator[tuple[str, TypeAdapter[Any]]]:
    for name, field in model.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from _leaves(kind, f"{prefix}{name}.")
        else:
            whole: Any = Annotated[(kind, *field.metadata)] if field.metadata else kind
            yield f"{prefix}{name}", TypeAdapter(whole, config=ConfigDict(strict=True))
