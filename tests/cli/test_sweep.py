"""``vta sweep`` on a folder that is complete, so no worker starts; and what it refuses."""

import json
from pathlib import Path

import pytest

from vta.sweep import load_sweep
from vta.sweep.code_version import versions
from vta.sweep.outcome import Outcome
from vta.sweep.points import planned_points
from vta.sweep.store import open_store

FILE = """
base: tiny
axes:
  memory.read_latency: [8, 16, 24]
workloads: [matmul/single]
objectives: {cycles: min, lut: min}
"""
COSTS = [(30, 5), (20, 9), (40, 9)]  # the last one is beaten by both


@pytest.fixture
def finished(tmp_path: Path) -> Path:
    """mine.yaml, and out with a row for every point of it and one that failed."""
    (tmp_path / "mine.yaml").write_text(FILE)
    sweep = load_sweep(tmp_path / "mine.yaml")
    points = planned_points(sweep)
    with open_store(tmp_path / "out", sweep, planned=3, versions=versions()) as store:
        for point, (cycles, lut) in zip(points, COSTS, strict=True):
            values = {"cycles": cycles, "lut": lut}
            outcome = Outcome(point.index, "ok", cycles=cycles, objectives=json.dumps(values))
            store.add([(point, outcome)])
    return tmp_path / "out"


def test_it_shows_the_front_the_error_of_the_area_model_and_the_folder(vta, finished) -> None:
    ended = vta("sweep", "mine.yaml", "-o", "out")
    assert (ended.status, ended.err) == (0, "")
    assert "matmul/single: 2 of 3 points on the front" in ended.out
    rows = [line.split() for line in ended.out.splitlines()]
    assert ["0", "8", "30", "5"] in rows
    assert ["1", "16", "20", "9"] in rows
    assert "median error on a machine it has not seen: lut" in ended.out
    assert "3 of 3 points in out, as a table in points.csv" in ended.out
    assert len((finished / "points.csv").read_text().splitlines()) == 4


def test_json_holds_the_same(vta, finished) -> None:
    data = json.loads(vta("sweep", "mine.yaml", "-o", "out", "--json").out)
    assert (data["planned"], data["finished"], data["failed"]) == (3, 3, 0)
    assert [(row["point"], row["objectives"]["cycles"]) for row in data["front"]] == [
        (0, 30),
        (1, 20),
    ]
    assert data["area"]["family"] == "xc7"
    assert 0 <= data["area"]["error"]["lut"] < 1


def test_failed_points_are_counted_by_reason(vta, finished) -> None:
    (finished.parent / "more.yaml").write_text(FILE.replace("24]", "24, 32, 40]"))
    sweep = load_sweep(finished.parent / "more.yaml")
    with open_store(finished.parent / "two", sweep, planned=5, versions=versions()) as store:
        for point in planned_points(sweep):
            reason = "too small; enlarge it" if point.index < 3 else "too slow"
            store.add([(point, Outcome(point.index, "error", error=reason))])
    ended = vta("sweep", "more.yaml", "-o", "two")
    assert ended.status == 0
    assert (
        "5 of 5 points failed, for 2 reasons\n  point 0: too small\n  point 3: too slow"
        in ended.out
    )


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (("--workers", "2", "--cluster", "tcp://x:1"), 2, "drop it or --cluster"),
        (("--synth", "best"), 2, "write top:3 for the three best machines"),
        (("--synth", "top:0"), 2, "write top:3"),
        (("--workers", "0"), 2, "--workers"),
        (("--limit", "0"), 2, "--limit"),
    ],
)
def test_what_makes_no_sense_is_refused(vta, finished, words, status, message) -> None:
    ended = vta("sweep", "mine.yaml", "-o", "out", *words)
    assert (ended.status, ended.out) == (status, "")
    assert message in ended.err
    assert len(ended.err.splitlines()) == 1


def test_another_sweep_in_the_folder_ends_in_one_line(vta, finished) -> None:
    (finished.parent / "mine.yaml").write_text(FILE.replace("24]", "32]"))
    ended = vta("sweep", "mine.yaml", "-o", "out")
    assert ended.status == 1
    assert "holds results of another sweep (mine): axes differ; name another folder" in ended.err
    assert len(ended.err.splitlines()) == 1
