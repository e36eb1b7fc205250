"""Token queues: counted, never lost, full when they say so."""

import random

import pytest
from bench import bench

from vta_hw.tokens import TokenQueue


@pytest.mark.parametrize("depth", [1, 2, 3, 1024])
def test_a_queue_holds_its_depth_and_no_more(depth):
    dut = TokenQueue(depth)

    async def testbench(ctx):
        assert ctx.get(dut.empty)
        ctx.set(dut.push, 1)
        for _ in range(depth):
            assert not ctx.get(dut.full)
            await ctx.tick()
        assert ctx.get(dut.full)
        await ctx.tick()  # ignored
        ctx.set(dut.push, 0)
        ctx.set(dut.pop, 1)
        for _ in range(depth):
            assert not ctx.get(dut.empty)
            await ctx.tick()
        assert ctx.get(dut.empty)
        await ctx.tick()  # ignored
        assert ctx.get(dut.empty)

    bench(dut, testbench)


@pytest.mark.parametrize("seed", range(3))
def test_tokens_follow_a_counter(seed):
    rng = random.Random(seed)
    dut = TokenQueue(3)

    async def testbench(ctx):
        count = 0
        for _ in range(200):
            push, pop = rng.random() < 0.5, rng.random() < 0.5
            ctx.set(dut.push, push)
            ctx.set(dut.pop, pop)
            assert ctx.get(dut.empty) == (count == 0), f"{seed=}"
            assert ctx.get(dut.full) == (count == 3), f"{seed=}"
            count += (push and count < 3) - (pop and count > 0)
            await ctx.tick()

    bench(dut, testbench)
