"""The counter bank against plain addition."""

from random import Random

import pytest
from amaranth.hdl import Module
from amaranth.sim import Simulator

from vta_hw.counter_bank import LATENCY, CounterBank

WIDTHS = {"a": 1, "b": 1, "c": 8, "d": 28, "e": 1}


def simulate(bank: CounterBank, test) -> None:
    m = Module()
    m.submodules.bank = bank
    simulator = Simulator(m)
    simulator.add_clock(1e-8)
    simulator.add_testbench(test)
    simulator.run()


async def read(ctx, bank: CounterBank, index: int) -> int:
    ctx.set(bank.read.index, index)
    ctx.set(bank.read.request, 1)
    for _ in range(len(bank.widths) + LATENCY + 1):
        _, _, valid, value = await ctx.tick().sample(bank.read.valid, bank.read.value)
        if valid:
            ctx.set(bank.read.request, 0)
            return value
    raise AssertionError(f"counter {index} is not answered in a round")


@pytest.mark.parametrize("counters", [3, 5])
@pytest.mark.parametrize("seed", range(4))
def test_counts_add_up(counters: int, seed: int) -> None:
    """Random counts, all of them as high as they can be for a while; cleared at random times."""
    widths = dict(list(WIDTHS.items())[:counters])
    bank = CounterBank(widths)
    rng = Random(seed)

    async def test(ctx):
        for _ in range(5):
            cycles = rng.choice([1, 2, counters, counters + 1, rng.randrange(1, 100)])
            totals = dict.fromkeys(widths, 0)
            highest = rng.random() < 0.3
            for cycle in range(cycles):
                ctx.set(bank.clear, int(cycle == 0))
                for name, width in widths.items():
                    count = (1 << width) - 1 if highest else rng.getrandbits(width)
                    totals[name] += count
                    ctx.set(getattr(bank.counts, name), count)
                await ctx.tick()
            ctx.set(bank.clear, 0)
            for name in widths:
                ctx.set(getattr(bank.counts, name), 0)
            await ctx.tick().repeat(LATENCY)
            for index, name in enumerate(widths):
                got = await read(ctx, bank, index)
                assert got == totals[name], f"{name} after {cycles} cycles, seed {seed}"

    simulate(bank, test)


def test_a_counter_goes_past_32_bits() -> None:
    bank = CounterBank(WIDTHS)

    async def test(ctx):
        ctx.set(bank.clear, 1)
        await ctx.tick()
        ctx.set(bank.clear, 0)
        ctx.set(bank.counts.d, (1 << 28) - 1)
        await ctx.tick().repeat(100)
        ctx.set(bank.counts.d, 0)
        await ctx.tick().repeat(LATENCY)
        assert await read(ctx, bank, list(WIDTHS).index("d")) == 100 * ((1 << 28) - 1)

    simulate(bank, test)
