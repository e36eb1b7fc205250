"""Input files, with errors that name them."""

from pathlib import Path

from vta_isa.errors import VtaError


def read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise VtaError(f"{path}: not UTF-8 text, see byte {error.start}") from error
