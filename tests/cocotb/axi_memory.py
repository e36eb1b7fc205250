"""DRAM behind an AXI4 master: slow, moody, and as unhelpful as the specification allows.

One ID is in use, so reads are answered in order and writes are; between the two there is no order.
What a read returns and when a write can be seen are therefore free within limits, and the model
goes to the limits: ``late_writes`` are not there before their B response, ``late_reads`` bring what
memory holds when a beat leaves, the others what it held when the address came.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from cocotb.triggers import RisingEdge

OKAY, SLVERR = 0b00, 0b10


@dataclass(frozen=True)
class Mood:
    """Probabilities of a cycle in which a channel does not move, and the range of latencies."""

    ar: float = 0.0
    r: float = 0.0
    aw: float = 0.0
    w: float = 0.0
    b: float = 0.0
    read_latency: tuple[int, int] = (1, 1)  # cycles from AR to the first beat, at least
    write_latency: tuple[int, int] = (1, 1)  # cycles from the last W beat to B, at least
    late_writes: bool = True
    late_reads: bool = False

    @classmethod
    def random(cls, rng: Random) -> "Mood":
        """Some channels flow, some crawl."""
        stalls = [rng.choice([0.0, 0.0, 0.3, 0.6, 0.9]) for _ in range(5)]
        latencies = [(1, rng.choice([1, 5, 40])) for _ in range(2)]
        return cls(*stalls, *latencies, rng.random() < 0.5, rng.random() < 0.5)


@dataclass
class _Read:
    address: int
    beats: int
    due: int  # cycle
    bad: bool
    snapshot: bytes | None


@dataclass
class _Write:
    address: int
    beats: int
    data: list[tuple[int, int]] = field(default_factory=list)  # data, strobes


class Memory:
    """Serves ``{prefix}ar*`` and ``r*``, ``{prefix}aw*``, ``w*`` and ``b*``, if there are any.

    ``image`` is what is at address 0 and after; beyond it there are zeros, and writes get lost.
    ``read_fails`` and ``write_fails`` are asked with the number of each burst and its address
    whether it is answered with SLVERR; a write that is does nothing.
    """

    def __init__(self, dut, prefix: str, clk, image: bytes | bytearray, rng: Random, mood: Mood):
        self.dut, self.prefix, self.clk = dut, prefix, clk
        self.image = bytearray(image)
        self.rng, self.mood = rng, mood
        self.has_reads = hasattr(dut, f"{prefix}arvalid")
        self.has_writes = hasattr(dut, f"{prefix}awvalid")
        data = self._wire("rdata" if self.has_reads else "wdata")
        self.bus_bytes = len(data) // 8
        self.read_fails: Callable[[int, int], bool] = lambda number, address: False
        self.write_fails: Callable[[int, int], bool] = lambda number, address: False
        self.forget()

    def forget(self) -> None:
        """As after a reset: nothing is under way."""
        self.cycle = 0
        self.reads: deque[_Read] = deque()
        self.addresses: deque[_Write] = deque()  # writes without all their data
        self.early_data: deque[tuple[int, int, int]] = deque()  # beats before their address
        self.responses: deque[tuple[int, _Write]] = deque()
        self.read_bursts = self.write_bursts = 0
        self.outside: list[int] = []  # addresses of bursts that are not in the image
        for name in ("arready", "rvalid") if self.has_reads else ():
            self._wire(name).value = 0
        for name in ("awready", "wready", "bvalid") if self.has_writes else ():
            self._wire(name).value = 0
        if self.has_reads:
            self._set(rdata=0, rresp=OKAY, rlast=0)
        if self.has_writes:
            self._set(bresp=OKAY)
        self.offered = dict.fromkeys(("ar", "r", "aw", "w", "b"), False)

    @property
    def quiet(self) -> bool:
        """Everything is answered."""
        under_way = self.reads, self.addresses, self.early_data, self.responses
        return not any(under_way) and not self.offered["r"] and not self.offered["b"]

    async def run(self) -> None:
        """A coroutine to be started and left alone."""
        while True:
            await RisingEdge(self.clk)
            self.cycle += 1
            if self.has_reads:
                self._take_reads()
                self._answer_reads()
            if self.has_writes:
                self._take_writes()
                self._answer_writes()

    # ---- the cycle that has just ended ----------------------------------------------------------

    def _take_reads(self) -> None:
        if self.offered["ar"] and self._get("arvalid"):
            address, beats = self._get("araddr"), self._get("arlen") + 1
            low, high = self.mood.read_latency
            bad = self.read_fails(self.read_bursts, address)
            snapshot = None if self.mood.late_reads else self._bytes(address, beats)
            due = self.cycle + self.rng.randint(low, high) - 1
            self.reads.append(_Read(address, beats, due, bad, snapshot))
            self._note(address, beats)
            self.read_bursts += 1
        if self.offered["r"] and self._get("rready"):
            self.offered["r"] = False

    def _take_writes(self) -> None:
        if self.offered["w"] and self._get("wvalid"):
            beat = self._get("wdata"), self._get("wstrb"), self._get("wlast")
            self.early_data.append(beat)
        if self.offered["aw"] and self._get("awvalid"):
            self.addresses.append(_Write(self._get("awaddr"), self._get("awlen") + 1))
            self._note(self.addresses[-1].address, self.addresses[-1].beats)
        while self.addresses and self.early_data:
            write = self.addresses[0]
            data, strobes, last = self.early_data.popleft()
            write.data.append((data, strobes))
            assert bool(last) == (len(write.data) == write.beats), "WLAST is not the last beat"
            if last:
                self.addresses.popleft()
                low, high = self.mood.write_latency
                self.responses.append((self.cycle + self.rng.randint(low, high) - 1, write))
                if not self.mood.late_writes:
                    self._apply(write)
        if self.offered["b"] and self._get("bready"):
            self.offered["b"] = False

    # ---- the cycle that begins ------------------------------------------------------------------

    def _answer_reads(self) -> None:
        self.offered["ar"] = self.rng.random() >= self.mood.ar
        self._set(arready=int(self.offered["ar"]))
        if self.offered["r"]:
            return  # held until it is taken
        if not self.reads or self.reads[0].due > self.cycle or self.rng.random() < self.mood.r:
            self._set(rvalid=0)
            return
        read = self.reads[0]
        if read.snapshot is None:
            beat = self._bytes(read.address, 1)
        else:
            beat, read.snapshot = (
                read.snapshot[: self.bus_bytes],
                read.snapshot[self.bus_bytes :],
            )
        read.address += self.bus_bytes
        read.beats -= 1
        if not read.beats:
            self.reads.popleft()
        self.offered["r"] = True
        self._set(
            rvalid=1,
            rdata=int.from_bytes(beat, "little"),
            rresp=SLVERR if read.bad else OKAY,
            rlast=int(not read.beats),
        )

    def _answer_writes(self) -> None:
        self.offered["aw"] = self.rng.random() >= self.mood.aw
        self.offered["w"] = self.rng.random() >= self.mood.w
        self._set(awready=int(self.offered["aw"]), wready=int(self.offered["w"]))
        if self.offered["b"]:
            return
        ready = self.responses and self.responses[0][0] <= self.cycle
        if not ready or self.rng.random() < self.mood.b:
            self._set(bvalid=0)
            return
        _, write = self.responses.popleft()
        bad = self.write_fails(self.write_bursts, write.address)
        self.write_bursts += 1
        if self.mood.late_writes and not bad:
            self._apply(write)
        self.offered["b"] = True
        self._set(bvalid=1, bresp=SLVERR if bad else OKAY)

    # ---- bytes ----------------------------------------------------------------------------------

    def _note(self, address: int, beats: int) -> None:
        if address + (beats - 1) * self.bus_bytes >= len(self.image):
            self.outside.append(address)

    def _bytes(self, address: int, beats: int) -> bytes:
        size = beats * self.bus_bytes
        return bytes(self.image[address : address + size]).ljust(size, b"\0")

    def _apply(self, write: _Write) -> None:
        for number, (data, strobes) in enumerate(write.data):
            first = write.address + number * self.bus_bytes
            for lane, byte in enumerate(data.to_bytes(self.bus_bytes, "little")):
                if strobes >> lane & 1 and first + lane < len(self.image):
                    self.image[first + lane] = byte

    def _wire(self, name: str):
        return getattr(self.dut, self.prefix + name)

    def _get(self, name: str) -> int:
        return int(self._wire(name).value)

    def _set(self, **values: int) -> None:
        for name, value in values.items():
            self._wire(name).value = value
