"""Compiled kernels on disk, so that a machine is compiled once per host and not once per process.

Object code is executed, so it is only read from files and a folder that belong to the user and that
nobody else may write. Whatever goes wrong with the cache only costs the compile.
"""

import hashlib
import logging
from collections.abc import Callable
from pathlib import Path

from vta_isa.cache import cache_folder, is_private, prune, used, write_whole

_LOG = logging.getLogger("vta.simulator")
_DIGEST_BYTES = hashlib.sha256().digest_size


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
    if not path.exists() or not (is_private(path.parent) and is_private(path)):
        return None
    content = path.read_bytes()
    digest, payload = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
    if hashlib.sha256(payload).digest() != digest:
        return None
    used(path)
    return payload


def _write(path: Path, payload: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not is_private(path.parent):
        raise OSError(f"{path.parent} is writable by others; not used")
    write_whole(path, hashlib.sha256(payload).digest() + payload)
    prune()
