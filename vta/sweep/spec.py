"""A sweep file, read and checked: what to vary, what to run, what to look at."""

import difflib
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from vta_isa import load_machine
from vta_isa.description import merge
from vta_isa.errors import VtaError
from vta_isa.presets import preset_names, preset_path
from vta_isa.suggest import did_you_mean, nearest

from ..workloads import Workload, load_workload
from .axes import Axis, make_axis
from .conditions import Condition, parse_condition
from .errors import SweepError
from .keys import COMPILE, CompileOptions, axis_keys, nested
from .located_yaml import Path_, line_of, load_located
from .objectives import DERIVED, OBJECTIVES, Direction

KIND = "sweeps"
FORMAT = 1  # of what `Sweep.as_json` holds

Family = Literal["xc7"]  # those that synthesised machines are at hand for


class Sample(BaseModel):
    """Which points of the space are taken; without a method, all of them."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    random: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    latin_hypercube: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    seed: Annotated[int, Field(ge=0, le=2**32 - 1)] = 0


class _File(BaseModel):
    """The outermost keys of a sweep file."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: str = ""
    about: str = ""
    base: str | dict[str, Any] = "default"
    axes: dict[str, Any] = Field(default_factory=dict)
    where: list[Any] = Field(default_factory=list)
    workloads: Annotated[list[str | dict[str, Any]], Field(min_length=1)]
    compile: dict[str, Any] = Field(default_factory=dict)
    objectives: list[str] | dict[str, Any]
    sample: Literal["grid"] | Sample = "grid"
    area: Family = "xc7"
    time_limit: Annotated[float, Field(gt=0)] = 300.0


@dataclass(frozen=True)
class Sweep:
    """A sweep in which every name has been looked up.

    ``base`` is a full machine description as plain data. ``objectives`` maps names to directions
    and begins with the ones the file puts first. ``time_limit`` is in seconds, for one point.
    """

    name: str
    about: str
    base: dict[str, Any]
    axes: tuple[Axis, ...]
    where: tuple[Condition, ...]
    workloads: tuple[Workload, ...]
    compile: CompileOptions
    objectives: dict[str, Direction]
    sample: Sample
    area: str
    time_limit: float

    def as_json(self) -> dict[str, Any]:
        """Plain data, everything resolved: equal for two files that mean the same sweep."""
        return {
            "format": FORMAT,
            "name": self.name,
            "about": self.about,
            "base": self.base,
            "axes": {axis.name: axis.as_json() for axis in self.axes},
            "where": [condition.text for condition in self.where],
            "workloads": [workload.as_json() for workload in self.workloads],
            "compile": self.compile.model_dump(),
            "objectives": {name: str(which) for name, which in self.objectives.items()},
            "sample": self.sample.model_dump(),
            "area": self.area,
            "time_limit": self.time_limit,
        }

    @property
    def digest(self) -> str:
        """16 hex digits over everything but ``about``."""
        content = {key: value for key, value in self.as_json().items() if key != "about"}
        text = json.dumps(content, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def load_sweep(spec: str | Path | Mapping[str, Any]) -> Sweep:
    """The sweep that ``spec`` names or describes.

    A preset (``bandwidth``), the path of a YAML file, or the content of one as a mapping. Machines
    and workloads that a file names by path are relative to the file. Raises ``SweepError`` with
    file, line and key.
    """
    if isinstance(spec, Mapping):
        return _sweep(dict(spec), {}, None, "sweep")
    presets = preset_names(KIND)
    if isinstance(spec, str) and spec in presets:
        return _read(preset_path(KIND, spec), spec)
    path = Path(spec)
    if not path.exists():
        guess = nearest(path.stem, presets)
        question = f"did you mean the preset {guess!r}? " if guess else ""
        raise SweepError(f"{spec}: no such sweep; {question}presets: {', '.join(presets)}")
    return _read(path, str(path))


def _read(path: Path, where: str) -> Sweep:
    content, lines = load_located(path)
    if not isinstance(content, dict):
        raise SweepError(f"{where}: holds no mapping of keys; the keys are {', '.join(_keys())}")
    return _sweep(content, lines, path, where)


def _keys() -> list[str]:
    return list(_File.model_fields)


class _Problems:
    """Every problem of a file, each with its line, told together."""

    def __init__(self, where: str, lines: dict[Path_, int]):
        self.where, self.lines = where, lines
        self.found: list[str] = []

    def add(self, path: Path_, text: str) -> None:
        line = line_of(self.lines, path)
        self.found.append(f"line {line}: {text}" if line is not None else text)

    def attempt(self, path: Path_, make: Callable[[], Any]) -> Any:
        """What ``make`` returns; None and a problem where it raises."""
        try:
            return make()
        except (VtaError, ValueError) as error:
            self.add(path, str(error))
            return None

    def raise_any(self) -> None:
        if len(self.found) == 1:
            raise SweepError(f"{self.where}: {self.found[0]}")
        if self.found:
            rest = "\n".join(f"  {text}" for text in self.found)
            raise SweepError(f"{self.where}: {len(self.found)} problems\n{rest}")


def _sweep(
    content: dict[str, Any], lines: dict[Path_, int], path: Path | None, where: str
) -> Sweep:
    problems = _Problems(where, lines)
    try:
        file = _File.model_validate(content)
    except ValidationError as error:
        for detail in _told_once(error.errors()):
            location = tuple(part for part in detail["loc"] if part not in _UNION_ARMS)
            problems.add(location, _describe(location, detail))
        problems.raise_any()
        raise AssertionError("unreachable") from None

    folder = path.parent if path is not None else Path()
    base = problems.attempt(("base",), lambda: _machine(file.base, folder))
    axes = [
        problems.attempt(("axes", name), partial(_axis, name, given))
        for name, given in file.axes.items()
    ]
    known = [*axis_keys(), *DERIVED]
    where_ = [
        problems.attempt(("where", number), partial(_where, text, known))
        for number, text in enumerate(file.where)
    ]
    workloads = [
        problems.attempt(("workloads", number), partial(_workload, each, folder))
        for number, each in enumerate(file.workloads)
    ]
    options = problems.attempt(("compile",), lambda: _compile(file.compile))
    objectives = problems.attempt(("objectives",), lambda: _objectives(file.objectives))
    _no_name_twice([each for each in workloads if each is not None], problems)
    _no_key_twice([each for each in axes if each is not None], problems)
    sample = Sample() if file.sample == "grid" else file.sample
    assert isinstance(sample, Sample)
    if file.sample != "grid" and (sample.random is None) == (sample.latin_hypercube is None):
        problems.add(("sample",), "sample has either random: N or latin_hypercube: N")
    problems.raise_any()
    return Sweep(
        name=file.name or (path.stem if path is not None else "sweep"),
        about=file.about,
        base=base,
        axes=tuple(axes),
        where=tuple(where_),
        workloads=tuple(workloads),
        compile=options,
        objectives=objectives,
        sample=sample,
        area=file.area,
        time_limit=float(file.time_limit),
    )


_UNION_ARMS = ("str", "dict[str,any]", "list[str]", "literal['grid']", "Sample")


def _told_once(errors: list[ErrorDetails]) -> list[ErrorDetails]:
    """A value that fits no arm of a union is one problem, not one per arm."""
    seen: dict[Path_, ErrorDetails] = {}
    for error in errors:
        path = tuple(part for part in error["loc"] if part not in _UNION_ARMS)
        seen.setdefault(path, error)
    return list(seen.values())


def _describe(location: Path_, detail: ErrorDetails) -> str:
    key = ".".join(str(part) for part in location)
    match detail["type"]:
        case "missing":
            return f"{key} is missing"
        case "extra_forbidden":
            known = list(Sample.model_fields) if len(location) > 1 else _keys()
            return f"unknown key {key!r}{did_you_mean(str(location[-1]), known)}"
    return f"{key} = {detail['input']!r} is not allowed: {_ALLOWED.get(key) or detail['msg']}"


_ALLOWED = {
    "sample": "give grid, {random: N, seed: S} or {latin_hypercube: N, seed: S}",
    "base": "give a preset, a path or a mapping",
    "objectives": "give a list of names, or a mapping of names to min or max",
}


def _machine(base: str | dict[str, Any], folder: Path) -> dict[str, Any]:
    spec: Any = base
    if isinstance(base, str) and base not in preset_names("machines"):
        spec = folder / base
    dump: dict[str, Any] = load_machine(spec).model_dump(mode="json")
    return dump


def _axis(name: str, given: object) -> Axis:
    try:
        return make_axis(name, given)
    except ValueError as error:
        raise ValueError(f"axes.{name}: {error}") from None


def _where(text: object, known: list[str]) -> Condition:
    try:
        return parse_condition(text, known)
    except ValueError as error:
        raise ValueError(f"where: {error}") from None


def _workload(given: str | dict[str, Any], folder: Path) -> Workload:
    if isinstance(given, dict):
        return load_workload(given)
    stem = given.partition(".yaml")[0].partition(".yml")[0]
    return load_workload(given if stem == given else str(folder / given))


def _compile(given: dict[str, Any]) -> CompileOptions:
    try:
        return CompileOptions.model_validate(given)
    except ValidationError as error:
        detail = error.errors()[0]
        key = str(detail["loc"][0])
        if detail["type"] == "extra_forbidden":
            raise ValueError(
                f"{COMPILE}: unknown key {key!r}{did_you_mean(key, CompileOptions.model_fields)}"
            ) from None
        raise ValueError(
            f"{COMPILE}.{key} = {detail['input']!r} is not allowed: {detail['msg']}"
        ) from None


def _objectives(given: list[str] | dict[str, Any]) -> dict[str, Direction]:
    if not given:
        raise ValueError("objectives: none is given; what shall points be judged by?")
    chosen: dict[str, Direction] = {}
    for name in given:
        if name not in OBJECTIVES:
            raise ValueError(f"unknown objective {name!r}{_meant(name)}")
        if name in chosen:
            raise ValueError(f"objective {name!r} is given twice")
        direction = given[name] if isinstance(given, dict) else OBJECTIVES[name].direction
        if direction not in list(Direction):
            raise ValueError(f"objectives.{name} = {direction!r} is no direction; use min or max")
        chosen[name] = Direction(direction)
    return chosen


def _meant(name: str) -> str:
    """There are too many counters to list them all."""
    close = difflib.get_close_matches(name.lower(), OBJECTIVES, n=3, cutoff=0.5)
    guess = f"; did you mean {' or '.join(map(repr, close))}?" if close else ";"
    return f"{guess} docs/sweep.md lists them; every counter is one"


def _no_name_twice(workloads: list[Workload], problems: _Problems) -> None:
    names = [workload.name for workload in workloads]
    for number, name in enumerate(names):
        if name in names[:number]:
            problems.add(("workloads", number), f"a second workload is named {name!r}")


def _no_key_twice(axes: list[Axis], problems: _Problems) -> None:
    owner: dict[str, str] = {}
    for axis in axes:
        for key in axis.choices[0].values:
            if key in owner:
                problems.add(
                    ("axes", axis.name),
                    f"axes.{axis.name}: {key} is set by {owner[key]} already; tie or drop one",
                )
            owner[key] = axis.name


def described(sweep: Sweep, values: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """(machine description, compile options) of a point that sets these keys, as plain data."""
    tree = nested(dict(values))
    options = merge(sweep.compile.model_dump(), tree.pop(COMPILE, {}))
    return merge(sweep.base, tree), options
