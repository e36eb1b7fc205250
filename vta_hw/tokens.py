"""Dependence tokens between neighbouring stages."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out


class TokenQueue(wiring.Component):
    """Dependence tokens from one stage to its neighbour.

    A token pushed in cycle n can be popped from cycle n + 1, and a place freed by a pop in n can be
    filled from n + 1. ``push`` is ignored while ``full``, ``pop`` while ``empty``. ``depth`` is the
    most tokens outstanding at once. Tokens stay from launch to launch; reset removes them.
    """

    def __init__(self, depth: int):
        self.depth = depth
        super().__init__({"push": In(1), "full": Out(1), "pop": In(1), "empty": Out(1, init=1)})

    def elaborate(self, platform):
        m = Module()
        count = Signal(range(self.depth + 1))  # pushed and not yet popped
        pushed, popped = Signal(), Signal()
        m.d.comb += [pushed.eq(self.push & ~self.full), popped.eq(self.pop & ~self.empty)]
        m.d.sync += [
            count.eq(count + pushed - popped),
            self.empty.eq(Mux(self.empty, ~pushed, (count == 1) & popped & ~pushed)),
            self.full.eq(Mux(self.full, ~popped, (count == self.depth - 1) & pushed & ~popped)),
        ]
        return m
