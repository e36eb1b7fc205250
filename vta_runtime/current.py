"""The runtime that C calls of a thread go to, and errors of calls that found none."""

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .runtime import Runtime


class _Thread(threading.local):
    def __init__(self) -> None:
        self.active: list[Runtime] = []
        self.error: BaseException | None = None


_THREAD = _Thread()


def enter(runtime: "Runtime") -> None:
    """Make ``runtime`` the calling thread's current one until ``leave``; calls nest."""
    _THREAD.active.append(runtime)


def leave() -> None:
    """Make the runtime that was current before the last ``enter`` current again."""
    _THREAD.active.pop()


def current_runtime() -> "Runtime | None":
    """The calling thread's current runtime."""
    return _THREAD.active[-1] if _THREAD.active else None


def keep_error(error: BaseException) -> None:
    """Remember the first error of a C call that had no runtime to remember it."""
    if _THREAD.error is None:
        _THREAD.error = error


def take_error() -> BaseException | None:
    """What ``keep_error`` kept on this thread; it is forgotten here."""
    error, _THREAD.error = _THREAD.error, None
    return error
