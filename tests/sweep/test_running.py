"""A sweep on real workers: killed, crashed, out of time, and always the same table in the end."""

import gc
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import dask
import pytest
from distributed import LocalCluster

from vta.sweep import SweepError, read_results, run_sweep
from vta.sweep.run import TABLE

FILE = """
name: small
base: tiny
axes:
  gemm.block: [4, 8, 256]               # the last one cannot be built
  memory.read_latency: {from: 8, to: 64, step: 8}
  compile.vthreads: [false, true]
workloads:
  - name: product
    layers:
      - {name: p, kind: dense, m: 8, k: 16, n: 16}
objectives: [cycles, utilization]
"""
POINTS = 3 * 8 * 2

# Given to workers before they begin: what a point of ours does to its worker.
DEADLY = """
    import ctypes, os, time
    from vta.sweep import time_limit, work
    from vta.sweep.evaluate import evaluate as plain

    def evaluate(workload, machine, options):
        match machine.memory.read_latency:
            case 16:
                os.kill(os.getpid(), 9)
            case 24:
                time.sleep(60)  # does not notice that its time is over
            case 32:
                while True:
                    pass
            case 40:
                raise RuntimeError("a bug")
            case 48:
                ctypes.PyDLL(None).sleep(1000)  # holds the interpreter: no timer of ours runs
        return plain(workload, machine, options)

    work.evaluate = evaluate
    time_limit.GRACE_SECONDS = 0.2
"""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a sweep that nothing happened to, and its file beside it."""
    root = tmp_path_factory.mktemp("sweep")
    (root / "small.yaml").write_text(FILE)
    run_sweep(root / "small.yaml", root / "out", workers=2)
    return root / "out"


def sweep_file(folder: Path) -> Path:
    return folder.parent / "small.yaml"


def test_every_point_has_its_row(undisturbed: Path) -> None:
    results = read_results(undisturbed)
    assert [point.index for point in results.points] == list(range(POINTS))
    assert results.planned == POINTS
    assert [point.ok for point in results.points] == [True] * 32 + [False] * 16


def test_a_killed_sweep_goes_on_and_ends_in_the_same_table(
    undisturbed: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    command = [sys.executable, "-c", "from vta.cli import main; main()"]
    words = ["sweep", str(sweep_file(undisturbed)), "-o", str(folder), "--workers", "1"]
    process = subprocess.Popen(
        [*command, *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    for _ in range(600):
        if rows(folder):
            break
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.1)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    before = rows(folder)
    assert 0 < before < POINTS
    seen: list[tuple[int, int, int]] = []
    results = run_sweep(
        sweep_file(undisturbed), folder, workers=1, progress=lambda *args: seen.append(args)
    )
    assert seen[0][0] >= before  # what was finished is not done again
    assert seen[-1] == (POINTS, POINTS, 16)
    assert len(results.points) == POINTS
    assert (folder / TABLE).read_bytes() == (undisturbed / TABLE).read_bytes()


def rows(folder: Path) -> int:
    try:
        return len(read_results(folder).points)
    except (SweepError, KeyError):  # not there yet, or half made
        return 0


def test_a_sweep_that_is_done_starts_no_worker(
    undisturbed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vta.sweep.run.connected", None)
    table = (undisturbed / TABLE).read_bytes()
    run_sweep(sweep_file(undisturbed), undisturbed)
    assert (undisturbed / TABLE).read_bytes() == table


def test_limit_runs_the_first_points_and_another_limit_goes_on(
    undisturbed: Path, tmp_path: Path
) -> None:
    with LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None
    ) as cluster:
        for limit in (3, 5):
            results = run_sweep(
                sweep_file(undisturbed),
                tmp_path,
                cluster=cluster.scheduler_address,
                limit=limit,
            )
            assert [point.index for point in results.points] == list(range(limit))
    head, *lines = (undisturbed / TABLE).read_text().splitlines()
    assert (tmp_path / TABLE).read_text().splitlines() == [head, *lines[:5]]


@pytest.mark.slow
def test_no_point_stops_a_sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vta.sweep.schedule.SLACK_SECONDS", 3.0)
    (tmp_path / "deadly.py").write_text(textwrap.dedent(DEADLY))
    spec: dict[str, Any] = {
        "name": "deadly",
        "base": "tiny",
        "axes": {"memory.read_latency": {"from": 8, "to": 56, "step": 8}},
        "workloads": [{"layers": [{"name": "p", "kind": "dense", "m": 4, "k": 8, "n": 8}]}],
        "objectives": ["cycles"],
        "time_limit": 5.0,
    }
    with dask.config.set({"distributed.worker.preload": [str(tmp_path / "deadly.py")]}):
        results = run_sweep(spec, tmp_path / "out", workers=1)
    assert [point.status for point in results.points] == [
        *("ok", "crash", "timeout", "timeout", "error", "timeout", "ok")
    ]
    errors = [point.error for point in results.points]
    assert (
        errors[1] == "the worker died with this point, 2 times: out of memory, or a crash of ours"
    )
    assert errors[2] == errors[3] == errors[5]
    assert errors[3] == "not done after 5 s; a longer time_limit in the sweep file gives it more"
    assert errors[4] == "internal error: RuntimeError: a bug"


def test_a_cluster_that_is_not_there_is_named(
    undisturbed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vta.sweep.cluster.CONNECT_SECONDS", 1)
    with pytest.raises(SweepError) as caught:
        run_sweep(sweep_file(undisturbed), tmp_path, cluster="tcp://127.0.0.1:1")
    assert "--cluster tcp://127.0.0.1:1: no scheduler answers there" in str(caught.value)


LEAKY = pytest.mark.filterwarnings(
    # dask-jobqueue's local cluster leaves the pipes of its processes to the garbage collector.
    "ignore::ResourceWarning",
    "ignore::pytest.PytestUnraisableExceptionWarning",
)


@LEAKY
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("system: slrum\n", "system = 'slrum' is not known; did you mean 'slurm'?"),
        ("system: slurm\njob: 3\n", "line 2: unknown key 'job'; did you mean 'jobs'?"),
        ("jobs: 3\n", "system: Field required"),
        ("system: local\noptions: {corse: 1}\n", "options are not those of LocalCluster"),
    ],
)
def test_what_is_wrong_with_a_file_of_jobs_is_named(
    undisturbed: Path, tmp_path: Path, text: str, message: str
) -> None:
    (tmp_path / "jobs.yaml").write_text(text)
    with pytest.raises(SweepError) as caught:
        run_sweep(sweep_file(undisturbed), tmp_path / "out", cluster=str(tmp_path / "jobs.yaml"))
    assert message in str(caught.value)
    del caught
    gc.collect()


@LEAKY
def test_jobs_of_a_batch_system_do_the_same(undisturbed: Path, tmp_path: Path) -> None:
    """dask-jobqueue's own stand-in for a batch system, which runs jobs as processes."""
    (tmp_path / "jobs.yaml").write_text(
        "system: local\njobs: 1\noptions: {cores: 1, processes: 1, memory: 2GB}\n"
    )
    results = run_sweep(
        sweep_file(undisturbed), tmp_path / "out", cluster=str(tmp_path / "jobs.yaml"), limit=4
    )
    expected = read_results(undisturbed).points[:4]
    assert [point.objectives for point in results.points] == [p.objectives for p in expected]
    gc.collect()
