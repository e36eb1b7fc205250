"""Two sums of two products in two multipliers."""

from amaranth.hdl import Const, Module, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .packed_multiply import packed


class PackedPair(wiring.Component):
    """``low`` + ``offset`` = Σ ``x[i]`` × ``y_low[i]`` and ``high`` = Σ ``x[i]`` × ``y_high[i]``
    over both i, all signed, in full precision.

    Operands in cycle n, sums in n + 1: the products come from registers, the addition behind them
    is combinational. That is two DSP48, the second with the first one's result on its C port, and
    no LUT.

    Why it is exact for all operands: as in ``PackedMultiply``, but what must fit k bits without a
    sign is now the sum of two low products and a constant. A product lies in
    -2^(k-2) + 2^(m-1) <= L <= 2^(k-2), where m is the smaller of ``x_bits`` and ``y_bits``: only
    one of the ends is a power of two. So 0 <= L0 + L1 + 2^(k-1) - c < 2^k for every c from 1 to
    2^m, and ``high`` never sees a carry or a borrow. The lower k bits, their sign bit inverted,
    are L0 + L1 - c in two's complement. ``offset`` is the largest c: sums of many pairs are put
    right by one addition, and a large power of two disturbs few bits.
    """

    def __init__(self, x_bits: int, y_bits: int):
        self.x_bits = x_bits
        self.y_bits = y_bits
        self.product_bits = x_bits + y_bits
        self.offset = 1 << min(x_bits, y_bits)
        super().__init__(
            {
                "x": In(signed(x_bits)).array(2),
                "y_low": In(signed(y_bits)).array(2),
                "y_high": In(signed(y_bits)).array(2),
                "low": Out(signed(self.product_bits)),
                "high": Out(signed(self.product_bits + 1)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        k = self.product_bits
        both = [Signal(signed(2 * k + 1), name=f"products{i}") for i in range(2)]
        total = Signal(signed(2 * k + 1))
        constant = Const((1 << (k - 1)) - self.offset, signed(k))
        factors = [
            packed(m, y_high, y_low, k)
            for y_high, y_low in zip(self.y_high, self.y_low, strict=True)
        ]
        m.d.sync += [
            both[0].eq(factors[0] * self.x[0] + constant),
            both[1].eq(factors[1] * self.x[1]),
        ]
        m.d.comb += [
            total.eq(both[0] + both[1]),
            self.low.eq(total[:k] ^ (1 << (k - 1))),
            self.high.eq(total[k:]),
        ]
        return m
