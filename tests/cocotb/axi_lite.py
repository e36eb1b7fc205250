"""A host on AXI4-Lite: one driver per channel, and simple reads and writes on top of them."""

from collections import deque
from random import Random

import cocotb
from cocotb.triggers import RisingEdge

OKAY, SLVERR = 0b00, 0b10
PATIENCE = 3000  # cycles until an answer is missing
SENT = {"aw": ("awaddr",), "w": ("wdata", "wstrb"), "ar": ("araddr",)}
RECEIVED = {"b": ("bresp",), "r": ("rdata", "rresp")}


class Host:
    """Sends what stands in its queues, every channel on its own.

    ``pause`` is the probability of a cycle without a new VALID, or without READY. Answers must not
    be withdrawn or changed while they wait.
    """

    def __init__(self, dut, prefix: str, clk, rng: Random, pause: float = 0.0):
        self.dut, self.prefix, self.clk = dut, prefix, clk
        self.rng, self.pause = rng, pause
        self.queues = {channel: deque() for channel in SENT}
        self.answers = {channel: deque() for channel in RECEIVED}
        self.stalled = dict.fromkeys(RECEIVED, 0)
        for channel, payload in SENT.items():
            for name in (f"{channel}valid", *payload):
                self._wire(name).value = 0
        for channel in RECEIVED:
            self._wire(f"{channel}ready").value = 0

    def start(self) -> None:
        """Begin with sending and receiving, in the background."""
        for channel in SENT:
            cocotb.start_soon(self._send(channel))
        for channel in RECEIVED:
            cocotb.start_soon(self._receive(channel))

    async def write(self, address: int, data: int, strobes: int = 0xF) -> int:
        """BRESP, when it is there."""
        self.queues["aw"].append((address,))
        self.queues["w"].append((data, strobes))
        return (await self._answer("b"))[0]

    async def read(self, address: int) -> tuple[int, int]:
        """RDATA and RRESP, when they are there."""
        self.queues["ar"].append((address,))
        data, response = await self._answer("r")
        return data, response

    async def _answer(self, channel: str) -> tuple[int, ...]:
        for _ in range(PATIENCE):
            if self.answers[channel]:
                return self.answers[channel].popleft()
            await RisingEdge(self.clk)
        raise AssertionError(f"no answer on {channel.upper()} in {PATIENCE} cycles")

    async def _send(self, channel: str) -> None:
        queue, valid, ready = (
            self.queues[channel],
            self._wire(f"{channel}valid"),
            self._wire(f"{channel}ready"),
        )
        while True:
            if not queue or self.rng.random() < self.pause:
                await RisingEdge(self.clk)
                continue
            for name, value in zip(SENT[channel], queue.popleft(), strict=True):
                self._wire(name).value = value
            valid.value = 1
            await RisingEdge(self.clk)
            while not int(ready.value):
                await RisingEdge(self.clk)
            valid.value = 0

    async def _receive(self, channel: str) -> None:
        valid, ready = self._wire(f"{channel}valid"), self._wire(f"{channel}ready")
        payload = [self._wire(name) for name in RECEIVED[channel]]
        willing, held = 0, None
        while True:
            await RisingEdge(self.clk)
            came = int(valid.value)
            now = tuple(int(wire.value) for wire in payload) if came else None
            if held is not None:
                assert now == held, f"{channel.upper()} changes while it waits: {held}, {now}"
            held = now if came and not willing else None
            self.stalled[channel] += held is not None
            if came and willing:
                self.answers[channel].append(now)
            willing = int(self.rng.random() >= self.pause)
            ready.value = willing

    def _wire(self, name: str):
        return getattr(self.dut, self.prefix + name)
