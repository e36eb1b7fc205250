"""The cutter of bursts, which all reads and writes of memory come from."""

from collections.abc import Mapping
from types import MappingProxyType

from amaranth.hdl import Assert, Assume, Cat, Const, Cover, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In
from amaranth.utils import exact_log2

from vta_hw.bursts import BurstSplitter
from vta_isa.machine import Machine, load_machine
from vta_isa.microarch import PAGE_BYTES, burst_bytes

from .axi import sender_is_stable
from .proof import Mutant, Proof
from .symbiyosys import Bounded, Induction


class _AnyRows(wiring.Component):
    """A splitter, and whatever may be asked of it.

    Assumed: rows are not empty, and a new start comes when nothing is presented.
    """

    def __init__(self, splitter: BurstSplitter):
        self.splitter = splitter
        asked = ("start", "address", "row_bytes", "stride_bytes", "rows")
        super().__init__(
            {name: In(splitter.signature.members[name].shape) for name in asked} | {"ready": In(1)}
        )

    def _splitter(self, m: Module) -> tuple[Value, Value, Value]:
        """First and last byte of the burst, and whether it is taken."""
        m.submodules.splitter = splitter = self.splitter
        burst = splitter.burst
        m.d.comb += [
            burst.ready.eq(self.ready),
            splitter.start.eq(self.start),
            splitter.address.eq(self.address),
            splitter.row_bytes.eq(self.row_bytes),
            splitter.stride_bytes.eq(self.stride_bytes),
            splitter.rows.eq(self.rows),
        ]
        taken = burst.valid & self.ready
        with m.If(self.start):
            m.d.comb += [
                Assume(~burst.valid),
                Assume((self.rows == 0) | (self.row_bytes != 0)),
            ]
        first, last = Signal(len(self.address)), Signal(len(self.address) + 1)
        beats = burst.payload.len + 1
        m.d.comb += [
            first.eq(burst.payload.address),
            last.eq(first + (beats << exact_log2(splitter.machine.bus_bytes)) - 1),
        ]
        return first, last, taken


class PageSpec(_AnyRows):
    """What AXI asks of a burst, whatever the rows, also where they wrap around."""

    def elaborate(self, platform):
        m = Module()
        first, last, _ = self._splitter(m)
        burst = self.splitter.burst
        longest = burst_bytes(self.splitter.machine)
        with m.If(burst.valid):
            m.d.comb += [
                Assert(first // PAGE_BYTES == last // PAGE_BYTES),
                Assert(first // longest == last // longest),
                Cover(first % PAGE_BYTES != 0),
                Cover((last + 1) % PAGE_BYTES == 0),
            ]
        payload = [burst.payload.address, burst.payload.len, self.splitter.last]
        sender_is_stable(m, "burst", burst.valid, self.ready, payload)
        return m


class RowSpec(_AnyRows):
    """Counts bytes: where the row is, where it ends, and how far the bursts have come.

    Assumed as well: rows end inside the address space.
    """

    def elaborate(self, platform):
        m = Module()
        first, last, taken = self._splitter(m)
        splitter = self.splitter
        machine: Machine = splitter.machine
        burst, bits = splitter.burst, len(self.address)
        beat_bits = exact_log2(machine.bus_bytes)

        row, size, stride = (Signal(bits, name=name) for name in ("row", "size", "stride"))
        rows = Signal(16)  # this one included
        cursor = Signal(bits)  # first byte not yet in a burst
        row_last = Signal(bits + 1)
        m.d.comb += row_last.eq(row + size - 1)
        beat_of_end = row_last >> beat_bits
        ends_row = Signal()
        m.d.comb += ends_row.eq(last >> beat_bits == beat_of_end)
        with m.If(self.start):
            m.d.sync += [
                row.eq(self.address),
                cursor.eq(self.address),
                size.eq(self.row_bytes),
                stride.eq(self.stride_bytes),
                rows.eq(self.rows),
            ]
        with m.Elif(taken & ends_row):
            m.d.sync += [row.eq(row + stride), cursor.eq(row + stride), rows.eq(rows - 1)]
        with m.Elif(taken):
            m.d.sync += cursor.eq(last + 1)

        m.d.comb += [
            Assume((rows == 0) | ~row_last[-1]),
            Assert(burst.valid == (rows != 0)),
        ]
        with m.If(burst.valid):
            m.d.comb += [
                Assert(first == Cat(Const(0, beat_bits), cursor[beat_bits:])),
                Assert(last >> beat_bits <= beat_of_end),
                Assert(ends_row | ((last + 1) % burst_bytes(machine) == 0)),
                Assert(splitter.last == (ends_row & (rows == 1))),
                Cover(ends_row & (rows == 2) & (size > 2 * machine.bus_bytes)),
                Cover(~ends_row),
            ]
        return m


def _machine(data_bits: int, burst_beats: int) -> Machine:
    axi = {"addr_bits": 16, "data_bits": data_bits, "burst_beats": burst_beats}
    return load_machine("tiny").replace(axi=axi)


MUTANTS = {
    "a row ends one cut late": Mutant("row_done.eq(cuts == 0)", "row_done.eq(cuts <= 1)"),
    "one row too many": Mutant("rows.eq(rows - 1)", "rows.eq(rows - (rows != 2))"),
    "the next row begins where the last one ended": Mutant(
        "next_row.eq(row + stride)", "next_row.eq(row + size)"
    ),
}
PAGE_MUTANTS = {
    "beats are counted from the cut": Mutant("last - beat[:cut], ~beat[:cut]", "last, ~beat[:cut]"),
    "a burst after the first is not cut": Mutant("~beat[:cut])", "(1 << cut) - 1)"),
    "a burst moves on before it is taken": Mutant(
        "with m.If(self.burst.valid & self.burst.ready)", "with m.If(self.burst.valid)"
    ),
}


def _bounded(cycles: int, slow: bool) -> Proof:
    return Proof(
        name=f"rows in bursts, {cycles} cycles",
        claims="Bursts cover every row, in order, without a gap and no further; a burst ends with "
        "its row or where it would cross a multiple of the longest burst; the last one is marked.",
        component=BurstSplitter,
        spec=lambda splitter: RowSpec(splitter(_machine(32, 4))),
        method=Bounded(cycles),
        cover_cycles=8,
        mutant_cycles=cycles,
        mutants={} if slow else MUTANTS,
        slow=slow,
    )


def _unbounded(data_bits: int, burst_beats: int, mutants: Mapping[str, Mutant]) -> Proof:
    machine = _machine(data_bits, burst_beats)
    return Proof(
        name=f"pages, bursts of {burst_beats} x {data_bits} bits",
        claims="No burst crosses 4 KiB, or a multiple of the longest burst; a burst that waits "
        "does not change.",
        component=BurstSplitter,
        spec=lambda splitter: PageSpec(splitter(machine)),
        method=Induction(2),
        cover_cycles=6,
        mutant_cycles=6,
        mutants=mutants,
    )


PROOFS = (
    _unbounded(32, 4, PAGE_MUTANTS),
    _unbounded(128, 256, MappingProxyType({})),
    _bounded(4, slow=False),
    _bounded(7, slow=True),
)
