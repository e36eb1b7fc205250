"""An end to work that takes too long, in the thread that does it."""

import contextlib
import ctypes
import os
import threading
from collections.abc import Iterator

GRACE_SECONDS = 5.0  # for the exception to arrive: native code does not notice it
KILLED = 70  # exit status of a process that had to be ended


class OutOfTime(BaseException):
    """Raised in the middle of whatever runs; no ``except Exception`` on the way may hold it."""


@contextlib.contextmanager
def time_limit(seconds: float, *, kill: bool) -> Iterator[None]:
    """Raise ``OutOfTime`` in this thread when the block takes longer.

    Python code stops at once. Native code that does not return is only ended with its process:
    with ``kill``, for a worker that will be replaced, that happens after ``GRACE_SECONDS``.
    """
    thread = ctypes.c_ulong(threading.get_ident())
    raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc
    lock = threading.Lock()
    over = expired = False

    def expire() -> None:
        nonlocal expired
        with lock:
            if not over:
                expired = True
                raise_in(thread, ctypes.py_object(OutOfTime))

    timers = [threading.Timer(seconds, expire)]
    if kill:
        timers.append(threading.Timer(seconds + GRACE_SECONDS, os._exit, (KILLED,)))
    for timer in timers:
        timer.daemon = True
        timer.start()
    try:
        yield
    finally:
        for timer in timers:
            timer.cancel()
        with lock:
            over = True
            if expired:  # an exception that has not arrived yet must not hit what comes after
                raise_in(thread, None)
