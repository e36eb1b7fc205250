"""Two sums of two products in two multipliers: the argument for all operands, the component."""

import itertools

import numpy as np
import pytest
from bench import bench

from vta_hw.packed_pair import PackedPair


def scalars(bits: int) -> np.ndarray:
    return np.arange(-(1 << (bits - 1)), 1 << (bits - 1), dtype=np.int64)


@pytest.mark.parametrize(("x_bits", "y_bits"), [*itertools.product((2, 4, 8), repeat=2), (16, 4)])
def test_two_low_products_and_the_constant_fit_without_a_sign(x_bits: int, y_bits: int) -> None:
    """Then the high products are never disturbed, whatever they are."""
    products = scalars(x_bits)[:, None] * scalars(y_bits)
    k, offset = x_bits + y_bits, PackedPair(x_bits, y_bits).offset
    constant = (1 << (k - 1)) - offset
    assert 2 * products.min() + constant >= 0
    assert 2 * products.max() + constant < 1 << k
    # The offset cannot be larger, nor can there be none.
    assert 2 * products.min() + constant - 1 < 0
    assert 2 * products.max() + (1 << (k - 1)) >= 1 << k


def check(x_bits: int, y_bits: int, operands: np.ndarray) -> None:
    """``operands``: (n, 6) scalars: x, y_low, y_high of the first and of the second product."""
    dut = PackedPair(x_bits, y_bits)

    async def testbench(ctx) -> None:
        for row in operands.tolist():
            first, second = row[:3], row[3:]
            for i, (x, y_low, y_high) in enumerate((first, second)):
                ctx.set(dut.x[i], x)
                ctx.set(dut.y_low[i], y_low)
                ctx.set(dut.y_high[i], y_high)
            await ctx.tick()
            sums = (ctx.get(dut.low) + dut.offset, ctx.get(dut.high))
            assert sums == (
                first[0] * first[1] + second[0] * second[1],
                first[0] * first[2] + second[0] * second[2],
            ), row

    bench(dut, testbench)


def test_all_operands_of_two_bits() -> None:
    check(2, 2, np.array(list(itertools.product(range(-2, 2), repeat=6))))


@pytest.mark.parametrize(("x_bits", "y_bits"), [(8, 8), (4, 8), (8, 2), (16, 4), (3, 5)])
def test_extreme_and_random_operands(x_bits: int, y_bits: int) -> None:
    seed = 7
    rng = np.random.default_rng([seed, x_bits, y_bits])
    low = np.array([-(1 << (bits - 1)) for bits in (x_bits, y_bits, y_bits)] * 2)
    ends = np.array(list(itertools.product((0, 1), repeat=6)))
    extremes = low * ends + (-low - 1) * (1 - ends)
    random = rng.integers(low, -low, (2000, 6))
    check(x_bits, y_bits, np.concatenate([extremes, random]))
