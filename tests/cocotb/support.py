"""What every bench needs: its parameters, its random numbers, a clock."""

import json
import os
from random import Random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge

PERIOD_NS = 10


def parameters():
    """What the pytest side says about the component."""
    return json.loads(os.environ["VTA_BENCH_PARAMETERS"])


def random_of(test: str) -> Random:
    """Numbers that depend on the bench's seed and on the test, not on tests run before."""
    return Random(f"{cocotb.RANDOM_SEED} {test}")


async def start(dut, **inputs) -> None:
    """A clock, two cycles of reset, ``inputs`` and zero on every other input."""
    others = dict.fromkeys(json.loads(os.environ["VTA_BENCH_INPUTS"]), 0)
    drive(dut, **{**others, **inputs})
    dut.rst.value = 1
    Clock(dut.clk, PERIOD_NS, unit="ns").start()
    await ClockCycles(dut.clk, 2)
    dut.rst.value = 0
    await RisingEdge(dut.clk)


def drive(dut, **values) -> None:
    """Inputs of the cycle that has just begun."""
    for name, value in values.items():
        getattr(dut, name).value = value


def sample(dut, *names) -> tuple[int, ...]:
    """Wires as they are at the clock edge that has just come: those of the cycle it ends."""
    return tuple(int(getattr(dut, name).value) for name in names)
