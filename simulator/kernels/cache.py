"""Compiled kernels on disk, so that a machine is compiled once per host and not once per process.

Object code is executed, so it is only read from files and a folder that belong to the user and that
nobody else may write. Whatever goes wrong with the cache only costs the compile.
"""

import hashlib
import logging
import os
import stat
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

CACHE_VARIABLE = "VTA_CACHE_DIR"
_LOG = logging.getLogger("vta.simulator")
_DIGEST_BYTES = hashlib.sha256().digest_size


def cache_folder() -> Path:
    """``VTA_CACHE_DIR``, or ``vta-sdk`` in the platform's place for caches."""
    if chosen := os.environ.get(CACHE_VARIABLE):
        return Path(chosen)
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    elif sys.platform == "darwin":
        base = "~/Library/Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "vta-sdk"


def cached(key: str, produce: Callable[[], bytes]) -> bytes:
    """The bytes stored under ``key``, else those of ``produce``, stored for the next time.

    ``key`` is everything the bytes depend on, of any length.
    """
    try:
        path = _file(key)
        found = _read(path)
    except (OSError, RuntimeError) as error:  # RuntimeError: there is no home folder
        _LOG.debug("kernel cache is not readable: %s", error)
        return produce()
    if found is not None:
        return found
    made = produce()
    try:
        _write(path, made)
    except OSError as error:
        _LOG.debug("kernel cache is not writable: %s", error)
    return made


def _file(key: str) -> Path:
    return cache_folder() / "kernels" / f"{hashlib.sha256(key.encode()).hexdigest()}.o"


def _read(path: Path) -> bytes | None:
    """The payload; None where there is no file, or none to be trusted: not ours, or damaged."""
    if not path.exists() or not (_is_private(path.parent) and _is_private(path)):
        return None
    content = path.read_bytes()
    digest, payload = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
    return payload if hashlib.sha256(payload).digest() == digest else None


def _write(path: Path, payload: bytes) -> None:
    """Whole or not at all: another process may read or write the same file at the same time."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not _is_private(path.parent):
        raise OSError(f"{path.parent} is writable by others; not used")
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(hashlib.sha256(payload).digest() + payload)
        os.replace(name, path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise


def _is_private(path: Path) -> bool:
    """Whether the path is the user's own and nobody else may write it."""
    if not hasattr(os, "getuid"):  # Windows: caches lie in the user's profile
        return True
    info = path.stat()
    return info.st_uid == os.getuid() and not info.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
