"""Clipping between bounds that follow from the upper one, against plain integers."""

import random

import pytest
from amaranth.hdl import Const
from amaranth.sim import Simulator

from vta_hw.clip import HIGH_BITS, Bounds, Clip
from vta_isa.enums import LowKind

TOP = (1 << HIGH_BITS) - 1


@pytest.mark.parametrize("low_kind", LowKind)
@pytest.mark.parametrize("bits", [16, 32])
def test_values_are_clipped(bits, low_kind):
    rng = random.Random(bits)
    dut = Clip(bits)
    most = (1 << (bits - 1)) - 1

    async def testbench(ctx):
        for high in (0, 1, 2, 7, 127, TOP - 1, TOP, rng.randint(0, TOP)):
            low = {LowKind.ZERO: 0, LowKind.NEGATIVE: -high, LowKind.COMPLEMENT: -high - 1}[
                low_kind
            ]
            for field, value in Bounds.of(Const(high, HIGH_BITS), Const(low_kind, 2)).items():
                ctx.set(dut.bounds[field], ctx.get(value))
            edges = [bound + near for bound in (low, high, 0) for near in (-2, -1, 0, 1, 2)]
            edges += [most, -most - 1, TOP + 1, -TOP - 1, -TOP - 2]
            values = [value for value in edges if -most - 1 <= value <= most]
            values += [rng.randint(-most - 1, most) >> rng.randrange(bits) for _ in range(100)]
            for value in values:
                ctx.set(dut.value, value)
                assert ctx.get(dut.result) == min(max(value, low), high), (value, low, high)

    simulator = Simulator(dut)
    simulator.add_testbench(testbench)
    simulator.run()
