"""A component behind shift registers still does what it does."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

from vta_hw.synth.scan import Scan


class Difference(wiring.Component):
    """Two numbers in, their difference out."""

    a: In(4)
    b: In(4)
    d: Out(4)

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.d.eq(self.a - self.b)
        return m


def test_inputs_shift_in_and_outputs_shift_out() -> None:
    scan = Scan(Difference())
    out = []

    async def bench(ctx) -> None:
        # The first bit in ends in the highest place; one more register feeds the way out.
        for bit in [0, *map(int, f"{3:04b}{13:04b}")]:  # b = 3, a = 13
            ctx.set(scan.scan_in, bit)
            await ctx.tick()
        await ctx.tick()  # outputs are registered ...
        ctx.set(scan.capture, 1)
        await ctx.tick()  # ... and copied
        ctx.set(scan.capture, 0)
        for _ in range(5):
            out.append(ctx.get(scan.scan_out))
            await ctx.tick()

    simulator = Simulator(scan)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert out[-4:] == [int(bit) for bit in f"{13 - 3:04b}"]
