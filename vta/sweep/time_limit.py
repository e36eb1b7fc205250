"""An end to work that takes too long, in the thread that does it."""

import contextlib
import ctypes
import os
import threading
from collections.abc import Callable, Iterator

GRACE_SECONDS = 5.0  # for the exception to arrive: native code does not notice it
KILLED = 70  # exit status of a process that had to be ended


class OutOfTime(BaseException):
    """Raised in the middle of whatever runs; no ``except Exception`` on the way may hold it."""


@contextlib.contextmanager
def time_limit(seconds: float, last_words: Callable[[], None] | None = None) -> Iterator[None]:
    """Raise ``OutOfTime`` in this thread when the block takes longer.

    Python code stops at once. Native code that does not return is only ended with its process:
    for a worker, which will be replaced, give ``last_words``; they are called before that
    happens, ``GRACE_SECONDS`` later.
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

    def end() -> None:
        assert last_words is not None
        last_words()
        os._exit(KILLED)

    timers = [threading.Timer(seconds, expire)]
    if last_words is not None:
        timers.append(threading.Timer(seconds + GRACE_SECONDS, end))
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
