"""The command run in this process, in an empty folder."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from fake_compiler import FakeCompiler

from vta import job
from vta.cli import main


@dataclass(frozen=True)
class Ended:
    """How a command ended: exit status and what it printed."""

    status: int
    out: str
    err: str


@pytest.fixture
def vta(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Ended]:
    monkeypatch.chdir(tmp_path)

    def command(*arguments: str | os.PathLike[str]) -> Ended:
        capsys.readouterr()
        status = main([os.fspath(argument) for argument in arguments])
        printed = capsys.readouterr()
        return Ended(status, printed.out, printed.err)

    return command


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch) -> FakeCompiler:
    """A compiler that is exact and instant takes the place of the real one."""
    fake = FakeCompiler()
    for function in (job.run, job.compare):
        monkeypatch.setitem(function.__kwdefaults__, "compile_with", fake)
    return fake
