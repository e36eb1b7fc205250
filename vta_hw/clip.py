"""Clips accumulators to a range that begins at zero, or is symmetric."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from vta_isa.enums import LowKind
from vta_isa.insn import IMMEDIATE_BITS

HIGH_BITS = IMMEDIATE_BITS - 1  # of an upper bound; it has no sign


class Bounds(data.Struct):
    """A range, ready for use."""

    high: HIGH_BITS
    low: signed(IMMEDIATE_BITS)
    from_zero: 1
    symmetric: 1

    @staticmethod
    def of(high: Value, low_kind: Value) -> dict[str, Value]:
        """Field -> value, from the fields of a REQUANTIZE."""
        from_zero, symmetric = low_kind == LowKind.ZERO, low_kind == LowKind.NEGATIVE
        low = Mux(from_zero, 0, Mux(symmetric, -high, -high - 1))
        return {"high": high, "low": low, "from_zero": from_zero, "symmetric": symmetric}


class Clip(wiring.Component):
    """``result`` is ``value`` between the bounds; combinational.

    A negative number n is below -high - 1 where its complement, -n - 1, is above high, and below
    -high where that is high or more. So one comparator serves both bounds.
    """

    def __init__(self, bits: int):
        self.bits = bits
        super().__init__(
            {"bounds": In(Bounds), "value": In(signed(bits)), "result": Out(signed(bits))}
        )

    def elaborate(self, platform):
        m = Module()
        value, bounds = self.value.as_unsigned(), self.bounds
        negative = value[-1]
        size = (value ^ negative.replicate(self.bits))[:-1]
        # Above high is the carry of a sum with high's complement; one more comes in from bit 0.
        one = negative & bounds.symmetric
        total = Signal(HIGH_BITS + 2)
        m.d.comb += total.eq(Cat(one, ~bounds.high) + Cat(one, size[:HIGH_BITS]))
        beyond = total[-1] | size[HIGH_BITS:].any() | (negative & bounds.from_zero)
        limit = Mux(negative, bounds.low, Cat(bounds.high, 0).as_signed())
        m.d.comb += self.result.eq(Mux(beyond, limit, self.value))
        return m
