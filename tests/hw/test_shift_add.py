"""Products made of sums agree with products."""

import random

import pytest
from amaranth.hdl import Module, Signal
from amaranth.sim import Simulator

from vta_hw.shift_add import Terms


@pytest.mark.parametrize(("number_bits", "factor_bits", "bits"), [
    (1, 1, 1), (17, 4, 9), (4, 17, 9), (9, 9, 9), (12, 12, 24), (16, 16, 16), (3, 1, 8),
])  # fmt: skip
def test_the_sum_is_the_product(number_bits, factor_bits, bits):
    m = Module()
    number, factor = Signal(number_bits), Signal(factor_bits)
    whole, halves = Signal(bits), Signal(bits)
    terms = Terms.of_product(number, factor, bits)
    kept = terms.paired().registers("kept")
    m.d.comb += [whole.eq(terms.total()), *kept.eq(terms.paired()), halves.eq(kept.total())]
    most = ((1 << number_bits) - 1, (1 << factor_bits) - 1)
    rng = random.Random(f"{number_bits} {factor_bits} {bits}")
    operands = [(0, 0), (1, 1), (0, most[1]), (most[0], 0), (most[0], 1), (1, most[1]), most]
    operands += [(rng.randint(0, most[0]), rng.randint(0, most[1])) for _ in range(100)]

    async def testbench(ctx):
        for a, b in operands:
            ctx.set(number, a)
            ctx.set(factor, b)
            expected = a * b % (1 << bits)
            assert ctx.get(whole) == expected, (a, b)
            assert ctx.get(halves) == expected, (a, b)

    simulator = Simulator(m)
    simulator.add_testbench(testbench)
    simulator.run()
