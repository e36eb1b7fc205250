"""The whole top of the board, in Verilog, with nothing but its pins."""

from pathlib import Path

import pytest
from amaranth.back import verilog
from cocotb_bench import needs_cocotb, run_bench_on_verilog

from vta_hw.boards.ecp5 import OSCILLATOR_HZ, Ulx3s
from vta_isa import load_machine

MODEL = Path(__file__).with_name("ehxplll.v")
DIVIDER = 4


@needs_cocotb
@pytest.mark.slow
def test_a_host_on_the_serial_line_uses_the_machine() -> None:
    memory_bytes = 16 * 1024
    board = Ulx3s(
        load_machine("tiny"),
        clock_hz=OSCILLATOR_HZ,
        memory_bytes=memory_bytes,
        baud=OSCILLATOR_HZ // DIVIDER,
    )
    assert board.pll.feedback == board.pll.reference, "the model of the PLL copies its clock"
    assert board.divider == DIVIDER
    text = verilog.convert(board, name="ulx3s", emit_src=False, strip_internal_attrs=True)
    run_bench_on_verilog(
        "bench_board",
        text + MODEL.read_text(),
        top="ulx3s",
        parameters={
            "machine": "tiny",
            "memory_bytes": memory_bytes,
            "clock_ns": 10**9 // OSCILLATOR_HZ,
            "divider": DIVIDER,
        },
    )
