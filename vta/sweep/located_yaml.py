"""YAML whose every key remembers its line, so that a problem found later can name it."""

from pathlib import Path
from typing import Any

import yaml

from vta_isa.strict_yaml import StrictLoader

from .errors import SweepError

Path_ = tuple[str | int, ...]


def load_located(path: Path) -> tuple[Any, dict[Path_, int]]:
    """The content of a YAML file, and the line (from 1) of every key and list item by its path."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise SweepError(f"{path}: not UTF-8 text at byte {error.start}") from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise SweepError(f"{path}: cannot be read: {reason}; give a YAML file") from None
    loader = StrictLoader(text)
    try:
        root = loader.get_single_node()
        content = None if root is None else loader.construct_document(root)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = f", line {mark.line + 1}" if mark else ""
        raise SweepError(f"{path}{line}: {error.problem}; give `key: value` lines") from None
    except yaml.YAMLError as error:
        raise SweepError(f"{path}: is no YAML: {' '.join(str(error).split())}") from None
    finally:
        loader.dispose()
    lines: dict[Path_, int] = {}
    if root is not None:
        _note_lines(root, (), lines)
    return content, lines


def line_of(lines: dict[Path_, int], path: Path_) -> int | None:
    """The line of ``path``, or of the innermost part of it that has one."""
    for length in range(len(path), 0, -1):
        if path[:length] in lines:
            return lines[path[:length]]
    return None


def _note_lines(node: yaml.Node, path: Path_, lines: dict[Path_, int]) -> None:
    match node:
        case yaml.MappingNode():
            for key, value in node.value:
                below = (*path, str(key.value))
                lines[below] = key.start_mark.line + 1
                _note_lines(value, below, lines)
        case yaml.SequenceNode():
            for number, value in enumerate(node.value):
                below = (*path, number)
                lines[below] = value.start_mark.line + 1
                _note_lines(value, below, lines)
