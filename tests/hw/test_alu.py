"""One lane of the ALU against exact integers."""

import itertools
import random

import pytest
from amaranth.sim import Simulator

from vta_hw.alu import Function, ScalarAlu
from vta_isa.enums import AluOp


def expected(op, x, y, bits):
    match op:
        case AluOp.MIN:
            value = min(x, y)
        case AluOp.MAX:
            value = max(x, y)
        case AluOp.ADD:
            value = x + y
        case AluOp.MUL:
            value = x * y
        case AluOp.SHR:
            amount = max(-31, min(31, y))
            value = x >> amount if amount >= 0 else x << -amount
    return (value + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))


@pytest.mark.parametrize("bits", [16, 32])
@pytest.mark.parametrize("op", AluOp)
def test_a_lane_computes_and_wraps(op, bits):
    rng = random.Random(int(op))
    top = (1 << (bits - 1)) - 1
    edges = [0, 1, -1, 30, 31, 32, -30, -31, -32, -33, top, -top - 1]
    pairs = list(itertools.product(edges, edges))
    pairs += [(rng.randint(-top - 1, top), rng.randint(-top - 1, top)) for _ in range(200)]
    dut = ScalarAlu(bits)

    async def testbench(ctx):
        ctx.set(dut.function, Function(int(op)))
        for x, y in pairs:
            ctx.set(dut.x, x)
            ctx.set(dut.y, y)
            assert ctx.get(dut.result) == expected(op, x, y, bits), (x, y)

    simulator = Simulator(dut)
    simulator.add_testbench(testbench)
    simulator.run()


def test_reset_gives_zero():
    dut = ScalarAlu(32)

    async def testbench(ctx):
        ctx.set(dut.function, Function.ZERO)
        ctx.set(dut.x, 5)
        ctx.set(dut.y, -7)
        assert ctx.get(dut.result) == 0

    simulator = Simulator(dut)
    simulator.add_testbench(testbench)
    simulator.run()
