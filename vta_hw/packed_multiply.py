"""Two products of one scalar in one multiplier."""

from amaranth.hdl import Const, Module, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from vta_isa.packing import packed_bits


class PackedMultiply(wiring.Component):
    """``low`` = ``x`` × ``y_low`` and ``high`` = ``x`` × ``y_high``, all signed, in full precision.

    Operands in cycle n, products from a register in n + 1. One multiplication of ``x_bits`` by
    ``packed_bits`` bits: 8 x 25 for bytes, which is one DSP48 (25 x 18) with its pre-adder and its
    adder behind the product, and no LUT.

    Why it is exact for all operands. Let k = x_bits + y_bits, L = x · y_low, H = x · y_high. With
    both factors side by side in one,

        x · (y_high · 2^k + y_low) + 2^(k-1)  =  H · 2^k + (L + 2^(k-1))

    A product of signed scalars lies in -2^(k-2) < L <= 2^(k-2), so 0 <= L + 2^(k-1) < 2^k: what
    is in the brackets is k bits without a sign and never carries or borrows into H. The upper part
    of the sum is H. The lower k bits are L + 2^(k-1), which is L in two's complement with its sign
    bit inverted. Without the constant, H would be one too small wherever L is negative. The packed
    factor goes down to -2^(k+y_bits-1) - 2^(y_bits-1), below the range of k + y_bits bits, so it
    takes one bit more: k + y_bits + 1 = ``packed_bits``, 25 for bytes.
    """

    def __init__(self, x_bits: int, y_bits: int):
        self.x_bits = x_bits
        self.y_bits = y_bits
        self.product_bits = x_bits + y_bits
        self.packed_bits = packed_bits(x_bits, y_bits)
        super().__init__(
            {
                "x": In(signed(x_bits)),
                "y_low": In(signed(y_bits)),
                "y_high": In(signed(y_bits)),
                "low": Out(signed(self.product_bits)),
                "high": Out(signed(self.product_bits)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        k = self.product_bits
        sum_ = Signal(signed(2 * k))
        factor = packed(m, self.y_high, self.y_low, k)
        m.d.sync += sum_.eq(factor * self.x + Const(1 << (k - 1), signed(k + 1)))
        m.d.comb += [self.high.eq(sum_[k:]), self.low.eq(sum_[:k] ^ (1 << (k - 1)))]
        return m


def packed(m: Module, y_high, y_low, distance: int) -> Signal:
    """Both factors in one, ``y_high`` ``distance`` bits further up: the pre-adder of a DSP48."""
    factor = Signal(signed(distance + len(y_high) + 1))
    m.d.comb += factor.eq((y_high << distance) + y_low)
    return factor
