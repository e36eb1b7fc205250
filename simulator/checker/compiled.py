"""The passes of the checker compiled by numba, from the same source that runs uncompiled."""

from collections.abc import Callable
from functools import cache
from typing import Any

from vta_isa import enums

from ..timing.compiled import private_folder
from . import footprints, layout, ordering

_SOURCES = (
    __file__,
    *(str(module.__file__) for module in (footprints, ordering, layout, enums)),
)


@cache
def compiled(run: Callable[..., Any]) -> Callable[..., Any]:
    """``run`` as machine code, kept between processes; itself where numba may not compile."""
    import numba

    config: Any = numba.config  # its attributes are made when it is imported
    if config.DISABLE_JIT:
        return run
    _register_parts()
    folder = private_folder("checker", _SOURCES)
    if folder is None:
        without: Callable[..., Any] = numba.njit(run)
        return without
    before = config.CACHE_DIR
    config.CACHE_DIR = str(folder)  # read while decorating, and never later
    try:
        kept: Callable[..., Any] = numba.njit(cache=True)(run)
    finally:
        config.CACHE_DIR = before
    return kept


@cache
def _register_parts() -> None:
    """Make the functions that the passes call known to numba."""
    from numba.extending import register_jitable

    for part in (*footprints.PARTS, *ordering.PARTS):
        register_jitable(part)
