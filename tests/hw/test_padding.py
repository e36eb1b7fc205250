"""The pad engine visits every entry of padding once, one per cycle."""

import itertools
import random

import pytest
from bench import bench

from vta_hw.padding import PadEngine
from vta_isa.enums import Buffer
from vta_isa.insn import MEM, load


def padding(base, x_size, y_size, y_pad, x_pad, depth):
    """Entries of padding in the order of their places."""
    columns = x_pad[0] + x_size + x_pad[1]
    for row in range(y_pad[0] + y_size + y_pad[1]):
        for column in range(columns):
            core_row = y_pad[0] <= row < y_pad[0] + y_size
            if not (core_row and x_pad[0] <= column < x_pad[0] + x_size):
                yield (base + row * columns + column) % depth


SHAPES = [
    *itertools.product([1, 3], [0, 1, 2, 3], [(0, 0), (1, 0), (0, 2), (2, 1)], [(0, 0), (1, 0)]),
    *itertools.product([2], [0, 1, 3], [(0, 0), (1, 1)], [(0, 2), (2, 1)]),
    # The ends of the fields, and data that is larger than the memory.
    (1, 1, (15, 15), (15, 15)),
    (7, 2, (15, 0), (0, 0)),
    (255, 253, (0, 1), (0, 0)),
    (37, 41, (0, 1), (0, 0)),
]


@pytest.mark.parametrize("stalls", [False, True])
def test_every_entry_of_padding_is_visited_in_order(stalls):
    rng = random.Random(1)
    dut = PadEngine(index_bits=8)

    async def testbench(ctx):
        for x_size, y_size, y_pad, x_pad in SHAPES:
            base = rng.randrange(256)
            fields = load(
                Buffer.INP, sram_base=base, dram_base=0, x_size=x_size, y_size=y_size,
                y_pad=y_pad, x_pad=x_pad,
            )  # fmt: skip
            ctx.set(dut.insn, MEM.encode(**fields))
            ctx.set(dut.start, 1)
            await ctx.tick()
            ctx.set(dut.start, 0)
            ctx.set(dut.insn, 0)
            assert not ctx.get(dut.valid)
            assert ctx.get(dut.row_entries) == x_size + sum(x_pad)
            ctx.set(dut.write, 1)  # of nothing
            await ctx.tick()
            for index in padding(base, x_size, y_size, y_pad, x_pad, 256):
                while stalls and rng.random() < 0.4:
                    ctx.set(dut.write, 0)
                    await ctx.tick()
                ctx.set(dut.write, 1)
                assert ctx.get(dut.valid), (x_size, y_size, y_pad, x_pad)
                assert ctx.get(dut.index) == index, (x_size, y_size, y_pad, x_pad)
                await ctx.tick()
            assert not ctx.get(dut.valid), (x_size, y_size, y_pad, x_pad)

    bench(dut, testbench)
