"""Compiled kernels on disk: found again, never trusted blindly, never in the way."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from simulator.kernels.cache import cached

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("VTA_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def never():
    raise AssertionError("made although it is in the cache")


def only_file(folder):
    (path,) = (folder / "kernels").iterdir()
    return path


def test_what_was_made_once_is_found_again(folder):
    assert cached("key", lambda: b"code") == b"code"
    assert cached("key", never) == b"code"
    assert cached("other key", lambda: b"other code") == b"other code"
    assert (folder / "kernels").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("damage", [b"", b"short", b"x" * 40])
def test_a_damaged_file_is_made_again(folder, damage):
    cached("key", lambda: b"code")
    only_file(folder).write_bytes(damage)
    assert cached("key", lambda: b"new code") == b"new code"
    assert cached("key", never) == b"new code"


@pytest.mark.parametrize("target", ["file", "folder"])
def test_code_that_others_may_write_is_not_used(folder, target):
    cached("key", lambda: b"code")
    path = only_file(folder) if target == "file" else folder / "kernels"
    path.chmod(0o777)
    assert cached("key", lambda: b"new code") == b"new code"


def test_a_folder_that_cannot_be_made_only_costs_the_compile(folder):
    folder.parent.mkdir(exist_ok=True)
    folder.write_text("a file where the folder should be")
    assert cached("key", lambda: b"code") == b"code"
    assert cached("key", lambda: b"code") == b"code"


@pytest.mark.skipif(os.name != "posix" or os.getuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_only_costs_the_compile(folder):
    (folder / "kernels").mkdir(parents=True)
    (folder / "kernels").chmod(0o500)
    assert cached("key", lambda: b"code") == b"code"


def test_no_half_written_files_stay_behind(folder, monkeypatch):
    def full_disk(*_):
        raise OSError("no space left")

    monkeypatch.setattr(os, "replace", full_disk)
    assert cached("key", lambda: b"code") == b"code"
    assert not list((folder / "kernels").iterdir())


RUN = """
import numpy as np
from simulator.kernels import Kernels
from vta_isa import Buffer, load_machine, records, finish, load
machine = load_machine("tiny")
kernels = Kernels(machine)
dram = np.arange(machine.entry_bytes(Buffer.ACC) * 2, dtype=np.uint8)
kernels.run(records([load(Buffer.ACC, sram_base=1, dram_base=1, x_size=1), finish()]), dram)
print(kernels.sram(Buffer.ACC)[1].tobytes().hex())
"""


def test_a_second_process_runs_the_code_of_the_first(folder):
    def output():
        command = [sys.executable, "-c", RUN]
        return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout

    first = output()
    stored = only_file(folder)
    before = stored.stat()
    assert output() == first
    assert only_file(folder).stat().st_mtime_ns == before.st_mtime_ns
