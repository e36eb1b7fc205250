"""Ctrl-C where Python would lose it."""

import _thread
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

DELAY = 0.05  # seconds


@contextmanager
def kept_interrupts() -> Iterator[None]:
    """An interrupt that nobody can raise further comes again a moment later.

    An exception in a function that C calls (llvmlite does while it compiles) ends there: Python
    hands it to ``sys.unraisablehook``, prints it and goes on.
    """
    before = sys.unraisablehook

    def again(lost: "sys.UnraisableHookArgs") -> None:
        if lost.exc_type is not KeyboardInterrupt:
            before(lost)
            return
        timer = threading.Timer(DELAY, _thread.interrupt_main)
        timer.daemon = True
        timer.start()

    sys.unraisablehook = again
    try:
        yield
    finally:
        sys.unraisablehook = before
