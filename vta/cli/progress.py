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


@contextlib.contextmanager
def show_count(what: str) -> Iterator[Callable[[int, int, int], None] | None]:
    """``with show_count("points") as progress: progress(done, total, failed)``; else silent.

    A bar with the rate and the time left. What was done before the first call (an earlier run's)
    does not count for the rate.
    """
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None, rate="")

        def progress(done: int, total: int, failed: int) -> None:
            text = f"{what}, {failed} failed" if failed else what
            speed = bar.tasks[0].finished_speed or bar.tasks[0].speed
            rate = f"{speed:.3g}/s" if speed else ""
            if bar.tasks[0].total is None:  # the first call
                bar.reset(task, total=total, completed=done, description=text, rate="")
            else:
                bar.update(task, completed=done, total=total, description=text, rate=rate)

        yield progress
