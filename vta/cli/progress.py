"""What a long command is doing, on standard error, while somebody watches it."""

import contextlib
import sys
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def show_progress() -> Iterator[Callable[[str], None]]:
    """``with show_progress() as progress: progress("what begins")``; else silent."""
    if not sys.stderr.isatty():
        yield lambda text: None
        return
    from rich.console import Console

    with Console(stderr=True).status("") as status:
        yield status.update
