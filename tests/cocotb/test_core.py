"""The core and the whole accelerator against the reference, with every kind of memory and host."""

from cocotb_bench import needs_cocotb, run_bench_on_verilog
from small_machines import machine_of

from vta_hw.top import TOP_NAME, top_verilog
from vta_hw.verilog import CORE_NAME, core_verilog

pytestmark = needs_cocotb


def test_programs_on_the_core_of_an_odd_machine() -> None:
    run_bench_on_verilog(
        "bench_programs",
        core_verilog(machine_of("odd")),
        top=CORE_NAME,
        parameters={"machine": "odd", "host": "core", "seeds": [0, 10]},
    )


def test_programs_on_the_tiny_accelerator() -> None:
    run_bench_on_verilog(
        "bench_programs",
        top_verilog(machine_of("tiny")),
        top=TOP_NAME,
        parameters={"machine": "tiny", "host": "top", "seeds": [0, 12]},
    )


def test_control_of_the_tiny_accelerator() -> None:
    run_bench_on_verilog(
        "bench_control",
        top_verilog(machine_of("tiny")),
        top=TOP_NAME,
        parameters={"machine": "tiny", "resets": 12},
    )
