"""Two products in one multiplier: the argument for all operands, the component for many."""

import itertools

import numpy as np
import pytest
from amaranth.sim import Simulator

from vta_hw.packed_multiply import PackedMultiply

BYTE = np.arange(-128, 128, dtype=np.int64)


def unpacked(total: np.ndarray, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """What the component does with the sum, in two's complement: high and low product."""
    field = (total & ((1 << bits) - 1)) ^ (1 << (bits - 1))
    return total >> bits, (field ^ (1 << (bits - 1))) - (1 << (bits - 1))


def test_the_sum_holds_both_products_of_all_bytes_exactly() -> None:
    low, high = BYTE[:, None], BYTE[None, :]
    for x in BYTE:  # 2^8 times 2^16 pairs
        packed = (high << 16) + low
        assert packed.min() >= -(1 << 24)
        assert packed.max() < 1 << 24  # the 25 bits of a DSP48
        got_high, got_low = unpacked(packed * x + (1 << 15), 16)
        assert (got_high == high * x).all()
        assert (got_low == low * x).all()


@pytest.mark.parametrize(("x_bits", "y_bits"), [(1, 1), (1, 2), (2, 4), (4, 2), (4, 4), (3, 5)])
def test_other_widths_are_exact_for_all_operands(x_bits: int, y_bits: int) -> None:
    y = np.arange(-(1 << (y_bits - 1)), 1 << (y_bits - 1))
    k = x_bits + y_bits
    for x in range(-(1 << (x_bits - 1)), 1 << (x_bits - 1)):
        high, low = unpacked(((y[None] << k) + y[:, None]) * x + (1 << (k - 1)), k)
        assert (high == y[None] * x).all()
        assert (low == y[:, None] * x).all()


def expected(operands: list[tuple[int, int, int]]) -> list[tuple[int, int]]:
    return [(x * low, x * high) for x, low, high in operands]


def products(x_bits: int, y_bits: int, operands: list[tuple[int, int, int]]) -> list[tuple]:
    """``(low, high)`` of the component for every ``(x, y_low, y_high)``."""
    component = PackedMultiply(x_bits, y_bits)
    results = []

    async def bench(ctx) -> None:
        for x, low, high in operands:
            ctx.set(component.x, x)
            ctx.set(component.y_low, low)
            ctx.set(component.y_high, high)
            await ctx.tick()
            results.append((ctx.get(component.low), ctx.get(component.high)))

    simulator = Simulator(component)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return results


def test_component_with_extreme_bytes() -> None:
    operands = list(itertools.product((-128, -127, -1, 0, 1, 126, 127), repeat=3))
    assert products(8, 8, operands) == expected(operands)


@pytest.mark.parametrize(("x_bits", "y_bits"), [(1, 1), (2, 3), (4, 2), (3, 3)])
def test_component_with_all_small_operands(x_bits: int, y_bits: int) -> None:
    x_range = range(-(1 << (x_bits - 1)), 1 << (x_bits - 1))
    y_range = range(-(1 << (y_bits - 1)), 1 << (y_bits - 1))
    operands = list(itertools.product(x_range, y_range, y_range))
    assert products(x_bits, y_bits, operands) == expected(operands)


@pytest.mark.parametrize("seed", range(2))
def test_component_with_random_bytes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    operands = [tuple(map(int, triple)) for triple in rng.integers(-128, 128, (10_000, 3))]
    assert products(8, 8, operands) == expected(operands), f"seed {seed}"
