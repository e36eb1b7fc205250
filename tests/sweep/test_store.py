"""Rows are kept whatever happens, and rows of different sweeps or code never meet."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from vta.sweep import Sweep, SweepError, load_sweep, read_results
from vta.sweep.outcome import Outcome
from vta.sweep.points import planned_points
from vta.sweep.schema import DATABASE
from vta.sweep.store import Store, open_store

SPEC: dict[str, Any] = {
    "name": "mine",
    "base": "tiny",
    "axes": {"memory.read_latency": [8, 16, 24]},
    "workloads": ["matmul/single"],
    "objectives": ["cycles"],
}
VERSIONS = {"code": "0123", "numpy": "2.0"}


@pytest.fixture
def sweep() -> Sweep:
    return load_sweep(SPEC)


def opened(folder: Path, sweep: Sweep, **changes: Any) -> Any:
    return open_store(folder, sweep, **{"planned": 3, "versions": VERSIONS} | changes)


def add(store: Store, sweep: Sweep, *indices: int, **changes: Any) -> None:
    points = planned_points(sweep)
    store.add([(points[i], Outcome(i, "error", **{"error": "no"} | changes)) for i in indices])


def test_what_was_added_is_there_the_next_time(tmp_path: Path, sweep: Sweep) -> None:
    with opened(tmp_path / "a/b", sweep) as store:
        add(store, sweep, 2, 0)
    with opened(tmp_path / "a/b", sweep) as store:
        assert (store.finished(), store.failed()) == ({0, 2}, 2)
    assert [point.index for point in read_results(tmp_path / "a/b").points] == [0, 2]


def test_a_point_has_one_row_the_first(tmp_path: Path, sweep: Sweep) -> None:
    with opened(tmp_path, sweep) as store:
        add(store, sweep, 1, error="first")
        add(store, sweep, 1, error="second")
    (point,) = read_results(tmp_path).points
    assert point.error == "first"


def test_results_can_be_read_while_they_are_written(tmp_path: Path, sweep: Sweep) -> None:
    with opened(tmp_path, sweep) as store:
        add(store, sweep, 0)
        assert len(read_results(tmp_path).points) == 1


def test_another_sweep_is_refused(tmp_path: Path, sweep: Sweep) -> None:
    with opened(tmp_path, sweep) as store:
        add(store, sweep, 0)
    other = load_sweep(SPEC | {"objectives": ["dram_bytes"], "time_limit": 3})
    with pytest.raises(SweepError) as caught, opened(tmp_path, other):
        pass
    assert str(caught.value) == (
        f"{tmp_path}: holds results of another sweep (mine): objectives, time_limit differ; "
        "name another folder, or add --restart to throw these results away"
    )
    assert len(read_results(tmp_path).points) == 1


def test_other_code_is_refused(tmp_path: Path, sweep: Sweep) -> None:
    with opened(tmp_path, sweep) as store:
        add(store, sweep, 0)
    with (
        pytest.raises(SweepError, match=r"by other code \(numpy 2.0 → 2.1\), and figures"),
        opened(tmp_path, sweep, versions=VERSIONS | {"numpy": "2.1"}),
    ):
        pass


def test_restart_begins_with_nothing(tmp_path: Path, sweep: Sweep) -> None:
    with opened(tmp_path, sweep) as store:
        add(store, sweep, 0)
    other = load_sweep(SPEC | {"name": "other"})
    with opened(tmp_path, other, restart=True) as store:
        assert store.finished() == set()
    assert read_results(tmp_path).spec["name"] == "other"


def test_two_writers_at_a_time_are_one_too_many(tmp_path: Path, sweep: Sweep) -> None:
    with (
        opened(tmp_path, sweep),
        pytest.raises(SweepError, match="another sweep is writing to this folder"),
        opened(tmp_path, sweep, restart=True),
    ):
        pass
    with opened(tmp_path, sweep) as store:  # and the lock ends with its holder
        assert store.finished() == set()


def test_a_full_disk_loses_nothing_and_says_so(tmp_path: Path, sweep: Sweep) -> None:
    with opened(tmp_path, sweep) as store:
        add(store, sweep, 0)
        # SQLite reports a database at its page limit exactly as it reports a full disk.
        (pages,) = store._connection.execute("PRAGMA page_count").fetchone()
        store._connection.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(SweepError) as caught:
            add(store, sweep, 1, 2, layers="[" + "0," * 50_000 + "0]")
    assert str(caught.value) == (
        f"{tmp_path / DATABASE}: cannot write: database or disk is full; 1 finished points are "
        "safe; make room or put right what is wrong, then run the same command again to go on"
    )
    with opened(tmp_path, sweep) as store:
        assert store.finished() == {0}
        add(store, sweep, 1, 2)
        assert store.finished() == {0, 1, 2}


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path, sweep: Sweep) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with (
        pytest.raises(SweepError, match="holds files but no results of a sweep; name a new folder"),
        opened(tmp_path, sweep),
    ):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def test_a_file_is_no_folder(tmp_path: Path, sweep: Sweep) -> None:
    path = tmp_path / "file"
    path.write_text("")
    with pytest.raises(SweepError, match="is no folder; name another one"), opened(path, sweep):
        pass


def test_a_file_that_is_no_database_is_named(tmp_path: Path, sweep: Sweep) -> None:
    (tmp_path / DATABASE).write_bytes(b"no database at all, " * 100)
    with pytest.raises(SweepError, match="is no results file"), opened(tmp_path, sweep):
        pass
    with pytest.raises(SweepError, match="is no results file"):
        read_results(tmp_path)


def test_results_of_a_later_format_are_refused(tmp_path: Path, sweep: Sweep) -> None:
    with opened(tmp_path, sweep):
        pass
    with sqlite3.connect(tmp_path / DATABASE) as connection:
        connection.execute("UPDATE meta SET value = '999' WHERE key = 'schema'")
    connection.close()
    with pytest.raises(SweepError, match="has format 999, this version of vta reads"):
        read_results(tmp_path)
