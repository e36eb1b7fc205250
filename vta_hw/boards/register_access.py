"""From a host's single words to AXI4-Lite."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..axi_lite import OKAY, AxiLite
from .word_access import WordAccess


class RegisterAccess(wiring.Component):
    """Every access is one on AXI4-Lite; an answer that is not OKAY has failed.

    Addresses of ``addr_bits`` are executed; others fail at once.
    """

    def __init__(self, addr_bits: int):
        self.addr_bits = addr_bits
        super().__init__({"host": In(WordAccess()), "bus": Out(AxiLite(addr_bits))})

    def elaborate(self, platform):
        m = Module()
        host, bus = self.host, self.bus
        outside = host.address[self.addr_bits :] != 0
        under_way = Signal()  # the access is on the bus
        start, answered = Signal(), Signal()
        m.d.comb += [
            start.eq(host.request & ~outside & ~under_way),
            bus.bready.eq(1),
            bus.rready.eq(1),
            answered.eq(bus.bvalid | bus.rvalid),
            host.done.eq(answered | (host.request & outside)),
            host.value.eq(bus.rdata),
            host.failed.eq(
                outside | (bus.bvalid & (bus.bresp != OKAY)) | (bus.rvalid & (bus.rresp != OKAY))
            ),
            bus.awaddr.eq(host.address),
            bus.araddr.eq(host.address),
            bus.wdata.eq(host.data),
            bus.wstrb.eq(-1),
        ]
        for valid, ready, wanted in (
            (bus.awvalid, bus.awready, host.write),
            (bus.wvalid, bus.wready, host.write),
            (bus.arvalid, bus.arready, ~host.write),
        ):
            with m.If(start & wanted):
                m.d.sync += valid.eq(1)
            with m.Elif(ready):
                m.d.sync += valid.eq(0)
        with m.If(start):
            m.d.sync += under_way.eq(1)
        with m.Elif(answered):
            m.d.sync += under_way.eq(0)
        return m
