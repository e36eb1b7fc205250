"""Runs the iterations of parallel loops on threads of this process."""

from __future__ import annotations

import ctypes
import os
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise

_BODY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
_RUN = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)


@cache
def _threads() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_threads(), thread_name_prefix="vta-compiler")


def _parallel_for(function: int, environment: int, extent: int) -> None:
    """Call ``function(environment, begin, end)`` on one consecutive chunk per thread.

    ctypes releases the interpreter lock around native code, so chunks run at the same time. A
    parallel loop inside another, which would wait for threads that wait for it, runs serially.
    """
    body = _BODY(function)
    chunks = min(extent, _threads())
    if chunks == 1 or _inside_pool():
        body(environment, 0, extent)
        return
    bounds = [extent * i // chunks for i in range(chunks + 1)]
    running = [_pool().submit(body, environment, begin, end) for begin, end in pairwise(bounds)]
    for part in running:
        part.result()


def _inside_pool() -> bool:
    import threading

    return threading.current_thread().name.startswith("vta-compiler")


PARALLEL_FOR_FUNCTION = _RUN(_parallel_for)


def parallel_for_address() -> int:
    """The address native code calls."""
    address = ctypes.cast(PARALLEL_FOR_FUNCTION, ctypes.c_void_p).value
    assert address is not None
    return address
