"""Batches on their way through a cluster: who gets what next, and what when a worker dies."""

import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from time import monotonic
from typing import TYPE_CHECKING

from .errors import SweepError
from .outcome import Outcome
from .results import CRASH
from .work import Batch, run_batch, timed_out

if TYPE_CHECKING:
    from distributed import Client, Future, Nanny

MOST_DEATHS = 2  # of the worker, before a point on its own is to blame
SLACK_SECONDS = 30.0  # beyond the time limits of a batch, for a worker that cannot end itself
_POLL_SECONDS = 1.0  # how often new workers are looked for


@dataclass(frozen=True)
class _Sent:
    """A batch under way. ``deaths``: of workers that had it, so far. ``since``: when it was sent,
    or last known to wait for a worker. ``killed``: it was overdue, and its worker was ended."""

    batch: Batch
    deaths: int
    since: float
    killed: bool = False

    @property
    def overdue(self) -> bool:
        allowed = len(self.batch.points) * self.batch.time_limit + SLACK_SECONDS
        return monotonic() - self.since > allowed

    def again(self, points: Iterable[int]) -> list[tuple[Batch, int]]:
        """Batches of one point each, for the points with these indices."""
        wanted = set(points)
        alone = [point for point in self.batch.points if point[0] in wanted]
        return [(replace(self.batch, points=[point]), 0) for point in alone]


def run_batches(
    client: "Client", batches: Iterable[Batch], refill: Callable[[], None]
) -> Iterator[list[Outcome]]:
    """What became of the points of each batch, in the order in which batches end.

    As many batches are under way as there are threads of workers; ``refill`` sees to it that there
    are some. When a worker dies, dask brings
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
                done = set()
                refill()
            for future in done:
                given_up, again = _ended(client, future, under_way.pop(future))
                waiting.extendleft(reversed(again))
                if given_up:
                    yield given_up
            for future, sent in list(under_way.items()):
                if sent.overdue:
                    under_way[future] = _hurried(client, future, sent)
    finally:
        client.cancel(list(under_way), reason="the sweep ends", msg="the sweep ends")


_Verdict = tuple[list[Outcome], list[tuple[Batch, int]]]  # outcomes; batches to send, with deaths


def _ended(client: "Client", future: "Future", sent: _Sent) -> _Verdict:
    from distributed import KilledWorker

    if future.status == "finished":
        return future.result(), []
    error = future.exception() if future.status == "error" else None
    if isinstance(error, SweepError):
        raise error
    if not isinstance(error, KilledWorker):
        what = f"{type(error).__name__}: {error}" if error else f"work was {future.status}"
        raise SweepError(
            f"the cluster failed: {what}; finished points are safe, run again to go on"
        )
    # Who had to be ended because of its time said so.
    late = {index for _, index in client.get_events(sent.batch.topic)}
    indices = [index for index, *_ in sent.batch.points]
    if sent.killed and len(indices) == 1:
        late.update(indices)
    given_up = [
        timed_out(index, sent.batch.time_limit, sent.batch.time_limit)
        for index in indices
        if index in late
    ]
    rest = [index for index in indices if index not in late]
    if given_up or len(indices) > 1:  # who of several is to blame will show
        return given_up, sent.again(rest)
    if sent.deaths + 1 < MOST_DEATHS:
        return [], [(sent.batch, sent.deaths + 1)]
    text = (
        f"the worker died with this point, {MOST_DEATHS} times: out of memory, or a crash of ours"
    )
    return [Outcome(rest[0], CRASH, error=text)], []


def _hurried(client: "Client", future: "Future", sent: _Sent) -> _Sent:
    """Has the worker of an overdue batch ended from outside, if it has one."""
    for address, keys in client.processing().items():
        if future.key in keys:
            client.run(_end_worker, nanny=True, workers=[address], on_error="ignore")
            return replace(sent, since=monotonic(), killed=True)
    return replace(sent, since=monotonic())  # it waits for a worker, so it has not begun


def _end_worker(dask_worker: "Nanny") -> None:
    """Runs in the process beside the worker, which will start another one."""
    if dask_worker.pid is not None:
        os.kill(dask_worker.pid, signal.SIGTERM if os.name == "nt" else signal.SIGKILL)
