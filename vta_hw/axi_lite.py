"""The AXI4-Lite signals between a host and the registers.

Source: AMBA AXI and ACE Protocol Specification, chapter B1. AxPROT, which a slave may leave out, is
left out: registers are the same for everyone.
"""

from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from vta_isa.registers import WORD_BITS, WORD_BYTES

OKAY, SLVERR = 0b00, 0b10  # RRESP and BRESP


class AxiLite(wiring.Signature):
    """An AXI4-Lite master with 32 bits of data; byte addresses of ``addr_bits``."""

    def __init__(self, addr_bits: int):
        super().__init__(
            {
                "awvalid": Out(1),
                "awready": In(1),
                "awaddr": Out(addr_bits),
                "wvalid": Out(1),
                "wready": In(1),
                "wdata": Out(WORD_BITS),
                "wstrb": Out(WORD_BYTES),
                "bvalid": In(1),
                "bready": Out(1),
                "bresp": In(2),
                "arvalid": Out(1),
                "arready": In(1),
                "araddr": Out(addr_bits),
                "rvalid": In(1),
                "rready": Out(1),
                "rdata": In(WORD_BITS),
                "rresp": In(2),
            }
        )
