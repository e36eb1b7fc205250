"""DRAM for boards that go without: block RAM behind AXI4, shared with a host."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In
from amaranth.utils import exact_log2

from vta_isa.machine import Machine
from vta_isa.registers import WORD_BITS, WORD_BYTES

from ..axi import INCREMENTING, OKAY, Axi4Read, Axi4Write
from .word_access import WordAccess

SLVERR = 0b10
PAGE_BYTES = 4096  # no burst crosses a multiple of it, so its first beat tells where it is


class BramMemory(wiring.Component):
    """``size`` bytes from address 0 on, a multiple of 4096; undefined before they are written.

    One burst is read and one is written at a time, a beat per cycle. The first beat is read 5
    cycles after its address was taken; the next address is taken in the cycle after the last beat
    of a burst began. B comes in the cycle after the last beat was taken, and reads from then on see
    what was written. A burst outside memory, or one that does not increment by whole beats, is
    answered with SLVERR and changes nothing.

    The host goes first, and costs a beat of the same direction. Its read is done after 4 cycles,
    and waits while a beat waits for RREADY; its write is done in the cycle after the one
    in which it is requested.
    """

    def __init__(self, machine: Machine, size: int):
        assert size > 0, "there must be memory"
        assert size % PAGE_BYTES == 0, "a burst is inside memory as a whole, or not at all"
        self.machine = machine
        self.size = size
        addr_bits, data_bits = machine.axi.addr_bits, machine.axi.data_bits
        super().__init__(
            {
                "read": In(Axi4Read(addr_bits, data_bits)),
                "write": In(Axi4Write(addr_bits, data_bits)),
                "host": In(WordAccess()),
            }
        )

    def elaborate(self, platform):
        m = Module()
        bus_bytes = self.machine.bus_bytes
        depth = self.size // bus_bytes
        # A memory per byte of the bus: strobes are write enables, whatever the family offers.
        lanes = [Memory(shape=8, depth=depth, init=[]) for _ in range(bus_bytes)]
        for i, lane in enumerate(lanes):
            m.submodules[f"lane{i}"] = lane
        self._read(m, lanes, depth)
        self._write(m, lanes, depth)
        m.d.comb += [
            self.host.done.eq(self.host_read_done | self.host_write),
            self.host.failed.eq(
                Mux(self.host.write, self.host.address >= self.size, self.host_read_failed)
            ),
        ]
        return m

    def _outside(self, address, size, burst):
        """Whether a burst cannot be executed."""
        whole = size == exact_log2(self.machine.bus_bytes)
        return (address >= self.size) | ~whole | (burst != INCREMENTING)

    def _row(self, address):
        """The beat that a byte is in."""
        return address >> exact_log2(self.machine.bus_bytes)

    def _word(self, address):
        """Which word of a beat a byte is in."""
        return (address >> exact_log2(WORD_BYTES))[: exact_log2(self.machine.bus_bytes // 4)]

    # ---- reads ----------------------------------------------------------------------------------

    def _read(self, m: Module, lanes, depth: int) -> None:
        axi, host = self.read, self.host
        # What belongs to a row on its way: through the address register, the memory, and a register
        # beside it, as block RAMs are slow and lie all over the chip, to R.
        about = data.StructLayout({"valid": 1, "host": 1, "last": 1, "bad": 1, "word": 4})
        addressed, fetched, kept, out = (
            Signal(about, name=name) for name in ("addressed", "fetched", "kept", "out")
        )
        kept_data = Signal.like(axi.rdata)
        row, address = Signal(range(depth)), Signal(range(depth))
        active, bad = Signal(), Signal()
        left = Signal(8)  # beats after this one
        advance = Signal()
        host_due, host_under_way = Signal(), Signal()
        m.d.comb += [
            axi.arready.eq(~active),
            advance.eq(~axi.rvalid | axi.rready),
            host_due.eq(host.request & ~host.write & ~host_under_way),
        ]
        with m.If(axi.arvalid & axi.arready):
            m.d.sync += [
                active.eq(1),
                row.eq(self._row(axi.araddr)),
                left.eq(axi.arlen),
                bad.eq(self._outside(axi.araddr, axi.arsize, axi.arburst)),
            ]
        with m.If(advance):
            m.d.sync += [
                addressed.eq(0),
                fetched.eq(addressed),
                kept.eq(fetched),
                out.eq(kept),
                axi.rdata.eq(kept_data),
            ]
            with m.If(host_due):
                m.d.sync += [
                    host_under_way.eq(1),
                    address.eq(self._row(host.address)),
                    addressed.host.eq(1),
                    addressed.bad.eq(host.address >= self.size),
                    addressed.word.eq(self._word(host.address)),
                ]
            with m.Elif(active):
                m.d.sync += [
                    address.eq(row),
                    addressed.valid.eq(1),
                    addressed.bad.eq(bad),
                    addressed.last.eq(left == 0),
                    row.eq(row + 1),
                    left.eq(left - 1),
                ]
                with m.If(left == 0):
                    m.d.sync += active.eq(0)

        for i, lane in enumerate(lanes):
            port = lane.read_port()
            m.d.comb += [port.addr.eq(address), port.en.eq(advance)]
            with m.If(advance):
                m.d.sync += kept_data.word_select(i, 8).eq(port.data)
        m.d.comb += [
            axi.rvalid.eq(out.valid),
            axi.rlast.eq(out.last),
            axi.rresp.eq(Mux(out.bad, SLVERR, OKAY)),
        ]
        self.host_read_done, self.host_read_failed = Signal(), Signal()
        m.d.comb += [
            self.host_read_done.eq(out.host),
            self.host_read_failed.eq(out.bad),
            host.value.eq(axi.rdata.word_select(out.word, WORD_BITS)),
        ]
        with m.If(out.host):
            m.d.sync += host_under_way.eq(0)

    # ---- writes ---------------------------------------------------------------------------------

    def _write(self, m: Module, lanes, depth: int) -> None:
        axi, host = self.write, self.host
        bus_bytes = self.machine.bus_bytes
        row, bad, active = Signal(range(depth)), Signal(), Signal()
        taken = Signal()
        self.host_write = Signal()
        m.d.comb += [
            axi.awready.eq(~active),
            axi.wready.eq(active & ~self.host_write & (~axi.bvalid | axi.bready)),
            taken.eq(axi.wvalid & axi.wready),
        ]
        m.d.sync += self.host_write.eq(host.request & host.write & ~self.host_write)
        with m.If(axi.bready):
            m.d.sync += axi.bvalid.eq(0)
        with m.If(axi.awvalid & axi.awready):
            m.d.sync += [
                active.eq(1),
                row.eq(self._row(axi.awaddr)),
                bad.eq(self._outside(axi.awaddr, axi.awsize, axi.awburst)),
            ]
        with m.If(taken):
            m.d.sync += row.eq(row + 1)
            with m.If(axi.wlast):
                m.d.sync += [
                    active.eq(0),
                    axi.bvalid.eq(1),
                    axi.bresp.eq(Mux(bad, SLVERR, OKAY)),
                ]

        # A register in front of the memory, which lies all over the chip.
        address, beat, strobes = Signal(range(depth)), Signal(8 * bus_bytes), Signal(bus_bytes)
        with m.If(self.host_write):
            inside = host.address < self.size
            here = inside.replicate(WORD_BYTES) << (self._word(host.address) * WORD_BYTES)
            m.d.sync += [
                address.eq(self._row(host.address)),
                beat.eq(host.data.replicate(bus_bytes // WORD_BYTES)),
                strobes.eq(here),
            ]
        with m.Else():
            m.d.sync += [
                address.eq(row),
                beat.eq(axi.wdata),
                strobes.eq(Mux(taken & ~bad, axi.wstrb, 0)),
            ]
        for i, lane in enumerate(lanes):
            port = lane.write_port()
            m.d.comb += [
                port.addr.eq(address),
                port.data.eq(beat.word_select(i, 8)),
                port.en.eq(strobes[i]),
            ]
