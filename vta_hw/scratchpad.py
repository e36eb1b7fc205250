"""On-chip memories whose entries are read whole and filled at the rate of the bus."""

from dataclasses import dataclass

from amaranth.hdl import Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from vta_isa.enums import Buffer
from vta_isa.machine import Machine


@dataclass(frozen=True)
class Format:
    """How beats of the bus become entries of a memory, one per buffer a LOAD can name."""

    buffer: Buffer
    entries_per_beat: int  # 1 where an entry is as wide as a beat or wider
    beats_per_entry: int  # 1 where an entry is as wide as a beat or narrower

    @classmethod
    def of(cls, machine: Machine, buffer: Buffer) -> "Format":
        entry, bus = machine.entry_bytes(buffer), machine.bus_bytes
        return cls(buffer, max(bus // entry, 1), max(entry // bus, 1))


@dataclass(frozen=True)
class Geometry:
    """One memory: ``banks`` of ``rows`` entries each; entry i is in bank i mod ``banks``.

    There are as many banks as a beat has entries, so that a beat goes into one cycle. An entry has
    ``parts`` that can be written on their own: those that one beat fills.
    """

    buffer: Buffer
    entry_bits: int
    depth: int
    banks: int
    parts: int
    formats: tuple[Format, ...]

    @classmethod
    def of(cls, machine: Machine, buffer: Buffer) -> "Geometry":
        # OUT is written together with ACC, so the two are laid out alike; store reads OUT at the
        # rate of the bus.
        shadowed = buffer in (Buffer.ACC, Buffer.OUT)
        buffers = (Buffer.ACC, Buffer.ACC_8BIT) if shadowed else (buffer,)
        formats = tuple(Format.of(machine, b) for b in buffers)
        banks = max(f.entries_per_beat for f in formats)
        if shadowed:
            banks = max(banks, Format.of(machine, Buffer.OUT).entries_per_beat)
        return cls(
            buffer,
            machine.entry_bits(buffer),
            machine.depth(buffer),
            banks,
            max(f.beats_per_entry for f in formats),
            formats,
        )

    @property
    def rows(self) -> int:
        """At least two, so that every address has a bit; some are not used where banks are many."""
        return max(self.depth // self.banks, 2)

    @property
    def bank_bits(self) -> int:
        return exact_log2(self.banks)

    @property
    def row_bits(self) -> int:
        return exact_log2(self.rows)

    @property
    def index_bits(self) -> int:
        return self.bank_bits + self.row_bits

    @property
    def write_layout(self) -> data.Layout:
        """What goes to the write ports in one cycle."""
        return data.ArrayLayout(
            data.StructLayout({"row": self.row_bits, "en": self.parts, "data": self.entry_bits}),
            self.banks,
        )


class Scratchpad(wiring.Component):
    """A memory with a write port and ``readers`` read ports in every bank.

    ``write`` in cycle n: what is read with an address of n + 1 or later is the new entry; read
    data of an address of n is undefined where it is the entry written. ``rows`` of a read port in
    cycle n, while its ``en`` is high, gives ``data`` from n + 1 on.
    """

    def __init__(self, geometry: Geometry, readers: int = 1):
        self.geometry = geometry
        banks = geometry.banks
        read = wiring.Signature(
            {
                "en": In(1, init=1),
                "rows": In(data.ArrayLayout(geometry.row_bits, banks)),
                "data": Out(data.ArrayLayout(geometry.entry_bits, banks)),
            }
        )
        super().__init__({"write": In(geometry.write_layout), "reads": Out(read).array(readers)})

    def elaborate(self, platform):
        m = Module()
        geometry = self.geometry
        for bank in range(geometry.banks):
            memory = Memory(shape=geometry.entry_bits, depth=geometry.rows, init=[])
            m.submodules[f"bank{bank}"] = memory
            write = memory.write_port(granularity=geometry.entry_bits // geometry.parts)
            new = self.write[bank]
            m.d.comb += [
                write.addr.eq(new.row),
                write.en.eq(new.en),
                write.data.eq(new.data),
            ]
            for port in self.reads:
                read = memory.read_port()
                m.d.comb += [
                    read.en.eq(port.en),
                    read.addr.eq(port.rows[bank]),
                    port.data[bank].eq(read.data),
                ]
        return m


class EntryRead(wiring.Component):
    """Reads whole entries: ``index`` in cycle n gives ``entry`` in n + 2, from a register.

    ``early`` is the same in n + 1, straight from the memory.
    """

    def __init__(self, geometry: Geometry):
        self.geometry = geometry
        banks = geometry.banks
        super().__init__(
            {
                "index": In(geometry.index_bits),
                "entry": Out(geometry.entry_bits),
                "early": Out(geometry.entry_bits),
                "rows": Out(data.ArrayLayout(geometry.row_bits, banks)),
                "data": In(data.ArrayLayout(geometry.entry_bits, banks)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        geometry = self.geometry
        m.d.comb += [row.eq(self.index >> geometry.bank_bits) for row in self.rows]
        if geometry.banks == 1:
            m.d.comb += self.early.eq(self.data[0])
        else:
            bank = Signal(geometry.bank_bits)
            m.d.sync += bank.eq(self.index)
            m.d.comb += self.early.eq(self.data[bank])
        m.d.sync += self.entry.eq(self.early)
        return m


def write_entry(geometry: Geometry, write, index: Value, entry: Value, en: Value) -> list:
    """Assignments that write one whole entry."""
    assignments = []
    for number in range(geometry.banks):
        here = en & (index[: geometry.bank_bits] == number) if geometry.banks > 1 else en
        bank = write[number]
        assignments += [
            bank.row.eq(index >> geometry.bank_bits),
            bank.en.eq(here.replicate(geometry.parts)),
            bank.data.eq(entry),
        ]
    return assignments


def lanes_to_banks(geometry: Geometry, first: Value, entries: int):
    """Where consecutive entries from index ``first`` on are: per bank (lane, lane < entries, row).

    Yields for each bank the number of the entry in it, counted from ``first``, whether it is one of
    the ``entries``, and the row.
    """
    bits = geometry.bank_bits
    offset = first[:bits] if bits else Const(0, 1)
    row = first[bits : geometry.index_bits]
    for bank in range(geometry.banks):
        if not bits:
            yield Const(0, 1), Const(1, 1), row
            continue
        lane = (Const(bank, bits) - offset)[:bits]
        in_beat = Const(1, 1) if entries == geometry.banks else lane < entries
        yield lane, in_beat, Mux(offset > bank, row + 1, row)[: geometry.row_bits]
