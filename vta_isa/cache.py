"""The folder in which every room keeps what is slow to make: kernels, libraries, netlists.

What is kept is named by a hash of all it was made from, so nothing in the folder is ever out of
date, only unused; ``prune`` drops what was not used for longest. Code is executed from here, so
what somebody else may write is not to be trusted: ``is_private`` says so.
"""

import contextlib
import os
import re
import shutil
import stat
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

CACHE_VARIABLE = "VTA_CACHE_DIR"
LIMIT_BYTES = 2 << 30
GRACE_SECONDS = 3600  # what was used so lately may be in use
STAMP_SECONDS = 600  # stamps are renewed when they are older: most uses cost no write
LEFTOVER_SECONDS = 24 * 3600  # a build that takes longer was killed

_ROOMS = ("kernels", "rtl", "synth")  # folders of entries; compiled Python has folders of its own
_HASHED = re.compile(r"([a-z]+-)*[0-9a-f]{16,64}(\.[a-z]+)?")
_COMPILED = re.compile(r"[a-z]+-[0-9a-f]{16}")
_LEFTOVER = re.compile(r"\.(build|new)-.*")


def cache_folder() -> Path:
    """``VTA_CACHE_DIR``, or ``vta-sdk`` in the platform's place for caches.

    Raises RuntimeError where there is no home folder to put it.
    """
    if chosen := os.environ.get(CACHE_VARIABLE):
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    elif sys.platform == "darwin":
        base = "~/Library/Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "vta-sdk"


def is_private(path: Path) -> bool:
    """Whether the path is the user's own and nobody else may write it."""
    if not hasattr(os, "getuid"):  # Windows: caches lie in the user's profile
        return True
    info = path.stat()
    return info.st_uid == os.getuid() and not info.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def write_whole(path: Path, payload: bytes) -> None:
    """Whole or not at all: another process may read or write the same file at the same time."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(payload)
        os.replace(name, path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise


def used(path: Path) -> None:
    """Remember that an entry, file or folder, is still of use."""
    with contextlib.suppress(OSError):  # read-only, or another process has just dropped it
        if time.time() - path.stat().st_mtime > STAMP_SECONDS:
            os.utime(path)


@dataclass(frozen=True)
class _Entry:
    used: float  # seconds since the epoch
    bytes: int
    path: Path


def prune(limit_bytes: int = LIMIT_BYTES) -> list[Path]:
    """Drop entries until at most ``limit_bytes`` are left, the longest unused first.

    Entries used within the last hour stay in any case. Files that are not ours by their names are
    neither counted nor touched. Returns what was dropped; trouble with the folder drops nothing.
    """
    try:
        entries = sorted(_entries(cache_folder()), key=lambda entry: entry.used)
    except (OSError, RuntimeError):
        return []
    now = time.time()
    total = sum(entry.bytes for entry in entries)
    dropped = []
    for entry in entries:
        leftover = _LEFTOVER.fullmatch(entry.path.name) is not None
        if now - entry.used < (LEFTOVER_SECONDS if leftover else GRACE_SECONDS):
            continue
        if total > limit_bytes or leftover:
            _drop(entry.path)
            total -= entry.bytes
            dropped.append(entry.path)
    return dropped


def _entries(folder: Path) -> list[_Entry]:
    found = [path for path in folder.iterdir() if path.is_dir() and _COMPILED.fullmatch(path.name)]
    for room in _ROOMS:
        if (folder / room).is_dir():
            found += [
                path
                for path in (folder / room).iterdir()
                if _HASHED.fullmatch(path.name) or _LEFTOVER.fullmatch(path.name)
            ]
    entries = []
    for path in found:
        with contextlib.suppress(OSError):  # dropped by another process meanwhile
            entries.append(_Entry(path.stat().st_mtime, _size(path), path))
    return entries


def _size(path: Path) -> int:
    if not path.is_dir():
        return path.stat().st_size
    return sum(part.lstat().st_size for part in path.rglob("*") if not part.is_dir())


def _drop(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink()
