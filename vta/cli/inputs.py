"""Input files, with errors that name them."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from vta_isa.errors import VtaError


@contextlib.contextmanager
def about(path: Path) -> Iterator[None]:
    """Errors raised inside begin with the name of the file they are about."""
    try:
        yield
    except VtaError as error:
        error.args = (f"{path}: {error}", *error.args[1:])
        raise


def read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise VtaError(f"{path}: not UTF-8 text, see byte {error.start}") from error
