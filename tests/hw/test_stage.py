"""Start, end and tokens of instructions in a stage."""

import pytest
from bench import bench

from vta_hw.stage import StageControl
from vta_isa.insn import FINISH

ALL = {"pop_prev": 1, "pop_next": 1, "push_prev": 1, "push_next": 1}


def seen(ctx, dut):
    """What happens in this cycle."""
    signals = {
        "start": dut.start,
        "end": dut.end,
        "pop_prev": dut.from_prev.pop,
        "pop_next": dut.from_next.pop,
        "push_prev": dut.to_prev.push,
        "push_next": dut.to_next.push,
    }
    return {name for name, signal in signals.items() if ctx.get(signal)}


def test_an_instruction_nobody_works_on_takes_two_cycles():
    dut = StageControl()

    async def testbench(ctx):
        ctx.set(dut.insns.payload, FINISH.encode(opcode=3))
        ctx.set(dut.insns.valid, 1)
        for _ in range(3):
            assert seen(ctx, dut) == {"start"}
            assert ctx.get(dut.insns.ready)
            await ctx.tick()
            assert seen(ctx, dut) == {"end"}
            assert not ctx.get(dut.insns.ready)
            await ctx.tick()

    bench(dut, testbench)


def test_both_tokens_are_awaited_and_taken_together():
    dut = StageControl()

    async def testbench(ctx):
        ctx.set(dut.insns.payload, FINISH.encode(opcode=3, pop_prev=1, pop_next=1))
        ctx.set(dut.insns.valid, 1)
        for prev_empty, next_empty in ((1, 1), (0, 1), (1, 0)):
            ctx.set(dut.from_prev.empty, prev_empty)
            ctx.set(dut.from_next.empty, next_empty)
            assert seen(ctx, dut) == set()
            await ctx.tick()
        ctx.set(dut.from_prev.empty, 0)
        assert seen(ctx, dut) == {"start", "pop_prev", "pop_next"}

    bench(dut, testbench)


@pytest.mark.parametrize("flag", ["pop_prev", "pop_next"])
def test_a_token_that_is_not_asked_for_is_not_taken(flag):
    dut = StageControl()

    async def testbench(ctx):
        ctx.set(dut.insns.payload, FINISH.encode(opcode=3, **{flag: 1}))
        ctx.set(dut.insns.valid, 1)
        other = dut.from_next if flag == "pop_prev" else dut.from_prev
        ctx.set(other.empty, 1)
        assert seen(ctx, dut) == {"start", flag}

    bench(dut, testbench)


def test_the_end_waits_for_the_work_and_for_room_in_both_queues():
    dut = StageControl()

    async def testbench(ctx):
        ctx.set(dut.insns.payload, FINISH.encode(opcode=3, **ALL))
        ctx.set(dut.insns.valid, 1)
        assert seen(ctx, dut) == {"start", "pop_prev", "pop_next"}
        await ctx.tick()
        ctx.set(dut.insns.valid, 0)
        ctx.set(dut.insns.payload, 0)  # the flags are kept
        ctx.set(dut.running, 1)
        for _ in range(3):
            assert seen(ctx, dut) == set()
            await ctx.tick()
        ctx.set(dut.running, 0)
        for prev_full, next_full in ((1, 1), (0, 1), (1, 0)):
            ctx.set(dut.to_prev.full, prev_full)
            ctx.set(dut.to_next.full, next_full)
            assert seen(ctx, dut) == set()
            await ctx.tick()
        ctx.set(dut.to_prev.full, 0)
        assert seen(ctx, dut) == {"end", "push_prev", "push_next"}
        await ctx.tick()
        assert seen(ctx, dut) == set()

    bench(dut, testbench)
