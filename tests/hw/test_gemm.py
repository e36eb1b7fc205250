"""The matrix product: every lane, in its latency, for every operand width."""

import numpy as np
import pytest
from bench import bench

from vta_hw.gemm import GemmCore
from vta_isa.enums import Buffer
from vta_isa.machine import load_machine
from vta_isa.microarch import MULTIPLY, adder_tree
from vta_isa.tensors import pack_entries

SMALL = {"uop": "256 B", "inp": "1 KiB", "wgt": "2 KiB", "acc": "2 KiB"}
MACHINES = [
    {"gemm": {"block_in": 4, "block_out": 4}, "sram": SMALL},
    {"gemm": {"batch": 2, "block_in": 1, "block_out": 2}, "sram": SMALL},
    {"gemm": {"block_in": 8, "block_out": 2}, "types": {"inp": "int4", "wgt": "int2"}},
    {"gemm": {"block_in": 2, "block_out": 4}, "types": {"inp": "int16", "out": "int16"}},
    {"gemm": {"block_in": 2, "block_out": 4}, "types": {"acc": "int16", "out": "int8"}},
]
PACKED = [
    {"gemm": {"block_in": 16, "block_out": 2, "packing": 2}},
    {"gemm": {"batch": 2, "block_in": 1, "block_out": 4, "packing": 2}},
    {"gemm": {"batch": 2, "block_in": 2, "block_out": 1, "packing": 2}},
    {"gemm": {"block_in": 8, "packing": 2}, "types": {"inp": "int4", "wgt": "int4"}},
    {"gemm": {"batch": 2, "block_in": 32, "block_out": 2, "packing": 2}, "types": {"wgt": "int2"}},
    {
        "gemm": {"block_in": 4, "block_out": 4, "packing": 2},
        "types": {"inp": "int16", "wgt": "int4"},
    },
    # WGT is shared: two int16 beside each other are too wide, two int4 are not.
    {
        "gemm": {"batch": 4, "block_in": 4, "block_out": 1, "packing": 2},
        "types": {"inp": "int4", "wgt": "int16"},
    },
    {
        "gemm": {"block_in": 64, "block_out": 2, "packing": 2},
        "types": {"inp": "int2", "wgt": "int2"},
    },
]


def word(scalars, buffer, machine):
    return int.from_bytes(pack_entries(scalars, buffer, machine).tobytes(), "little")


@pytest.mark.parametrize("description", MACHINES + PACKED, ids=str)
def test_products_come_out_after_the_latency_one_per_cycle(description):
    machine = load_machine({**description, "sram": SMALL})
    rng = np.random.default_rng(5)
    count = 12
    operands = {}
    for buffer in (Buffer.INP, Buffer.WGT):
        low, high = machine.scalar_range(buffer)
        values = rng.integers(low, high, (count, *machine.entry_shape(buffer)), endpoint=True)
        values[:3] = low  # the largest product
        values[3] = high
        operands[buffer] = values
    sums = np.einsum("tbk,tok->tbo", operands[Buffer.INP], operands[Buffer.WGT])
    bits = machine.bits(Buffer.ACC)
    sums = (sums + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))
    dut = GemmCore(machine)
    assert dut.latency == MULTIPLY + adder_tree(machine)

    async def testbench(ctx):
        for cycle in range(count + dut.latency):
            if cycle >= dut.latency:
                expected = word(sums[cycle - dut.latency], Buffer.ACC, machine)
                assert ctx.get(dut.sums) == expected, cycle
            if cycle < count:
                ctx.set(dut.inp, word(operands[Buffer.INP][cycle], Buffer.INP, machine))
                ctx.set(dut.wgt, word(operands[Buffer.WGT][cycle], Buffer.WGT, machine))
            await ctx.tick()

    bench(dut, testbench)
