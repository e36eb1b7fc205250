"""A memory behind AXI4 for tests in Amaranth's simulator, and what it checks of its master.

Undisturbed it is the memory of docs/microarchitecture.md, section 10.
"""

from collections import deque
from random import Random

OKAY, SLVERR = 0, 2
PAGE_BYTES = 4096
READ_ADDRESS = ("araddr", "arlen", "arsize", "arburst", "arcache", "arprot")
WRITE_ADDRESS = ("awaddr", "awlen", "awsize", "awburst", "awcache", "awprot")
WRITE_DATA = ("wdata", "wstrb", "wlast")


class AxiMemory:
    """``data`` behind ``read`` and ``write``; ``pause`` is how often a channel is not ready.

    Accesses that touch a byte of ``broken`` are answered with an error. Raises AssertionError when
    the master breaks the protocol.
    """

    def __init__(self, read, write, machine, data, *, rng: Random, pause: float = 0.0):
        self.read, self.write, self.machine, self.data = read, write, machine, data
        self.rng, self.pause = rng, pause
        self.broken = range(0)
        self.reads = deque()  # [address, beats left, earliest cycle]
        self.writes = deque()  # [address, beats left]
        self.answers = deque()  # (earliest cycle, response)
        self.failing = OKAY  # of the write burst in progress
        self.held = {}

    @property
    def quiet(self) -> bool:
        return not (self.reads or self.writes or self.answers)

    async def serve(self, ctx):
        now = 0
        while True:
            self._drive(ctx, now)
            await self._sample(ctx, now)
            now += 1

    def _ready(self) -> int:
        return int(self.rng.random() >= self.pause)

    def _drive(self, ctx, now: int) -> None:
        read, write = self.read, self.write
        ctx.set(read.arready, self._ready())
        ctx.set(write.awready, self._ready())
        ctx.set(write.wready, self._ready())
        if not ctx.get(read.rvalid):  # a beat once offered stays until it is taken
            due = self.reads and self.reads[0][2] <= now and self._ready()
            if due:
                address, left, _ = self.reads[0]
                size = self.machine.bus_bytes
                beat = bytes(self.data[address : address + size]).ljust(size, b"\0")
                ctx.set(read.rdata, int.from_bytes(beat, "little"))
                ctx.set(read.rresp, self._response(address))
                ctx.set(read.rlast, int(left == 1))
                ctx.set(read.rvalid, 1)
        if not ctx.get(write.bvalid) and self.answers and self.answers[0][0] <= now:
            if self._ready():
                ctx.set(write.bresp, self.answers[0][1])
                ctx.set(write.bvalid, 1)

    def _response(self, address: int) -> int:
        touched = range(address, address + self.machine.bus_bytes)
        outside = touched.start >= len(self.data)
        met = touched.start < self.broken.stop and self.broken.start < touched.stop
        return SLVERR if outside or met else OKAY

    async def _sample(self, ctx, now: int) -> None:
        read, write = self.read, self.write
        names = [
            ("ar", read, READ_ADDRESS),
            ("aw", write, WRITE_ADDRESS),
            ("w", write, WRITE_DATA),
        ]
        signals = []
        for channel, port, payload in names:
            signals += [getattr(port, f"{channel}{end}") for end in ("valid", "ready")]
            signals += [getattr(port, name) for name in payload]
        signals += [read.rvalid, read.rready, write.bvalid, write.bready]
        _, _, *values = await ctx.tick().sample(*signals)
        *values, r_offered, r_taken, b_offered, b_taken = values
        left = iter(values)
        taken = {}
        for channel, _, payload in names:
            valid, ready = next(left), next(left)
            sent = tuple(next(left) for _ in payload)
            if channel in self.held:
                assert valid, f"{channel}valid was withdrawn"
                assert sent == self.held.pop(channel), f"{channel} changed while it waited"
            if valid and ready:
                taken[channel] = sent
            elif valid:
                self.held[channel] = sent

        if r_offered and r_taken:
            ctx.set(read.rvalid, 0)
            burst = self.reads[0]
            burst[0] += self.machine.bus_bytes
            burst[1] -= 1
            if not burst[1]:
                self.reads.popleft()
        if b_offered and b_taken:
            ctx.set(write.bvalid, 0)
            self.answers.popleft()
        if "ar" in taken:
            address, beats = self._burst(*taken["ar"][:4])
            self.reads.append([address, beats, now + self.machine.memory.read_latency])
        if "aw" in taken:
            self.writes.append(list(self._burst(*taken["aw"][:4])))
        if "w" in taken:
            self._write_beat(now, *taken["w"])

    def _burst(self, address: int, length: int, size: int, kind: int) -> tuple[int, int]:
        beats, bus = length + 1, self.machine.bus_bytes
        assert 1 << size == bus
        assert kind == 1
        assert address % bus == 0, "a burst is not aligned to the bus"
        last = address + beats * bus - 1
        assert address // PAGE_BYTES == last // PAGE_BYTES, "a burst crosses 4 KiB"
        return address, beats

    def _write_beat(self, now: int, data: int, strobes: int, last: int) -> None:
        assert self.writes, "data is written before its address"
        burst = self.writes[0]
        address = burst[0]
        response = self._response(address)
        self.failing = max(self.failing, response if strobes else OKAY)
        if response == OKAY:
            for byte in range(self.machine.bus_bytes):
                if strobes >> byte & 1:
                    self.data[address + byte] = data >> (8 * byte) & 0xFF
        burst[0] += self.machine.bus_bytes
        burst[1] -= 1
        assert (burst[1] == 0) == bool(last), "WLAST is not the last beat"
        if last:
            self.writes.popleft()
            self.answers.append((now + self.machine.memory.write_latency, self.failing))
            self.failing = OKAY
