"""Tiles past the end of a memory are found, whatever their shape; and who is to blame."""

import itertools
import random

import machines
import pytest
import rtl_machines
from bench import bench

from vta_hw.insn_check import InsnCheck
from vta_isa.encoding import encode_stream
from vta_isa.enums import Buffer
from vta_isa.faults import Fault
from vta_isa.insn import FINISH, MEM, gemm, load, records

PAD, SIZE = 15, 65535  # the highest that the fields hold


def tiles(rng, depth):
    """(x_size, y_size, y_pad, x_pad, sram_base), many of them just inside or outside."""
    for _ in range(60):
        y_pad, x_pad = ((rng.choice([0, 1, PAD]), rng.choice([0, 2, PAD])) for _ in range(2))
        if rng.random() < 0.5:
            y_pad = x_pad = (0, 0)
        width = rng.choice([rng.randint(1, 40), rng.randint(1, 2 * depth)])
        height = max((depth + rng.choice([-1, 0, 1, width])) // width, 0)
        x_size, y_size = max(width - sum(x_pad), 1), max(height - sum(y_pad), 0)
        entries = (x_size + sum(x_pad)) * (y_size + sum(y_pad))
        base = rng.choice([0, 1, SIZE, min(max(depth - entries + rng.randint(-1, 1), 0), SIZE)])
        yield min(x_size, SIZE), min(y_size, SIZE), y_pad, x_pad, base
    for x_size, y_size in ((SIZE, SIZE), (SIZE, 1), (1, SIZE), (1, 0), (0, SIZE)):
        yield x_size, y_size, (0, 0), (0, 0), 0
    # Powers of two, whose product is one bit.
    for x_log in range(16):
        for more in (-1, 0, 1):
            y_size = 1 << max(depth.bit_length() - 1 + more - x_log, 0)
            yield 1 << x_log, min(y_size, SIZE), (0, 0), (0, 0), 0


@pytest.mark.parametrize("name", ["tiny", "default", "int16-acc"])
def test_tiles_past_the_end(name):
    machine = machines.machine(name)
    rng = random.Random(name)
    dut = InsnCheck(machine)
    found = []  # faults, by the number of the instruction

    async def watch(ctx):
        async for _, _, valid, cause, insn in ctx.tick().sample(
            dut.fault.valid, dut.fault.cause, dut.fault.insn
        ):
            if valid:
                found.append((insn, Fault(cause)))

    async def testbench(ctx):
        expected, number = [], 0
        for buffer in (Buffer.UOP, Buffer.INP, Buffer.WGT, Buffer.ACC):
            depth = machine.depth(buffer)
            for x_size, y_size, y_pad, x_pad, base in tiles(rng, depth):
                fields = load(
                    buffer, sram_base=base, dram_base=0, x_size=x_size, y_size=y_size,
                    y_pad=y_pad, x_pad=x_pad,
                )  # fmt: skip
                entries = (y_size + sum(y_pad)) * (x_size + sum(x_pad))
                ctx.set(dut.insn, MEM.encode(**fields))
                ctx.set(dut.number, number)
                ctx.set(dut.valid, 1)
                await ctx.tick()
                if x_size and entries and base + entries > depth:
                    expected.append((number, Fault.SRAM_RANGE))
                number += 1
                if rng.random() < 0.2:  # a bad one behind it, whose fault is there earlier
                    ctx.set(dut.insn, FINISH.encode(opcode=0) | 7)
                    ctx.set(dut.number, number)
                    await ctx.tick()
                    if not (expected and expected[-1][0] == number - 1):
                        expected.append((number, Fault.UNDEFINED_OPCODE))
                    number += 1
                ctx.set(dut.valid, 0)
                if rng.random() < 0.3:
                    await ctx.tick()
        ctx.set(dut.valid, 0)
        await ctx.tick().repeat(5)
        assert found == expected

    bench(dut, testbench, watch)


@pytest.mark.parametrize(("reset", "overwrite"), [*itertools.product((False, True), repeat=2)])
@pytest.mark.parametrize("iters", [(1, 1), (0, 0)])
def test_a_gemm_cannot_reset_and_overwrite_at_once(reset, overwrite, iters):
    machine = rtl_machines.machine("odd")
    insn = gemm(uops=(0, 1), iters=iters, reset=reset, overwrite=overwrite)
    low, high = encode_stream(records([insn]), machine)[0].tolist()
    dut = InsnCheck(machine)
    found = []

    async def testbench(ctx):
        ctx.set(dut.valid, 1)
        ctx.set(dut.insn, low | high << 64)
        ctx.set(dut.number, 7)
        for _ in range(8):
            await ctx.tick()
            ctx.set(dut.valid, 0)
            if ctx.get(dut.fault.valid):
                found.append((Fault(ctx.get(dut.fault.cause)), ctx.get(dut.fault.insn)))

    bench(dut, testbench)
    assert found == ([(Fault.UNDEFINED_GEMM, 7)] if reset and overwrite else [])
