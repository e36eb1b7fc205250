"""One lane of the ALU, its shift amounts and its multiplier against exact integers."""

import itertools
import random

import pytest
from amaranth.sim import Simulator
from bench import bench

from vta_hw.alu import Amount, Function, Operation, ScalarAlu
from vta_hw.wide_multiply import WideMultiply
from vta_isa.enums import AluOp
from vta_isa.microarch import MUL_REGISTERS

SINGLE_CYCLE = [op for op in AluOp if op != AluOp.MUL]


def wrapped(value, bits):
    return (value + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))


def expected(op, x, y, bits):
    match op:
        case AluOp.MIN:
            value = min(x, y)
        case AluOp.MAX:
            value = max(x, y)
        case AluOp.ADD:
            value = x + y
        case AluOp.SHR:
            amount = max(-31, min(31, y))
            value = x >> amount if amount >= 0 else x << -amount
    return wrapped(value, bits)


def operands(bits, seed):
    """Pairs of edges, and of random numbers."""
    print(f"{seed=}")
    rng = random.Random(seed)
    top = (1 << (bits - 1)) - 1
    edges = [0, 1, -1, 30, 31, 32, -30, -31, -32, -33, top, -top - 1]
    pairs = list(itertools.product(edges, edges))
    return pairs + [(rng.randint(-top - 1, top), rng.randint(-top - 1, top)) for _ in range(200)]


class Lane:
    """What surrounds a lane in TensorAlu, for one function."""

    def __init__(self, bits, function):
        self.dut = ScalarAlu(bits)
        self.function = function

    def run(self, check):
        async def testbench(ctx):
            self.ctx = ctx
            for field, value in Operation.of(Function(self.function)).items():
                ctx.set(self.dut.operation[field], int(value))
            check(self)

        simulator = Simulator(self.dut)
        simulator.add_testbench(testbench)
        simulator.run()

    def result(self, x, y, sums=0, product=0):
        dut, ctx = self.dut, self.ctx
        values = {"x": x, "shift_x": x, "y": y, "sums": sums, "product": product}
        for port, value in values.items():
            ctx.set(getattr(dut, port), value)
        for field, value in Amount.of(dut.y).items():
            ctx.set(dut.amount[field], ctx.get(value))
        return ctx.get(dut.result)


@pytest.mark.parametrize("bits", [16, 32])
@pytest.mark.parametrize("op", SINGLE_CYCLE)
def test_a_lane_computes_and_wraps(op, bits):
    def check(lane):
        for x, y in operands(bits, seed=int(op)):
            assert lane.result(x, y, sums=x ^ 5) == expected(op, x, y, bits), (x, y)

    Lane(bits, Function(int(op))).run(check)


def test_gemm_adds_its_sums_and_not_the_second_operand():
    def check(lane):
        for x, sums in operands(32, seed=9):
            assert lane.result(x, y=~x, sums=sums) == wrapped(x + sums, 32), (x, sums)

    Lane(32, Function.GEMM).run(check)


def test_reset_gives_zero():
    def check(lane):
        assert lane.result(5, -7, sums=3) == 0

    Lane(32, Function.ZERO).run(check)


def test_mul_lets_a_product_through():
    def check(lane):
        assert lane.result(5, -7, sums=3, product=0x8000_0001) == -0x7FFF_FFFF

    Lane(32, Function.MUL).run(check)


@pytest.mark.parametrize("bits", [16, 32])
def test_the_low_half_of_a_product_one_pair_per_cycle(bits):
    dut = WideMultiply(bits)
    pairs = operands(bits, seed=bits)

    async def testbench(ctx):
        for cycle in range(len(pairs) + MUL_REGISTERS - 1):
            x, y = pairs[min(cycle, len(pairs) - 1)]
            ctx.set(dut.x, x)
            ctx.set(dut.y, y)
            # The gate belongs to the product that is added up in the same cycle.
            gate = cycle % 7 != 3
            ctx.set(dut.gate, gate)
            await ctx.tick()
            if cycle >= MUL_REGISTERS - 1:
                x, y = pairs[cycle - MUL_REGISTERS + 1]
                assert ctx.get(dut.product) == (x * y % (1 << bits) if gate else 0), (x, y)

    bench(dut, testbench)
