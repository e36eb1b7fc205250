"""Batches on their way through a cluster: who gets what next, and what when a worker dies."""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from time import monotonic
from typing import TYPE_CHECKING

from .errors import SweepError
from .outcome import Outcome
from .results import CRASH
from .work import Batch, run_batch, timed_out

if TYPE_CHECKING:
    from distributed import Client, Future

MOST_DEATHS = 2  # of the worker, before a point on its own is to blame
_POLL_SECONDS = 1.0  # how often new workers are looked for


@dataclass(frozen=True)
class _Sent:
    """A batch under way. ``deaths``: of workers that had it, so far."""

    batch: Batch
    deaths: int
    since: float


def run_batches(client: "Client", batches: Iterable[Batch]) -> Iterator[list[Outcome]]:
    """What became of the points of each batch, in the order in which batches end.

    As many batches are under way as there are threads of workers. When a worker dies, dask brings
    up another one; the points of its batch are sent again, each on its own, and one that is the
    end of ``MOST_DEATHS`` workers is given up as a crash.
    """
    from distributed import wait

    waiting = deque((batch, 0) for batch in batches)
    under_way: dict[Future, _Sent] = {}
    try:
        while waiting or under_way:
            room = max(1, sum(client.nthreads().values())) - len(under_way)
            for _ in range(min(room, len(waiting))):
                batch, deaths = waiting.popleft()
                future = client.submit(run_batch, batch, pure=False, retries=0)
                under_way[future] = _Sent(batch, deaths, monotonic())
            try:
                with client.as_current():
                    done = wait(list(under_way), _POLL_SECONDS, return_when="FIRST_COMPLETED").done
            except TimeoutError:
                continue
            for future in done:
                sent = under_way.pop(future)
                given_up, again = _ended(future, sent)
                waiting.extendleft(reversed(again))
                if given_up:
                    yield given_up
    finally:
        client.cancel(list(under_way), reason="the sweep ends", msg="the sweep ends")


def _ended(future: "Future", sent: _Sent) -> tuple[list[Outcome], list[tuple[Batch, int]]]:
    """(outcomes, batches to send again with the deaths they have behind them)."""
    from distributed import KilledWorker

    if future.status == "finished":
        outcomes: list[Outcome] = future.result()
        return outcomes, []
    error = future.exception() if future.status == "error" else None
    if not isinstance(error, KilledWorker):
        if isinstance(error, SweepError):
            raise error
        what = f"{type(error).__name__}: {error}" if error else f"work was {future.status}"
        raise SweepError(
            f"the cluster failed: {what}; what is finished is safe, run again to go on"
        )
    points = sent.batch.points
    if len(points) > 1:  # one of them is to blame; which one will show
        return [], [(replace(sent.batch, points=[point]), 0) for point in points]
    seconds = monotonic() - sent.since
    index = points[0][0]
    if seconds >= sent.batch.time_limit:
        return [timed_out(index, sent.batch.time_limit, seconds)], []
    if sent.deaths + 1 < MOST_DEATHS:
        return [], [(sent.batch, sent.deaths + 1)]
    text = (
        f"the worker died with this point, {MOST_DEATHS} times: out of memory, or a crash of ours"
    )
    return [Outcome(index, CRASH, error=text, wall_s=seconds)], []
