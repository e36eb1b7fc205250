"""Watches an AXI4 master and knows nothing but the specification, and what the page promises.

Section numbers are those of the AMBA AXI and ACE Protocol Specification, issue E.
"""

from collections import deque

from axi_channels import ChannelMonitor

PAGE_BYTES = 4096
INCREMENTING = 0b01
PAYLOAD = {
    "ar": ("araddr", "arlen", "arsize", "arburst", "arcache", "arprot"),
    "aw": ("awaddr", "awlen", "awsize", "awburst", "awcache", "awprot"),
    "w": ("wdata", "wstrb", "wlast"),
}


class Monitor(ChannelMonitor):
    """Checks every cycle; ``beats`` and ``bursts`` say what has passed.

    ``burst_bytes`` is where bursts are cut at the latest; at most ``reads`` bursts are outstanding.
    ``in_reset`` is the value of ``reset`` that means reset.
    """

    def __init__(self, dut, prefix, clk, reset, *, burst_bytes, reads, in_reset=1):
        super().__init__(dut, prefix, clk, reset, PAYLOAD, in_reset=in_reset)
        self.burst_bytes, self.most_reads = burst_bytes, reads
        self.has_reads = hasattr(dut, f"{prefix}arvalid")
        self.has_writes = hasattr(dut, f"{prefix}awvalid")
        wire = getattr(dut, prefix + ("rdata" if self.has_reads else "wdata"))
        self.bus_bytes = len(wire) // 8
        self.bursts = dict.fromkeys(("ar", "aw", "b"), 0)
        self.beats = dict.fromkeys(("r", "w"), 0)

    def _clear(self) -> None:
        super()._clear()
        self.reads: deque[int] = deque()  # beats to come of every read burst
        self.writes: deque[int] = deque()
        self.unanswered = 0

    @property
    def quiet(self) -> bool:
        """Nothing is owed on any channel."""
        return not (self.held or self.reads or self.writes or self.unanswered)

    def _cycle(self) -> None:
        if self.has_writes:
            self._data()  # before addresses: data of the same cycle comes before its address
            self._address("aw")
            self._response()
        if self.has_reads:
            self._read_data()
            self._address("ar")

    def _silent(self) -> None:
        reads, writes = ("ar",) * self.has_reads, ("aw", "w") * self.has_writes
        for channel in reads + writes:
            self._must_be_low(channel)

    def _address(self, channel: str) -> None:
        if not self._moves(channel):
            return
        address, length, size, burst, cache, prot = self._payload(channel)
        where = f"{channel.upper()} {address:#x}, {length + 1} beats"
        last = address + (length + 1) * self.bus_bytes - 1
        assert 1 << size == self.bus_bytes, f"{where}: beats are not as wide as the bus"
        assert burst == INCREMENTING, f"{where}: A3.4.1: burst type {burst}"
        assert address % self.bus_bytes == 0, f"{where}: not aligned to the bus"
        assert address // PAGE_BYTES == last // PAGE_BYTES, f"{where}: A3.4.1: crosses 4 KiB"
        cut = self.burst_bytes
        assert address // cut == last // cut, f"{where}: crosses a multiple of {cut}"
        assert cache == 0b1111, f"{where}: cache {cache:#x}"
        assert prot in ((0b000, 0b100) if channel == "ar" else (0b000,)), f"{where}: prot {prot}"
        self.bursts[channel] += 1
        if channel == "ar":
            self.reads.append(length + 1)
            assert len(self.reads) <= self.most_reads, f"{where}: {len(self.reads)} reads at once"
        else:
            self.writes.append(length + 1)
            self.unanswered += 1

    def _data(self) -> None:
        if not self._moves("w"):
            return
        _, _, last = self._payload("w")
        assert self.writes, "data before its address: slaves and bridges like it better otherwise"
        self.beats["w"] += 1
        self.writes[0] -= 1
        assert bool(last) == (self.writes[0] == 0), "A3.4.1: WLAST is not the last beat"
        if last:
            self.writes.popleft()

    def _response(self) -> None:
        if self._get("bvalid") and self._get("bready"):
            answered = self.unanswered - len(self.writes)
            assert answered > 0, "the memory answers a write whose data it does not have"
            self.unanswered -= 1
            self.bursts["b"] += 1

    def _read_data(self) -> None:
        if self._get("rvalid") and self._get("rready"):
            assert self.reads, "the memory sends data that nobody asked for"
            self.beats["r"] += 1
            self.reads[0] -= 1
            assert bool(self._get("rlast")) == (self.reads[0] == 0), "RLAST is not the last beat"
            if not self.reads[0]:
                self.reads.popleft()
