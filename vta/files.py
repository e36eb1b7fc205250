"""Output files that are whole or absent, and refused before long work rather than after it."""

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO


def write_whole(path: str | Path, data: bytes | str) -> None:
    """Write ``data`` to ``path`` so that a reader sees the old file or the whole new one.

    The bytes go to a temporary file in the same folder, which then takes the name. Text is written
    as UTF-8. A symbolic link is followed; something that is not a plain file (``/dev/null``, a
    pipe) is written to directly, for it must not be replaced.
    """
    target = Path(os.path.realpath(path))
    content = data.encode() if isinstance(data, str) else data
    if target.exists() and not target.is_file():
        target.write_bytes(content)
        return
    with _temporary(target) as temporary, _named(path, target):
        _create(temporary)
        temporary.write_bytes(content)
        _take_name(temporary, target)


@contextlib.contextmanager
def whole_file(path: str | Path) -> Iterator[IO[bytes]]:
    """``write_whole`` for data that come piece by piece: what the block writes becomes ``path``.

    If the block raises, ``path`` stays as it was, and the error is passed on as it is.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        with target.open("wb") as file:
            yield file
        return
    with _temporary(target) as temporary:
        with _named(path, target):
            _create(temporary)
        with temporary.open("wb") as file:
            yield file
        with _named(path, target):
            _take_name(temporary, target)


def check_writable(path: str | Path) -> None:
    """Raise the ``OSError`` that ``write_whole`` would meet, now, leaving nothing behind.

    A file is really made in the folder: permission bits do not tell of read-only file systems.
    """
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, "is a folder; name a file in it", str(path))
    if target.exists() and not target.is_file():
        return
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, "is write-protected", str(path))
    with _temporary(target) as temporary, _named(path, target):
        _create(temporary)


@contextlib.contextmanager
def _temporary(target: Path) -> Iterator[Path]:
    """A name beside ``target``; what has it at the end is removed."""
    temporary = target.with_name(f".{target.name[:100]}.{secrets.token_hex(4)}.part")
    try:
        yield temporary
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def _create(path: Path) -> None:
    # 0o666 less the umask, as for any new file; mkstemp would make it private.
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))


def _take_name(temporary: Path, target: Path) -> None:
    if target.exists():
        temporary.chmod(stat.S_IMODE(target.stat().st_mode))
    temporary.replace(target)


@contextlib.contextmanager
def _named(path: str | Path, target: Path) -> Iterator[None]:
    """Errors speak of ``path``, what the user called the target, not of the temporary file."""
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno or 0).lower()
        if not target.parent.is_dir():
            reason = f"there is no folder {target.parent}"
        raise type(error)(error.errno, f"cannot write: {reason}", str(path)) from error
