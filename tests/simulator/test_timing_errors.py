"""Streams that cannot be timed, and machines on which the engine is not compiled."""

import os
import subprocess
import sys

import pytest

from simulator.timing import compiled, simulate
from vta_isa.enums import Stage
from vta_isa.errors import DeadlockError, StreamError
from vta_isa.insn import finish, noop, records
from vta_isa.machine import load_machine

DEFAULT = load_machine("default")
SHORT = load_machine({"name": "short", "queues": {"command": 2, "token": 1}})
COMPILED = pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "uncompiled"])


@COMPILED
def test_a_missing_token_is_named(compiled: bool) -> None:
    stream = [noop(Stage.LOAD, push_next=True), noop(Stage.COMPUTE, pop_prev=True, pop_next=True)]
    with pytest.raises(DeadlockError) as caught:
        simulate(records([*stream, finish()]), DEFAULT, compiled=compiled)
    message = str(caught.value)
    assert "load: queue empty" in message
    assert "compute: insn 1 (LOAD UOP) waits for a token from store_to_compute;" in message
    assert "store: queue empty" in message
    assert caught.value.insn == 1


@COMPILED
def test_a_full_command_queue_in_front_of_the_pusher_is_named(compiled: bool) -> None:
    waiting = [noop(Stage.COMPUTE, pop_prev=True)] * 4
    stream = [*waiting, *[noop(Stage.LOAD, push_next=True)] * 4, finish()]
    with pytest.raises(DeadlockError) as caught:
        simulate(records(stream), SHORT, compiled=compiled)
    message = str(caught.value)
    assert "fetch: insn 2 (LOAD UOP) has no room in the compute command queue (2 insns)" in message
    assert "compute: insn 0 (LOAD UOP) waits for a token from load_to_compute" in message
    assert "load: queue empty, 4 not dispatched yet" in message
    # With room for them it runs.
    simulate(records(stream), DEFAULT, compiled=compiled)


@COMPILED
def test_a_full_token_queue_is_named(compiled: bool) -> None:
    stream = [noop(Stage.LOAD, push_next=True)] * 2
    with pytest.raises(DeadlockError, match=r"load: insn 1 \(LOAD INP\) is done but cannot push: "
                       r"load_to_compute holds 1 token"):  # fmt: skip
        simulate(records([*stream, finish()]), SHORT, compiled=compiled)


def test_leftover_tokens_are_counted_and_limited() -> None:
    pushing = records([noop(Stage.LOAD, push_next=True), finish()])
    assert simulate(pushing, DEFAULT).tokens == (1, 0, 0, 0)
    popping = records([finish(pop_prev=True)])
    assert simulate(popping, DEFAULT, tokens=(1, 0, 0, 0)).tokens == (0, 0, 0, 0)
    with pytest.raises(DeadlockError):
        simulate(popping, DEFAULT)
    with pytest.raises(StreamError, match=r"2 tokens are left in queue load_to_compute; .* 0\.\.1"):
        simulate(popping, SHORT, tokens=(2, 0, 0, 0))


@pytest.mark.parametrize("stream", [[], [noop(Stage.LOAD)], [finish(), finish()]])
def test_a_stream_ends_with_its_only_finish(stream: list[dict[str, int]]) -> None:
    with pytest.raises(StreamError, match="FINISH"):
        simulate(records(stream), DEFAULT)


def test_the_stream_lies_at_an_instruction_boundary() -> None:
    with pytest.raises(StreamError, match=r"begins at byte 0x1008; .* aligned to 16"):
        simulate(records([finish()]), DEFAULT, insn_address=0x1008)


SCRIPT = """
import sys
from simulator.timing import compiled, simulate
assert "numba" not in sys.modules
from vta_isa.insn import finish, records
from vta_isa.machine import load_machine
timing = simulate(records([finish()]), load_machine("default"))
print(compiled.compiled_run() is None, timing.cycles)
"""


def run_script(tmp_path, **environment: str) -> str:
    given = {**os.environ, "VTA_CACHE_DIR": str(tmp_path / "cache"), **environment}
    command = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(command, env=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_numba_is_imported_late_and_may_be_told_not_to_compile(tmp_path) -> None:
    assert run_script(tmp_path, NUMBA_DISABLE_JIT="1") == "True 40"
    assert not (tmp_path / "cache").exists()


@pytest.mark.slow
def test_compiled_code_is_kept_in_the_cache_folder(tmp_path) -> None:
    assert run_script(tmp_path) == "False 40"
    kept = [path for path in (tmp_path / "cache").rglob("*") if path.suffix == ".nbc"]
    assert len(kept) == 1
    stamp = kept[0].stat().st_mtime_ns
    assert run_script(tmp_path) == "False 40"
    assert kept[0].stat().st_mtime_ns == stamp


def test_a_cache_folder_that_cannot_be_made_is_done_without(tmp_path, monkeypatch) -> None:
    (tmp_path / "cache").write_text("a file")
    monkeypatch.setenv("VTA_CACHE_DIR", str(tmp_path / "cache"))
    assert compiled.private_folder("test", [__file__]) is None


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_a_cache_folder_that_others_may_write_is_not_trusted(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("VTA_CACHE_DIR", str(tmp_path))
    folder = compiled.private_folder("test", [__file__])
    assert folder is not None
    folder.chmod(0o777)
    assert compiled.private_folder("test", [__file__]) is None
