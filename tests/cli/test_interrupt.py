"""An interrupt that lands in a function called from C ends the command all the same."""

import ctypes
import signal
import subprocess
import sys
import time

import pytest

from vta.cli.interrupt import kept_interrupts


def test_an_interrupt_in_a_callback_comes_again(capsys) -> None:
    # A shell that starts the tests in the background has interrupts ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    @ctypes.CFUNCTYPE(None)
    def callback() -> None:
        signal.raise_signal(signal.SIGINT)
        time.sleep(10)

    def interrupted() -> None:
        callback()
        time.sleep(10)

    try:
        with pytest.raises(KeyboardInterrupt), kept_interrupts():
            interrupted()
    finally:
        signal.signal(signal.SIGINT, before)
    assert capsys.readouterr().err == ""


def test_other_lost_exceptions_are_still_shown() -> None:
    program = (
        "import ctypes; from vta.cli.interrupt import kept_interrupts\n"
        "with kept_interrupts():\n"
        "    ctypes.CFUNCTYPE(None)(lambda: 1 // 0)()\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert "ZeroDivisionError" in ended.stderr
