"""From what a user names (preset, file, mapping) to the keys of one machine description."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from .errors import MachineError
from .presets import preset_names, preset_path
from .published import from_published, is_published
from .strict_yaml import StrictLoader
from .suggest import nearest

KIND = "machines"


def read_description(spec: str | Path | Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """(where, keys): the text messages begin with, and the keys with ``base`` merged in."""
    if isinstance(spec, Mapping):
        return "", _resolve(dict(spec), "", Path(), ())
    if isinstance(spec, str) and spec in preset_names(KIND):
        return spec, _read(preset_path(KIND, spec), ())
    if not isinstance(spec, str | Path):
        raise MachineError(f"{spec!r} is no machine; give a preset name, a path or a mapping")
    path = Path(spec)
    return str(path), _read(path, ())


def merge(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with `changes` on top; sections are merged key by key."""
    merged = dict(base)
    for key, value in changes.items():
        below = merged.get(key)
        if isinstance(below, Mapping) and isinstance(value, Mapping):
            merged[key] = merge(below, value)
        else:
            merged[key] = value
    return merged


def _read(path: Path, outer: tuple[Path, ...]) -> dict[str, Any]:
    where = str(path)
    if path.resolve() in outer:
        raise MachineError(f"{where}: is its own base; remove the `base` key of one of the files")
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise MachineError(_no_such_machine(where)) from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise MachineError(f"{where}: cannot be read: {reason}; give a YAML file") from None
    except UnicodeDecodeError as error:
        raise MachineError(
            f"{where}: is not UTF-8 text at byte {error.start}; give a YAML file"
        ) from None
    try:
        # JSON is not quite YAML: it may be indented with tabs.
        if path.suffix == ".json":
            keys = json.loads(text, object_pairs_hook=_unique_pairs)
        else:
            keys = yaml.load(text, Loader=StrictLoader)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise MachineError(f"{where}, {place}: {error.msg}; give a JSON object") from None
    except _RepeatedKey as error:
        raise MachineError(f"{where}: key {error.args[0]!r} is given twice; remove one") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise MachineError(f"{where}{line}: {error.problem}; give `key: value` lines") from None
    except yaml.YAMLError as error:
        raise MachineError(f"{where}: is no YAML: {error}") from None
    if keys is None:
        keys = {}
    if not isinstance(keys, dict):
        raise MachineError(f"{where}: holds a {type(keys).__name__}, not a mapping of keys")
    resolved = _resolve(keys, where, path.parent, (*outer, path.resolve()))
    return {"name": path.stem} | resolved if "name" not in keys else resolved


def _resolve(
    keys: dict[str, Any], where: str, folder: Path, outer: tuple[Path, ...]
) -> dict[str, Any]:
    """Published keys translated, ``base`` replaced by what it names (relative to `folder`)."""
    if is_published(keys):
        try:
            return from_published(keys)
        except MachineError as error:
            raise MachineError(f"{where}: {error}" if where else str(error)) from None
    if "base" not in keys:
        return keys
    base = keys.pop("base")
    if not isinstance(base, str):
        raise MachineError(f"{where or 'base'}: base = {base!r} is no preset name and no path")
    if base in preset_names(KIND):
        below = _read(preset_path(KIND, base), outer)
    else:
        below = _read(folder / base, outer)
    below.pop("name", None)
    return merge(below, keys)


def _no_such_machine(where: str) -> str:
    presets = preset_names(KIND)
    guess = nearest(Path(where).stem, presets)
    question = f"did you mean the preset {guess!r}? " if guess else ""
    return f"{where}: no such machine file or preset; {question}presets: {', '.join(presets)}"


class _RepeatedKey(Exception):
    """A key that a JSON object holds twice."""


def _unique_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys: dict[str, Any] = {}
    for key, value in pairs:
        if key in keys:
            raise _RepeatedKey(key)
        keys[key] = value
    return keys
