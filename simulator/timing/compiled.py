"""The engine compiled by numba, from the same source that runs uncompiled, and where it is kept.

numba is imported on first use: it takes longer than many a simulation. The compiled code is kept in
``VTA_CACHE_DIR`` (default ``~/.cache/vta-sdk``), never beside the source, which may be read-only.
numba looks at the time stamp of one file only, so the folder's name holds a hash of every file the
code is made from. Where nothing can be written the engine is compiled once per process.
"""

import hashlib
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from vta_isa import microarch

from . import decode, engine, layout


def cache_folder() -> Path:
    """Where generated code of this version of the engine is kept between processes."""
    root = os.environ.get("VTA_CACHE_DIR") or Path("~/.cache/vta-sdk").expanduser()
    digest = hashlib.sha256()
    for file in (__file__, *(part.__file__ for part in (engine, decode, layout, microarch))):
        digest.update(Path(file).read_bytes())
    return Path(root) / f"timing-{digest.hexdigest()[:16]}"


@cache
def compiled_run() -> Callable[..., bool] | None:
    """``engine.run`` as machine code; None where numba is told not to compile."""
    import numba
    from numba.extending import register_jitable

    if numba.config.DISABLE_JIT:
        return None
    for part in engine.PARTS:
        # Without reference counts on the arrays they pass on: half of the time, as none allocates.
        register_jitable(_nrt=False)(part)
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(cache_folder())  # read while decorating, and never later
    try:
        run: Any = numba.njit(cache=True)(engine.run)
    except RuntimeError:  # numba found no folder it may write to
        run = numba.njit(engine.run)
    finally:
        numba.config.CACHE_DIR = before
    compiled: Callable[..., bool] = run
    return compiled
