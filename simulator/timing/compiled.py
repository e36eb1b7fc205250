"""The engine compiled by numba, from the same source that runs uncompiled, and where it is kept.

numba is imported on first use: it takes longer than many a simulation. The compiled code is kept in
the cache folder (``VTA_CACHE_DIR``), never beside the source, which may be
read-only. numba looks at the time stamp of one file only, so the folder's name holds a hash of
every file the code is made from. Where the folder cannot be used, the engine is compiled once per
process.
"""

import hashlib
import os
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from vta_isa import microarch
from vta_isa.cache import cache_folder, is_private, used

from . import decode, engine, layout

_SOURCES = (
    __file__,
    *(str(module.__file__) for module in (engine, decode, layout, microarch)),
)


@cache
def compiled_run() -> Callable[..., bool] | None:
    """``engine.run`` as machine code; None where numba is told not to compile."""
    import numba
    from numba.extending import register_jitable

    config: Any = numba.config  # its attributes are made when it is imported
    if config.DISABLE_JIT:
        return None
    for part in engine.PARTS:
        # Without reference counts on the arrays they pass on: half of the time, as none allocates.
        register_jitable(_nrt=False)(part)
    folder = private_folder("timing", _SOURCES)
    if folder is None:
        compiled: Callable[..., bool] = numba.njit(engine.run)
        return compiled
    before = config.CACHE_DIR
    config.CACHE_DIR = str(folder)  # read while decorating, and never later
    try:
        compiled = numba.njit(cache=True)(engine.run)
    finally:
        config.CACHE_DIR = before
    return compiled


def private_folder(name: str, sources: Sequence[str]) -> Path | None:
    """The cache folder of this version of ``sources``; None unless it is ours alone to write.

    Code is executed from it, so nobody else may put any there.
    """
    digest = hashlib.sha256(b"".join(Path(file).read_bytes() for file in sources))
    try:
        folder = cache_folder() / f"{name}-{digest.hexdigest()[:16]}"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not is_private(folder) or not os.access(folder, os.W_OK):
            return None
    except (OSError, RuntimeError):  # RuntimeError: there is no home folder
        return None
    used(folder)
    return folder
