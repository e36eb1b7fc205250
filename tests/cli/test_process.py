"""The command as a process of its own, from an empty folder."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parent.parent.parent
COMMAND = [sys.executable, "-P", "-m", "vta"]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(CHECKOUT), "COLUMNS": "100"}


def vta(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments],
        cwd=folder,
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def test_help_version_and_isa(tmp_path: Path) -> None:
    for words in (["--help"], ["--version"], ["isa"], ["machines"], ["workloads"]):
        ended = vta(tmp_path, *words)
        assert (ended.returncode, ended.stderr) == (0, ""), words
        assert ended.stdout
    assert os.listdir(tmp_path) == []


def test_a_failure_is_one_line_and_status_1(tmp_path: Path) -> None:
    ended = vta(tmp_path, "run", "resnet19")
    assert ended.returncode == 1
    assert ended.stdout == ""
    assert ended.stderr.startswith("vta: there is no workload 'resnet19'")
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize("words", [["isa"], ["isa", "--json"]])
def test_a_reader_that_goes_away_is_no_error(tmp_path: Path, words: list[str]) -> None:
    process = subprocess.Popen(
        [*COMMAND, *words],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.close()
    _, errors = process.communicate()
    assert errors == b""
    assert process.returncode == 1


@pytest.mark.skipif(sys.platform == "win32", reason="needs the times of child processes")
def test_help_comes_at_once(tmp_path: Path) -> None:
    def seconds(command: list[str]) -> float:
        """Of processor time: a busy machine lengthens the wait, and is not what is tested."""
        before = os.times()
        subprocess.run(command, cwd=tmp_path, env=environment(), check=True, capture_output=True)
        after = os.times()
        children = after.children_user - before.children_user
        return children + after.children_system - before.children_system

    # What counts is what we add to the start of Python.
    bare = min(seconds([sys.executable, "-c", ""]) for _ in range(3))
    assert min(seconds([*COMMAND, "--help"]) for _ in range(3)) - bare < 0.4 + 5 * bare


def test_help_loads_nothing_heavy(tmp_path: Path) -> None:
    code = (
        "import sys; from vta.cli import main; main(['--help']); "
        "print(sorted({'numpy', 'pydantic', 'numba', 'llvmlite', 'matplotlib'} & set(sys.modules)))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout.splitlines()[-1] == "[]"
