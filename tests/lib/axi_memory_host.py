"""An AXI4 master for tests of memories in Amaranth's simulator."""

from collections import deque
from dataclasses import dataclass
from random import Random

INCREMENTING = 0b01


@dataclass(frozen=True)
class Burst:
    """``beats`` are (data, strobes) of a write, or None for as many reads as ``length``."""

    address: int
    length: int
    beats: tuple[tuple[int, int], ...] | None = None
    size: int | None = None  # log2 of bytes; the whole bus where it is None
    kind: int = INCREMENTING


class Master:
    """Sends bursts in order with random pauses; ``answers`` collects what came back.

    ``pause`` is the probability of a cycle without a new VALID, or without READY. Of a read burst
    the answer is a list of (data, response), of a write the response. Checks RLAST, and that no
    payload changes while it waits.
    """

    def __init__(self, read, write, bus_bytes: int, rng: Random, pause: float):
        self.read, self.write, self.bus_bytes = read, write, bus_bytes
        self.rng, self.pause = rng, pause
        self.reads, self.writes, self.beats = deque(), deque(), deque()
        self.expected = deque()  # lengths of reads
        self.read_answers, self.write_answers = [], []

    def add_to(self, simulator) -> None:
        for process in (
            self._addresses(self.read, "ar", self.reads),
            self._addresses(self.write, "aw", self.writes),
            self._data(),
            self._responses(),
            self._read_data(),
        ):
            simulator.add_testbench(process, background=True)

    def send(self, burst: Burst) -> None:
        if burst.beats is None:
            self.reads.append(burst)
            self.expected.append(burst.length)
        else:
            self.writes.append(burst)
            for i, (data, strobes) in enumerate(burst.beats):
                self.beats.append((data, strobes, i == len(burst.beats) - 1))

    async def finish(self, ctx, reads: int, writes: int, patience: int = 20_000) -> None:
        for _ in range(patience):
            if len(self.read_answers) == reads and len(self.write_answers) == writes:
                return
            await ctx.tick()
        raise AssertionError(f"no answer in {patience} cycles")

    def _addresses(self, bus, channel: str, queue: deque):
        def port(name: str):
            return getattr(bus, channel + name)

        async def send(ctx):
            while True:
                if not queue or self.rng.random() < self.pause:
                    await ctx.tick()
                    continue
                burst = queue.popleft()
                ctx.set(port("addr"), burst.address)
                ctx.set(port("len"), burst.length - 1)
                whole = self.bus_bytes.bit_length() - 1
                ctx.set(port("size"), whole if burst.size is None else burst.size)
                ctx.set(port("burst"), burst.kind)
                ctx.set(port("valid"), 1)
                await ctx.tick().until(port("ready"))
                ctx.set(port("valid"), 0)

        return send

    def _data(self):
        bus = self.write

        async def send(ctx):
            while True:
                if not self.beats or self.rng.random() < self.pause:
                    await ctx.tick()
                    continue
                data, strobes, last = self.beats.popleft()
                ctx.set(bus.wdata, data)
                ctx.set(bus.wstrb, strobes)
                ctx.set(bus.wlast, last)
                ctx.set(bus.wvalid, 1)
                await ctx.tick().until(bus.wready)
                ctx.set(bus.wvalid, 0)

        return send

    def _responses(self):
        bus = self.write

        async def receive(ctx):
            while True:
                ctx.set(bus.bready, int(self.rng.random() >= self.pause))
                _, _, valid, ready, response = await ctx.tick().sample(
                    bus.bvalid, bus.bready, bus.bresp
                )
                if valid and ready:
                    self.write_answers.append(response)

        return receive

    def _read_data(self):
        bus = self.read

        async def receive(ctx):
            beats, stalled = [], None
            while True:
                ctx.set(bus.rready, int(self.rng.random() >= self.pause))
                _, _, valid, ready, *payload = await ctx.tick().sample(
                    bus.rvalid, bus.rready, bus.rdata, bus.rresp, bus.rlast
                )
                if stalled is not None:
                    assert valid, "RVALID was withdrawn"
                    assert payload == stalled, "R changed while it waited"
                stalled = payload if valid and not ready else None
                if valid and ready:
                    beats.append((payload[0], payload[1]))
                    assert payload[2] == (len(beats) == self.expected[0]), "RLAST is misplaced"
                    if payload[2]:
                        self.read_answers.append(beats)
                        self.expected.popleft()
                        beats = []

        return receive
