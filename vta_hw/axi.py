"""The AXI4 signals that the machine drives and listens to.

Source: AMBA AXI and ACE Protocol Specification, chapter A2. One ID is in use, so responses come in
order and there are no ID signals; LOCK, QOS and REGION are optional and always 0.
"""

from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

INCREMENTING = 0b01  # AxBURST
CACHEABLE = 0b1111  # AxCACHE: write-back, read and write allocate, as published
OKAY = 0b00  # RRESP and BRESP
DATA_ACCESS, INSTRUCTION_ACCESS = 0b000, 0b100  # AxPROT


def _address_channel(prefix: str, addr_bits: int) -> dict[str, wiring.Member]:
    return {
        f"{prefix}valid": Out(1),
        f"{prefix}ready": In(1),
        f"{prefix}addr": Out(addr_bits),
        f"{prefix}len": Out(8),  # beats - 1
        f"{prefix}size": Out(3),  # log2 of the bytes of a beat
        f"{prefix}burst": Out(2),
        f"{prefix}cache": Out(4),
        f"{prefix}prot": Out(3),
    }


class Axi4Read(wiring.Signature):
    """Read address and read data channel of an AXI4 master."""

    def __init__(self, addr_bits: int, data_bits: int):
        super().__init__(
            {
                **_address_channel("ar", addr_bits),
                "rvalid": In(1),
                "rready": Out(1),
                "rdata": In(data_bits),
                "rresp": In(2),
                "rlast": In(1),
            }
        )


class Axi4Write(wiring.Signature):
    """Write address, write data and write response channel of an AXI4 master."""

    def __init__(self, addr_bits: int, data_bits: int):
        super().__init__(
            {
                **_address_channel("aw", addr_bits),
                "wvalid": Out(1),
                "wready": In(1),
                "wdata": Out(data_bits),
                "wstrb": Out(data_bits // 8),  # bytes of the beat that are written
                "wlast": Out(1),
                "bvalid": In(1),
                "bready": Out(1),
                "bresp": In(2),
            }
        )
