"""A token queue against a counter."""

import cocotb
from cocotb.triggers import RisingEdge
from support import drive, parameters, random_of, sample, start

DEPTH = parameters()["depth"]


class Model:
    """Tokens are all alike: a number says everything."""

    def __init__(self):
        self.count = 0

    def flags(self) -> tuple[int, int]:
        """empty, full"""
        return int(self.count == 0), int(self.count == DEPTH)

    def step(self, push: int, pop: int) -> None:
        empty, full = self.flags()
        self.count += (push and not full) - (pop and not empty)


async def compare(dut, choose, cycles: int) -> dict[str, int]:
    """Drive push and pop as ``choose(cycle)`` says; how often each state was seen."""
    model = Model()
    seen = {"empty": 0, "full": 0, "both": 0}
    for cycle in range(cycles):
        push, pop = choose(cycle)
        drive(dut, push=push, pop=pop)
        await RisingEdge(dut.clk)
        flags = sample(dut, "empty", "full")
        assert flags == model.flags(), f"cycle {cycle}: empty, full = {flags}"
        seen["empty"] += flags[0]
        seen["full"] += flags[1]
        seen["both"] += bool(push and pop)
        model.step(push, pop)
    return seen


@cocotb.test()
async def fills_and_empties_as_a_counter(dut):
    rng = random_of("fills")
    await start(dut, push=0, pop=0)

    def choose(cycle):
        eager = cycle // 40 % 2
        return int(rng.random() < (0.8, 0.3)[eager]), int(rng.random() < (0.3, 0.8)[eager])

    seen = await compare(dut, choose, 600)
    assert min(seen.values()) > 10, seen


@cocotb.test()
async def ignores_a_push_when_full_and_a_pop_when_empty(dut):
    await start(dut, push=0, pop=0)
    phases = [(1, 0)] * (DEPTH + 3) + [(0, 1)] * (DEPTH + 3) + [(1, 1)] * (DEPTH + 3)
    await compare(dut, lambda cycle: phases[cycle], len(phases))


@cocotb.test()
async def reset_removes_tokens(dut):
    await start(dut, push=1, pop=0)
    await RisingEdge(dut.clk)
    drive(dut, push=0, rst=1)
    await RisingEdge(dut.clk)
    drive(dut, rst=0)
    await RisingEdge(dut.clk)
    assert sample(dut, "empty", "full") == (1, 0)
