"""The command in a shell that does not help: outputs that fail, folders nobody may write."""

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parent.parent.parent
VECTOR = Path(__file__).parent.parent / "vectors" / "01_gemm_reset_store"
VTA = [sys.executable, "-P", "-c", "import sys; from vta.cli import main; sys.exit(main())"]
EXEC = ["exec", str(VECTOR / "insn.bin"), "--dram", str(VECTOR / "dram.bin"), "--json"]


def environment(**changes: str | None) -> dict[str, str]:
    given = {**os.environ, "PYTHONPATH": str(CHECKOUT), **changes}
    return {name: value for name, value in given.items() if value is not None}


def run(*words: str, **changes: str | None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*VTA, *words],
        env=environment(**changes),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("words", [["isa"], ["isa", "--json"]])
def test_a_full_disk_is_one_line(words: list[str]) -> None:
    with open("/dev/full", "w") as full:
        ended = subprocess.run(
            [*VTA, *words], env=environment(), stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert ended.returncode == 1
    assert ended.stderr == "vta: cannot write the output: no space left on device\n"


@pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")
@pytest.mark.parametrize("words", [["isa"], ["isa", "--json"], ["--help"]])
def test_a_closed_output_is_no_fault(words: list[str]) -> None:
    command = shlex.join([*VTA, *words])
    ended = subprocess.run(
        f"{command} >&-", shell=True, env=environment(), capture_output=True, text=True
    )
    assert (ended.returncode, ended.stderr) == (0, "")


def test_no_folder_for_the_cache_only_costs_time(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    # Uncompiled, since compiling the timing engine anew is what the cache is there to spare.
    quick = {"NUMBA_DISABLE_JIT": "1"}
    for changes in ({"VTA_CACHE_DIR": str(tmp_path / "file")}, {"VTA_CACHE_DIR": "/proc/no"}):
        ended = run(*EXEC, **changes, **quick)
        assert (ended.returncode, ended.stderr) == (0, "")
    homeless = dict.fromkeys(("HOME", "VTA_CACHE_DIR", "XDG_CACHE_HOME"))
    ended = run(*EXEC, **homeless, **quick)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_two_processes_may_fill_one_cache(tmp_path: Path) -> None:
    processes = [
        subprocess.Popen(
            [*VTA, *EXEC],
            env=environment(VTA_CACHE_DIR=str(tmp_path / "cache"), NUMBA_DISABLE_JIT="1"),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for _ in range(2)
    ]
    printed = [process.communicate() for process in processes]
    assert printed[0] == printed[1]
    assert printed[0][1] == b""
    kept = list((tmp_path / "cache").rglob("*.o"))
    assert [file.suffix for file in kept] == [".o"]


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
def test_an_interrupt_leaves_no_file(tmp_path: Path) -> None:
    words = ["run", "resnet18", "--device", "reference", "--json", "figures.json"]
    process = subprocess.Popen(
        [*VTA, *words],
        env=environment(),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    time.sleep(3)  # it takes minutes
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "vta: interrupted\n")
    assert os.listdir(tmp_path) == []


def test_tables_have_no_colour_and_no_cut_digits_outside_a_terminal() -> None:
    wide, narrow = (run("machines", COLUMNS=columns) for columns in ("200", "60"))
    assert wide.stdout == narrow.stdout
    assert "\x1b" not in wide.stdout
    assert "…" not in wide.stdout
