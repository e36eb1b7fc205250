"""Vectors and programs on the core of every machine, in a memory that answers as it likes.

Not collected by default, for compiling them all takes half an hour: ``make test-rtl``, or
``pytest tests/cocotb/every_machine.py``, a part of it with ``-k int4``.
"""

import machines
import pytest
from cocotb_bench import needs_cocotb, run_bench_on_verilog
from small_machines import machine_of
from vector_files import by_machine

from vta_hw.top import TOP_NAME, top_verilog
from vta_hw.verilog import CORE_NAME, core_verilog
from vta_isa.enums import Buffer

pytestmark = needs_cocotb

QUICK_BYTES = 96 << 10  # memories up to this are filled over and over by streams written by hand
PROGRAMS = 30


def on_core(machine: str, **parameters: object) -> None:
    given = {"machine": machine, "host": "core", **parameters}
    text = core_verilog(machine_of(machine))
    run_bench_on_verilog("bench_programs", text, top=CORE_NAME, parameters=given)


@pytest.mark.parametrize("names", by_machine().values(), ids=lambda names: names[0])
def test_vectors(names: list[str]) -> None:
    on_core(names[0], vectors=names, streams=[], launches=0)


@pytest.mark.parametrize("name", [*machines.NAMES, "odd"])
def test_programs(name: str) -> None:
    machine = machine_of(name)
    size = sum(machine.depth(b) * machine.entry_bytes(b) for b in Buffer if b != Buffer.ACC_8BIT)
    streams = {} if size <= QUICK_BYTES else {"streams": []}
    on_core(name, seeds=[100, 100 + PROGRAMS], **streams)


@pytest.mark.parametrize("name", ["tiny", "odd", "bus512", "short-queues"])
def test_programs_on_the_accelerator(name: str) -> None:
    given = {"machine": name, "host": "top", "seeds": [200, 200 + PROGRAMS], "streams": []}
    text = top_verilog(machine_of(name))
    run_bench_on_verilog("bench_programs", text, top=TOP_NAME, parameters=given)


def test_control_of_the_accelerator() -> None:
    run_bench_on_verilog(
        "bench_control",
        top_verilog(machine_of("tiny")),
        top=TOP_NAME,
        parameters={"machine": "tiny", "resets": 150},
    )
