"""The writing side of a results folder: made once, locked while it is written, never mixed."""

import contextlib
import datetime
import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from vta_isa.counters import COUNTERS

from ..workload_data import SEED
from .errors import SweepError
from .outcome import Outcome
from .points import PlannedPoint
from .schema import DATABASE, SCHEMA_VERSION, open_database, read_meta
from .spec import Sweep

LOCK = "lock.sqlite"
_ELSEWHERE = "name another folder, or add --restart to throw these results away"


class Store:
    """Rows of one sweep. Every ``add`` is on disk, whole, before it returns."""

    def __init__(self, connection: sqlite3.Connection, folder: Path, sweep: Sweep, code: str):
        self.folder = folder
        self._connection = connection
        self._workloads = [workload.name for workload in sweep.workloads]
        self._code = code

    def finished(self) -> set[int]:
        """Indices of the points that have a row."""
        return {row["point"] for row in self._connection.execute("SELECT point FROM points")}

    def failed(self) -> int:
        """How many rows are of points that failed."""
        (count,) = self._connection.execute(
            "SELECT count(*) FROM points WHERE error IS NOT NULL"
        ).fetchone()
        return int(count)

    def add(self, rows: Sequence[tuple[PlannedPoint, Outcome]]) -> None:
        """Append rows, all or none. A point that has one already keeps it."""
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
        values = [
            (
                point.index,
                self._workloads[point.workload],
                _json(point.machine),
                outcome.machine_hash,
                _json(point.axes),
                _json(point.compile),
                outcome.status,
                outcome.error,
                outcome.objectives,
                outcome.cycles,
                outcome.layers,
                outcome.area,
                SEED,
                self._code,
                outcome.wall_s,
                now,
            )
            for point, outcome in rows
        ]
        marks = ", ".join("?" * len(values[0])) if values else ""
        with self._writing():
            self._connection.executemany(f"INSERT OR IGNORE INTO points VALUES ({marks})", values)

    def add_synthesis(
        self, machine_hash: str, area: Mapping[str, float] | None, error: str | None
    ) -> None:
        """What synthesis made of a machine."""
        row = (machine_hash, None if area is None else _json(area), error)
        with self._writing():
            self._connection.execute("INSERT OR REPLACE INTO synthesis VALUES (?, ?, ?)", row)

    def synthesised(self) -> set[str]:
        """Hashes of the machines that have been through synthesis."""
        rows = self._connection.execute("SELECT machine_hash FROM synthesis")
        return {row["machine_hash"] for row in rows}

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            yield
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            if self._connection.in_transaction:
                with contextlib.suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")
            raise _cannot_write(self.folder, error, len(self.finished())) from None


@contextlib.contextmanager
def open_store(
    folder: Path,
    sweep: Sweep,
    *,
    planned: int,
    versions: Mapping[str, str],
    restart: bool = False,
) -> Iterator[Store]:
    """The results of ``sweep`` in ``folder``, made if there are none, else continued.

    Refused where the folder holds another sweep's results or ones that other code computed, where
    it holds other files and no results, and while another process writes to it. ``restart`` throws
    results away instead.
    """
    path = folder / DATABASE
    if folder.exists() and not folder.is_dir():
        raise SweepError(f"{folder}: is no folder; name another one")
    if not path.exists() and folder.is_dir() and any(_strangers(folder)):
        raise SweepError(f"{folder}: holds files but no results of a sweep; name a new folder")
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder):
        if restart:
            for suffix in ("", "-wal", "-shm"):
                (folder / f"{DATABASE}{suffix}").unlink(missing_ok=True)
        try:
            connection = open_database(path)
        except sqlite3.DatabaseError as error:
            raise SweepError(f"{path}: is no results file: {error}; {_ELSEWHERE}") from None
        try:
            store = Store(connection, folder, sweep, versions["code"])
            _claim(store, connection, sweep, planned, versions)
            yield store
        finally:
            connection.close()


def _claim(
    store: Store,
    connection: sqlite3.Connection,
    sweep: Sweep,
    planned: int,
    versions: Mapping[str, str],
) -> None:
    meta = read_meta(connection)
    if not meta:
        mine = {
            "schema": SCHEMA_VERSION,
            "spec": _json(sweep.as_json()),
            "digest": sweep.digest,
            "versions": _json(versions),
            "planned": str(planned),
            "counters": _json([counter.name for counter in COUNTERS]),
        }
        with store._writing():
            connection.executemany("INSERT INTO meta VALUES (?, ?)", mine.items())
        return
    if meta["digest"] != sweep.digest:
        before, now = json.loads(meta["spec"]), sweep.as_json()
        changed = [key for key in now if key != "about" and before.get(key) != now[key]]
        raise SweepError(
            f"{store.folder}: holds results of another sweep ({before['name']}): "
            f"{', '.join(changed)} differ; {_ELSEWHERE}"
        )
    before = json.loads(meta["versions"])
    changed = [
        f"{key} {before.get(key)} → {now}"
        for key, now in versions.items()
        if before.get(key) != now
    ]
    if changed:
        raise SweepError(
            f"{store.folder}: holds results of the same sweep by other code "
            f"({', '.join(changed)}), and figures of the two must not mix; {_ELSEWHERE}"
        )


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One writer at a time. The lock is a transaction of a database of its own: it ends with the
    process, however that ends, and works wherever SQLite does."""
    connection = sqlite3.connect(folder / LOCK, timeout=0, isolation_level=None)
    try:
        try:
            connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error):
                raise _cannot_write(folder, error, None) from None
            raise SweepError(
                f"{folder}: another sweep is writing to this folder; wait for it, or name another"
            ) from None
        yield
    finally:
        connection.close()


def _strangers(folder: Path) -> Iterator[Path]:
    return (path for path in folder.iterdir() if not path.name.startswith(LOCK))


def _cannot_write(folder: Path, error: sqlite3.Error, safe: int | None) -> SweepError:
    kept = "" if safe is None else f" {safe} finished points are safe;"
    return SweepError(
        f"{folder / DATABASE}: cannot write: {error};{kept} "
        "make room or put right what is wrong, then run the same command again to go on"
    )


def _json(data: Any) -> str:
    return json.dumps(data, separators=(",", ":"))
