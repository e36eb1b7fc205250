"""Hundreds of ports on six pins, so that any component can be placed on any device."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

INSTANCE = "scanned"  # of the component inside


class Scan(wiring.Component):
    """A component between shift registers.

    Every input comes from a register that shifts along ``scan_in``. Every output goes to a
    register; ``capture`` copies those to a second one, which otherwise shifts towards ``scan_out``.
    So every path through the component's ports begins or ends in a register beside it, and place
    and route reports the clock of the component and not of pads.
    """

    scan_in: In(1)
    capture: In(1)
    scan_out: Out(1)

    def __init__(self, component: wiring.Component):
        self.component = component
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        m.submodules[INSTANCE] = component = self.component
        inputs, outputs = [], []
        for _, member, value in component.signature.flatten(component):
            (inputs if member.flow == In else outputs).append(value)
        driven, seen = Signal(len(Cat(inputs)) + 1), Signal(len(Cat(outputs)) + 1)
        shifted = Signal.like(seen)
        m.d.comb += [Cat(inputs).eq(driven), self.scan_out.eq(shifted[-1])]
        m.d.sync += [
            driven.eq(Cat(self.scan_in, driven)),
            seen.eq(Cat(outputs)),
            shifted.eq(Cat(driven[-1], shifted)),
        ]
        with m.If(self.capture):
            m.d.sync += shifted.eq(seen)
        return m
