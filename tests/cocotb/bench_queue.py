"""A first-in first-out queue against a deque."""

from collections import deque

import cocotb
from cocotb.triggers import RisingEdge
from support import drive, parameters, random_of, sample, start

DEPTH = parameters()["depth"]


@cocotb.test()
async def keeps_order_and_holds_its_depth(dut):
    rng = random_of("queue")
    await start(dut, push__valid=0, push__payload=0, pop__ready=0)
    held, most, moved = deque(), 0, 0
    for cycle in range(800):
        eager = cycle // 50 % 2  # fill it, then empty it
        push = int(rng.random() < (0.9, 0.3)[eager])
        pop = int(rng.random() < (0.3, 0.9)[eager])
        item = rng.getrandbits(16)
        drive(dut, push__valid=push, push__payload=item, pop__ready=pop)
        await RisingEdge(dut.clk)
        ready, valid, head = sample(dut, "push__ready", "pop__valid", "pop__payload")
        assert (ready, valid) == (len(held) < DEPTH, len(held) > 0), f"{cycle=}"
        if valid:
            assert head == held[0], f"{cycle=}"
        if pop and held:
            held.popleft()
            moved += 1
        if push and ready:
            held.append(item)
        most = max(most, len(held))
    assert most == DEPTH
    assert moved > 100
