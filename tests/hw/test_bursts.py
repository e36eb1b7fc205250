"""Rows are cut at the right places and presented one per cycle."""

import machines
import numpy as np
import pytest
from bench import bench

from vta_hw.bursts import BurstSplitter
from vta_isa.microarch import burst_bytes


def cut(machine, address, row_bytes, stride, rows):
    """(address, beats) of every burst, beat by beat."""
    bus, bursts = machine.bus_bytes, []
    for row in range(rows):
        start = address + row * stride
        previous = None
        for beat in range(start // bus, (start + row_bytes - 1) // bus + 1):
            if previous is None or beat * bus % burst_bytes(machine) == 0:
                bursts.append([beat * bus, 0])
            bursts[-1][1] += 1
            previous = beat
    return [tuple(burst) for burst in bursts]


@pytest.mark.parametrize("name", ["tiny", "default", "bus512"])
def test_bursts_are_those_of_the_page(name):
    machine = machines.machine(name)
    rng = np.random.default_rng(3)
    dut = BurstSplitter(machine)
    edges = [
        (0, 1, 0, 1),
        (4095, 2, 0, 2),
        (4096 - machine.bus_bytes, 4096, 8192, 2),
        (64, 1, 7, 0),
    ]
    random = [
        tuple(
            int(rng.integers(low, high)) for low, high in ((0, 9000), (1, 6000), (0, 900), (0, 4))
        )
        for _ in range(20)
    ]

    async def testbench(ctx):
        for address, row_bytes, stride, rows in edges + random:
            ctx.set(dut.address, address)
            ctx.set(dut.row_bytes, row_bytes)
            ctx.set(dut.stride_bytes, stride)
            ctx.set(dut.rows, rows)
            ctx.set(dut.start, 1)
            await ctx.tick()
            ctx.set(dut.start, 0)
            ctx.set(dut.address, 0xBAD)  # matters only with start
            ctx.set(dut.burst.ready, 1)
            expected = cut(machine, address, row_bytes, stride, rows)
            for number, burst in enumerate(expected):
                assert ctx.get(dut.burst.valid)
                payload = ctx.get(dut.burst.payload)
                assert (payload.address, payload.len + 1) == burst
                assert ctx.get(dut.last) == (number == len(expected) - 1)
                await ctx.tick()
            assert not ctx.get(dut.burst.valid)
            ctx.set(dut.burst.ready, 0)

    bench(dut, testbench)


def test_a_burst_stays_until_it_is_taken():
    dut = BurstSplitter(machines.machine("tiny"))

    async def testbench(ctx):
        ctx.set(dut.row_bytes, 64)
        ctx.set(dut.rows, 1)
        ctx.set(dut.start, 1)
        await ctx.tick()
        ctx.set(dut.start, 0)
        for _ in range(3):
            payload = ctx.get(dut.burst.payload)
            assert (payload.address, payload.len) == (0, 3)
            await ctx.tick()

    bench(dut, testbench)
