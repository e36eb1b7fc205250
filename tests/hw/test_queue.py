"""Queues keep order and payload, and their timing is as stated."""

import random
from collections import deque

import pytest
from bench import bench

from vta_hw.queue import Queue


@pytest.mark.parametrize("depth", [1, 2, 5, 8])
@pytest.mark.parametrize("seed", range(2))
def test_items_come_out_in_order_one_cycle_later(depth, seed):
    rng = random.Random(seed)
    dut = Queue(16, depth)

    async def testbench(ctx):
        held = deque()
        for cycle in range(300):
            eager = cycle // 50 % 2  # fill it, then empty it
            push = rng.random() < (0.9 if eager else 0.3)
            pop = rng.random() < (0.3 if eager else 0.9)
            item = rng.getrandbits(16)
            ctx.set(dut.push.valid, push)
            ctx.set(dut.push.payload, item)
            ctx.set(dut.pop.ready, pop)
            assert ctx.get(dut.push.ready) == (len(held) < depth), f"{seed=} {cycle=}"
            assert ctx.get(dut.pop.valid) == (len(held) > 0), f"{seed=} {cycle=}"
            if held:
                assert ctx.get(dut.pop.payload) == held[0], f"{seed=} {cycle=}"
            room = len(held) < depth
            if pop and held:
                held.popleft()
            if push and room:
                held.append(item)
            await ctx.tick()

    bench(dut, testbench)
