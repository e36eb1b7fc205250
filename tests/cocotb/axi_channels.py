"""What the channels of AXI4 and AXI4-Lite have in common, for monitors of either.

Section numbers are those of the AMBA AXI and ACE Protocol Specification, issue E.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping

from cocotb.triggers import RisingEdge


class ChannelMonitor(ABC):
    """Follows the channels of ``payload``: ``{channel: its signals besides VALID and READY}``.

    ``in_reset`` is the value of ``reset`` that means reset.
    """

    def __init__(
        self,
        dut,
        prefix: str,
        clk,
        reset,
        payload: Mapping[str, tuple[str, ...]],
        *,
        in_reset: int,
    ):
        self.dut, self.prefix, self.clk, self.reset = dut, prefix, clk, reset
        self.payload, self.in_reset = payload, in_reset
        self.stalled = dict.fromkeys(payload, 0)  # cycles with VALID and without READY
        self.resets = 0  # cycles of reset so far
        self._clear()

    def _clear(self) -> None:
        """As after reset."""
        self.held: dict[str, tuple[int, ...]] = {}

    async def run(self) -> None:
        """A coroutine to be started and left alone."""
        while True:
            await RisingEdge(self.clk)
            self.step()

    def step(self) -> None:
        """Look at the cycle that has just ended."""
        if int(self.reset.value) == self.in_reset:
            self._clear()
            if self.resets:  # registers need an edge
                self._silent()
            self.resets += 1
            return
        self.resets = 0
        self._cycle()

    @abstractmethod
    def _silent(self) -> None:
        """In reset: what is watched drives no VALID."""

    @abstractmethod
    def _cycle(self) -> None:
        """A cycle outside of reset."""

    def _must_be_low(self, channel: str) -> None:
        valid = self._get(f"{channel}valid")
        assert not valid, f"A3.1.2: {channel.upper()}VALID is high in reset"

    def _moves(self, channel: str) -> bool:
        """Whether there is a transfer; what waits must be as it was (A3.2.1)."""
        valid, ready = self._get(f"{channel}valid"), self._get(f"{channel}ready")
        payload = self._payload(channel) if valid else ()
        if channel in self.held:
            assert valid, f"A3.2.1: {channel.upper()}VALID is withdrawn"
            before = self.held.pop(channel)
            assert payload == before, f"A3.2.1: {channel.upper()} changes: {before}, {payload}"
        if valid and not ready:
            self.held[channel] = payload
            self.stalled[channel] += 1
        return bool(valid and ready)

    def _payload(self, channel: str) -> tuple[int, ...]:
        return tuple(self._get(name) for name in self.payload[channel])

    def _get(self, name: str) -> int:
        return int(getattr(self.dut, self.prefix + name).value)
