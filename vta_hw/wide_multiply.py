"""A product of wide scalars, of which the low half is kept, in small multipliers."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from vta_isa.microarch import MUL_REGISTERS

PART_BITS = 16  # of what a multiplier takes: the blocks of every FPGA have room for it


class WideMultiply(wiring.Component):
    """``product``: the low ``bits`` bits of ``x`` × ``y``, the same for either kind of sign.

    Operands in cycle n, the product from a register in n + MUL_REGISTERS: operands, partial
    products and their sum are registered. The sum is zero instead after a cycle in which ``gate``
    was low.
    """

    def __init__(self, bits: int):
        self.bits = bits
        super().__init__({"gate": In(1), "x": In(bits), "y": In(bits), "product": Out(bits)})

    def elaborate(self, platform):
        m = Module()
        x, y = Signal(self.bits), Signal(self.bits)
        m.d.sync += [x.eq(self.x), y.eq(self.y)]
        starts = range(0, self.bits, PART_BITS)
        terms = []
        for i in starts:
            for j in starts:
                kept = self.bits - i - j  # bits of the partial product that are below `bits`
                if kept > 0:
                    part = Signal(min(kept, 2 * PART_BITS), name=f"part_{i}_{j}")
                    m.d.sync += part.eq(x[i : i + PART_BITS] * y[j : j + PART_BITS])
                    terms.append((part, i + j))
        total = sum(part << place for part, place in terms)
        m.d.sync += self.product.eq(Mux(self.gate, total, 0))
        return m


assert MUL_REGISTERS == 3, "operands, partial products, sum"
