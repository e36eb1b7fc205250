"""Watches an AXI4-Lite slave and knows nothing but the specification.

Section numbers are those of the AMBA AXI and ACE Protocol Specification, issue E.
"""

from cocotb.triggers import RisingEdge

PAYLOAD = {
    "aw": ("awaddr",),
    "w": ("wdata", "wstrb"),
    "ar": ("araddr",),
    "b": ("bresp",),
    "r": ("rdata", "rresp"),
}
RESPONSES = (0b00, 0b10, 0b11)  # B1.1.1: no exclusive access, so no EXOKAY


class LiteMonitor:
    """Checks every cycle, both sides; ``transfers`` says what has passed.

    ``in_reset`` is the value of ``reset`` that means reset.
    """

    def __init__(self, dut, prefix: str, clk, reset, *, in_reset: int = 1):
        self.dut, self.prefix, self.clk, self.reset = dut, prefix, clk, reset
        self.in_reset = in_reset
        self.transfers = dict.fromkeys(PAYLOAD, 0)
        self._clear()

    def _clear(self) -> None:
        self.held: dict[str, tuple[int, ...]] = {}
        self.owed = dict.fromkeys(("aw", "w", "ar"), 0)  # transfers that are not answered yet
        self.resets = 0  # cycles of reset so far

    async def run(self) -> None:
        """A coroutine to be started and left alone."""
        while True:
            await RisingEdge(self.clk)
            self.step()

    def step(self) -> None:
        """Look at the cycle that has just ended."""
        if int(self.reset.value) == self.in_reset:
            resets = self.resets
            self._clear()
            self.resets = resets + 1
            for channel in "br" if resets else "":  # registers need an edge
                valid = self._get(f"{channel}valid")
                assert not valid, f"A3.1.2: {channel.upper()}VALID is high in reset"
            return
        self.resets = 0
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
        """Whether there is a transfer; what waits must be as it was (A3.2.1)."""
        valid, ready = self._get(f"{channel}valid"), self._get(f"{channel}ready")
        payload = tuple(self._get(name) for name in PAYLOAD[channel]) if valid else ()
        if channel in self.held:
            assert valid, f"A3.2.1: {channel.upper()}VALID is withdrawn"
            before = self.held.pop(channel)
            assert payload == before, f"A3.2.1: {channel.upper()} changes: {before}, {payload}"
        if valid and not ready:
            self.held[channel] = payload
        self.transfers[channel] += bool(valid and ready)
        return bool(valid and ready)

    def _get(self, name: str) -> int:
        return int(getattr(self.dut, self.prefix + name).value)
