"""Watches an AXI4-Lite slave and knows nothing but the specification.

Section numbers are those of the AMBA AXI and ACE Protocol Specification, issue E.
"""

from axi_channels import ChannelMonitor

PAYLOAD = {
    "aw": ("awaddr",),
    "w": ("wdata", "wstrb"),
    "ar": ("araddr",),
    "b": ("bresp",),
    "r": ("rdata", "rresp"),
}
RESPONSES = (0b00, 0b10, 0b11)  # B1.1.1: no exclusive access, so no EXOKAY


class LiteMonitor(ChannelMonitor):
    """Checks every cycle, both sides; ``transfers`` says what has passed.

    ``in_reset`` is the value of ``reset`` that means reset.
    """

    def __init__(self, dut, prefix: str, clk, reset, *, in_reset: int = 1):
        super().__init__(dut, prefix, clk, reset, PAYLOAD, in_reset=in_reset)
        self.transfers = dict.fromkeys(PAYLOAD, 0)

    def _clear(self) -> None:
        super()._clear()
        self.owed = dict.fromkeys(("aw", "w", "ar"), 0)  # transfers that are not answered yet

    def _silent(self) -> None:
        for channel in "br":
            self._must_be_low(channel)

    def _cycle(self) -> None:
        self._answer("b", ("aw", "w"))  # before requests: those of this cycle are too late
        self._answer("r", ("ar",))
        for channel in self.owed:
            self.owed[channel] += self._moves(channel)

    def _answer(self, channel: str, to: tuple[str, ...]) -> None:
        if self._get(f"{channel}valid"):
            owed = min(self.owed[request] for request in to)
            assert owed, f"A3.3.1: {channel.upper()}VALID without a request"
            response = self._get(f"{channel}resp")
            assert response in RESPONSES, f"{channel.upper()}RESP is {response:#b}"
        if self._moves(channel):
            for request in to:
                self.owed[request] -= 1

    def _moves(self, channel: str) -> bool:
        moves = super()._moves(channel)
        self.transfers[channel] += moves
        return moves
