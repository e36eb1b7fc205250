"""Work ends when its time is over, and nothing after it is hit."""

import subprocess
import sys
import time

import pytest

from vta.sweep.time_limit import KILLED, OutOfTime, time_limit


def spin(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def test_work_that_is_done_in_time_is_left_alone() -> None:
    with time_limit(0.3):
        spin(0.01)
    spin(0.4)  # the timer, were it still running, would end this


def test_work_that_takes_longer_is_stopped() -> None:
    begin = time.monotonic()
    with pytest.raises(OutOfTime), time_limit(0.05):
        spin(30)
    assert time.monotonic() - begin < 10


def test_no_handler_for_errors_holds_it_up() -> None:
    def stubborn() -> None:
        for _ in range(1000):
            try:
                spin(0.05)
            except Exception:
                pass

    with pytest.raises(OutOfTime), time_limit(0.05):
        stubborn()


def test_an_end_on_the_last_moment_does_not_hit_what_follows() -> None:
    for _ in range(200):
        try:
            with time_limit(0.001):
                spin(0.001)
        except OutOfTime:
            pass
        spin(0.0005)


def test_native_code_that_does_not_listen_is_ended_with_its_process() -> None:
    program = (
        "import time; from vta.sweep import time_limit as m; m.GRACE_SECONDS = 0.1\n"
        "with m.time_limit(0.1, lambda: print('bye', flush=True)): time.sleep(60)\n"
    )
    begin = time.monotonic()
    ended = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True)
    assert (ended.returncode, ended.stdout.split()) == (KILLED, [b"bye"])
    assert time.monotonic() - begin < 40
