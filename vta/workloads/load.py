"""Workload descriptions: presets, and YAML files of the user's own."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import Field, ValidationError
from pydantic_core import ErrorDetails

from vta_isa.errors import WorkloadError
from vta_isa.presets import preset_names, preset_path
from vta_isa.strict_yaml import StrictLoader
from vta_isa.suggest import did_you_mean, nearest

from .layers import KINDS, Description, Epilogue, Layer
from .workload import Workload

KIND = "workloads"
_SUFFIXES = (".yaml", ".yml")


class _File(Description):
    """The outermost keys of a workload file."""

    name: str = ""
    about: str = ""
    layers: Annotated[list[Any], Field(min_length=1)]
    totals: dict[str, Annotated[list[str], Field(min_length=1)]] = Field(default_factory=dict)


def load_workload(spec: str | Path | Mapping[str, object] | Workload) -> Workload:
    """A workload from what the user names.

    ``spec`` is a preset (``resnet18``), a path to a YAML file, either of them with one layer
    picked (``resnet18/C2``, ``mine.yaml/first``), the content of such a file as a mapping, or a
    workload, which is returned. Raises ``WorkloadError`` naming file, layer and key.
    """
    if isinstance(spec, Workload):
        return spec
    if isinstance(spec, Mapping):
        return _workload(dict(spec), where="workload", name="workload")
    text = str(spec)
    if text.endswith(_SUFFIXES):
        return _read(Path(text))
    head, _, layer = text.rpartition("/")
    if head.endswith(_SUFFIXES):
        return _read(Path(head)).pick(layer)
    if head:
        return _preset(head, spec=text).pick(layer)
    return _preset(text, spec=text)


def _preset(name: str, spec: str) -> Workload:
    presets = preset_names(KIND)
    if name not in presets:
        raise WorkloadError(
            f"there is no workload {spec!r}{did_you_mean(name, presets)}; "
            "a file of your own ends in .yaml"
        )
    return _read(preset_path(KIND, name), where=name)


def _read(path: Path, where: str | None = None) -> Workload:
    """``where`` is how errors name the file; its path unless given."""
    where = where or str(path)
    if not path.exists():
        presets = preset_names(KIND)
        guess = nearest(path.stem, presets)
        question = f"did you mean the preset {guess!r}? " if guess else ""
        raise WorkloadError(
            f"{where}: no such workload file; {question}presets: {', '.join(presets)}"
        )
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), Loader=StrictLoader)
    except UnicodeDecodeError as error:
        raise WorkloadError(f"{where}: not UTF-8 text at byte {error.start}") from error
    except yaml.YAMLError as error:
        raise WorkloadError(f"{where}: not YAML: {_flat(error)}") from error
    if not isinstance(content, dict):
        raise WorkloadError(
            f"{where}: holds {_what(content)} where a mapping with `layers:` is expected"
        )
    return _workload(content, where, name=path.stem)


def _workload(content: dict[Any, Any], where: str, name: str) -> Workload:
    try:
        file = _File.model_validate(content)
    except ValidationError as error:
        raise WorkloadError(_problems(error, where, _File)) from error
    layers = tuple(_layer(item, number, where) for number, item in enumerate(file.layers))
    names = [layer.name for layer in layers]
    for label in names:
        if names.count(label) > 1:
            raise WorkloadError(f"{where}: {names.count(label)} layers are named {label!r}")
    for label, members in file.totals.items():
        for member in members:
            if member not in names:
                raise WorkloadError(
                    f"{where}: totals.{label}: there is no layer {member!r}"
                    f"{did_you_mean(member, names)}"
                )
    totals = {label: tuple(members) for label, members in file.totals.items()}
    return Workload(file.name or name, layers, file.about, totals)


def _layer(item: object, number: int, where: str) -> Layer:
    where = f"{where}: layers[{number}]"
    if not isinstance(item, dict):
        raise WorkloadError(f"{where} is {_what(item)} where a mapping is expected")
    if isinstance(item.get("name"), str):
        where += f" ({item['name']})"
    if "kind" not in item:
        raise WorkloadError(f"{where} has no kind; known are {', '.join(KINDS)}")
    kind = item["kind"]
    if not isinstance(kind, str) or kind not in KINDS:
        raise WorkloadError(f"{where}: unknown kind {kind!r}{did_you_mean(str(kind), KINDS)}")
    try:
        layer: Layer = KINDS[kind].model_validate(item)
    except ValidationError as error:
        raise WorkloadError(_problems(error, where, KINDS[kind])) from error
    return layer


def _problems(error: ValidationError, where: str, description: type[Description]) -> str:
    """Every problem of a description, in one line."""
    return f"{where}: " + "; ".join(_problem(detail, description) for detail in error.errors())


def _problem(detail: ErrorDetails, description: type[Description]) -> str:
    place = ".".join(str(part) for part in detail["loc"])
    match detail["type"]:
        case "missing":
            return f"{place} is missing"
        case "extra_forbidden":
            inner = description if len(detail["loc"]) == 1 else Epilogue
            return (
                f"unknown key {place!r}{did_you_mean(str(detail['loc'][-1]), inner.model_fields)}"
            )
        case "value_error":
            return f"{place}: {detail['ctx']['error']}" if place else str(detail["ctx"]["error"])
        case _:
            return f"{place} = {detail['input']!r} is not allowed: {detail['msg']}"


def _what(value: object) -> str:
    return "nothing" if value is None else f"{type(value).__name__} {value!r:.40}"


def _flat(error: yaml.YAMLError) -> str:
    return " ".join(str(error).split())
