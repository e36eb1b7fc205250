"""Output folders that are refused before long work, and filled with whole files or not at all."""

import contextlib
import errno
from collections.abc import Callable, Iterator
from pathlib import Path

from vta_isa.errors import VtaError

from .files import check_writable, write_whole


@contextlib.contextmanager
def whole_folder(
    folder: Path, *, force: bool = False
) -> Iterator[Callable[[str, bytes | str], None]]:
    """``with whole_folder(path) as write: write(name, content)``: files appear when all are there.

    The folder is made, with those above it; one that is not empty is refused unless ``force``, and
    files of other names then stay. When the body raises, no file has been written and folders that
    were made are gone.
    """
    contents: dict[str, bytes | str] = {}
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, "is no folder; name another one", str(folder))
    if not force and folder.is_dir() and any(folder.iterdir()):
        raise VtaError(
            f"{folder}: the folder is not empty; name a new one, or add --force to write into it"
        )
    made = _make(folder)
    try:
        check_writable(folder / "manifest.json")
        yield contents.__setitem__
        for name in contents:
            check_writable(folder / name)
    except BaseException:
        for each in made:
            with contextlib.suppress(OSError):
                each.rmdir()
        raise
    for name, content in contents.items():
        write_whole(folder / name, content)


def _make(folder: Path) -> list[Path]:
    """Make the folder and those above it; the ones made, innermost first."""
    missing = []
    for each in (folder, *folder.parents):
        if each.exists():
            break
        missing.append(each)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise type(error)(
            error.errno, f"cannot make the folder: {error.strerror}".lower(), str(folder)
        ) from error
    return missing
