"""Executes LOADs: bursts are requested, beats and zeros are written to scratchpads."""

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from vta_isa.enums import Buffer
from vta_isa.insn import INSN_BITS, MEM
from vta_isa.machine import Machine

from .bursts import ROW_BYTES, BurstSplitter, base_bits, based, burst_layout
from .layouts import struct
from .padding import PadEngine
from .scratchpad import Format, Geometry, lanes_to_banks, write_entry


class Loader(wiring.Component):
    """Fills ``memories`` from DRAM, with zeros around the data.

    ``start`` in cycle s takes ``insn``. The first burst is presented in s + 1. A beat on the bus in
    cycle b is ``data`` in b + 1, where it is brought to its banks, and written in b + 2. From s + 2
    on, every cycle without a data write writes one entry of zeros, until all padding is written.
    ``running`` is high from s + 1 to the cycle before the last write; with nothing to do, never.
    ``writing`` is high in cycles with a write. ``writes`` come from registers. ``read_bytes`` are
    the bytes of a row, by memory, in the cycle in which its last beat is ``data``. ``base_x`` is
    added to DRAM addresses of memory x, in pages.
    """

    def __init__(self, machine: Machine, memories: tuple[Geometry, ...]):
        self.machine = machine
        self.memories = memories
        super().__init__(
            {
                "start": In(1),
                "insn": In(INSN_BITS),
                "request": Out(stream.Signature(burst_layout(machine))),
                "data": In(machine.axi.data_bits),
                "valid": In(1),
                "running": Out(1),
                "writing": Out(1),
                "read_bytes": Out(
                    data.StructLayout(
                        {memory.buffer.name.lower(): ROW_BYTES for memory in memories}
                    )
                ),
                **{
                    f"base_{memory.buffer.name.lower()}": In(base_bits(machine))
                    for memory in memories
                },
                **{
                    f"write_{memory.buffer.name.lower()}": Out(memory.write_layout)
                    for memory in memories
                },
            }
        )

    def elaborate(self, platform):
        m = Module()
        machine = self.machine
        insn = data.View(struct(MEM), self.insn)
        owned = [(memory, form) for memory in self.memories for form in memory.formats]
        formats = [form for _, form in owned]
        index_bits = max(memory.index_bits for memory in self.memories)

        m.submodules.splitter = splitter = BurstSplitter(machine)
        m.submodules.pads = pads = PadEngine(index_bits)
        wiring.connect(m, splitter.burst, wiring.flipped(self.request))

        # ---- cycle s: what the instruction says, in units of the buffer it names ----------------
        works = Signal()
        row_entries = Signal(17)  # with padding
        first = Signal(index_bits)  # entry of the first datum
        m.d.comb += [
            works.eq(self.start & (insn.x_size != 0)),
            row_entries.eq(insn.x_pad_before + insn.x_size + insn.x_pad_after),
            first.eq(insn.sram_base + insn.y_pad_before * row_entries + insn.x_pad_before),
            splitter.start.eq(works),
            splitter.rows.eq(insn.y_size),
            pads.start.eq(works),
            pads.insn.eq(self.insn),
            pads.row_entries.eq(row_entries),
        ]

        buffer = Signal(unsigned(3))  # of the instruction that runs
        row_left = Signal(ROW_BEAT_BITS)
        with m.If(works):
            m.d.sync += buffer.eq(insn.buffer)
        row_size = Signal(len(insn.x_size))  # entries, of the instruction that runs
        with m.If(works):
            m.d.sync += row_size.eq(insn.x_size)
        for memory, form in owned:
            with m.If(insn.buffer == int(form.buffer)):
                scale = exact_log2(machine.entry_bytes(form.buffer))
                base = getattr(self, f"base_{memory.buffer.name.lower()}")
                m.d.comb += [
                    splitter.address.eq(based(base, insn.dram_base << scale)),
                    splitter.row_bytes.eq(insn.x_size << scale),
                    splitter.stride_bytes.eq(insn.x_stride << scale),
                ]

        # ---- where the next beat belongs --------------------------------------------------------
        # A place is an entry, or the part of an entry that one beat fills, whichever is smaller.
        most_lanes = max(form.entries_per_beat for form in formats)
        part_bits = exact_log2(max(form.beats_per_entry for form in formats))
        lane_bits = exact_log2(most_lanes)
        place = Signal(index_bits + part_bits)  # of lane 0
        next_row = Signal(index_bits + part_bits)  # of the first datum of the next row
        pitch = Signal(index_bits + part_bits)  # places from row to row
        row_places = Signal(ROW_BEAT_BITS)  # data of a row
        skip = Signal(max(lane_bits, 1))  # lanes before the first datum: in this beat,
        row_skip = Signal(max(lane_bits, 1))  # in the first beat of this row
        skip_step = Signal(max(lane_bits, 1))
        rows = Signal(16)  # the one in progress included
        left = row_left  # places of the row from lane 0 of this beat on, skipped ones included

        waits = Signal()  # data is to come
        lanes = Signal(lane_bits + 1)  # of a beat
        last_of_row, last = Signal(), Signal()
        following_skip = Signal(max(lane_bits, 1))
        m.d.comb += lanes.eq(1)
        for form in formats:
            if form.entries_per_beat > 1:
                with m.If(buffer == int(form.buffer)):
                    m.d.comb += lanes.eq(form.entries_per_beat)
        m.d.comb += [
            last_of_row.eq(left <= lanes),
            last.eq(last_of_row & (rows == 1)),
            following_skip.eq((row_skip + skip_step) & (lanes - 1)),
        ]
        with m.If(self.valid):
            m.d.sync += [left.eq(left - lanes), place.eq(place + lanes), skip.eq(0)]
            with m.If(last_of_row):
                m.d.sync += [
                    left.eq(row_places + following_skip),
                    place.eq(next_row - following_skip),
                    next_row.eq(next_row + pitch),
                    skip.eq(following_skip),
                    row_skip.eq(following_skip),
                    rows.eq(rows - 1),
                ]
            with m.If(last):
                m.d.sync += waits.eq(0)
        with m.If(works):
            m.d.sync += [waits.eq(insn.y_size != 0), rows.eq(insn.y_size)]
            for form in formats:
                with m.If(insn.buffer == int(form.buffer)):
                    parts = exact_log2(form.beats_per_entry)
                    # Lanes of the first beat that lie before the row.
                    before = insn.dram_base & (form.entries_per_beat - 1)
                    m.d.sync += [
                        place.eq((first << parts) - before),
                        next_row.eq((first + row_entries) << parts),
                        pitch.eq(row_entries << parts),
                        row_places.eq(insn.x_size << parts),
                        left.eq((insn.x_size << parts) + before),
                        skip.eq(before),
                        row_skip.eq(before),
                        skip_step.eq(insn.x_stride),
                    ]

        for memory, form in owned:
            with m.If(self.valid & last_of_row & (buffer == int(form.buffer))):
                scale = exact_log2(machine.entry_bytes(form.buffer))
                counted = getattr(self.read_bytes, memory.buffer.name.lower())
                m.d.comb += counted.eq(row_size << scale)

        # ---- b + 1: from beats and zeros to banks; b + 2: written --------------------------------
        m.d.comb += [pads.write.eq(~self.valid), self.running.eq(waits | pads.running)]
        m.d.sync += self.writing.eq(self.valid | (pads.valid & pads.write))
        used = [
            (lane >= skip) & (lane < left) if most_lanes > 1 else Const(1, 1)
            for lane in range(most_lanes)
        ]
        for memory in self.memories:
            write = getattr(self, f"write_{memory.buffer.name.lower()}")
            chosen = Signal(memory.write_layout, name=f"chosen_{memory.buffer.name.lower()}")
            for form in memory.formats:
                with m.If(buffer == int(form.buffer)):
                    with m.If(self.valid):
                        m.d.comb += self._write_beat(memory, form, chosen, place, part_bits, used)
                    with m.Else():
                        writes_zeros = pads.valid & pads.write
                        index = pads.index[: memory.index_bits]
                        m.d.comb += write_entry(memory, chosen, index, Const(0), writes_zeros)
            m.d.sync += write.eq(chosen)
        return m

    def _write_beat(self, memory: Geometry, form: Format, write, place, part_bits, used) -> list:
        assignments = []
        parts = exact_log2(form.beats_per_entry)
        part = place[:parts] if parts else Const(0, 1)
        first = place[parts:][: memory.index_bits]
        beat_bits = len(self.data) // form.entries_per_beat  # of one entry, or part of it
        pieces = Array(
            self._widen(form, self.data.word_select(lane, beat_bits))
            for lane in range(form.entries_per_beat)
        )
        used_lanes = Array(used[: form.entries_per_beat])
        # Parts of the memory's entry that one beat of this format fills.
        filled = memory.parts // form.beats_per_entry
        entries = form.entries_per_beat
        for bank, (lane, in_beat, row) in zip(
            write, lanes_to_banks(memory, first, entries), strict=True
        ):
            lane_of_beat = lane[: exact_log2(entries)] if entries > 1 else Const(0, 1)
            en = in_beat & (used_lanes[lane_of_beat] if entries > 1 else used[0])
            piece = pieces[lane_of_beat] if entries > 1 else pieces[0]
            mask = Cat((part == p).replicate(filled) for p in range(form.beats_per_entry))
            assignments += [
                bank.row.eq(row),
                bank.en.eq(Mux(en, mask if parts else Const(-1, memory.parts), 0)),
                bank.data.eq(Cat([piece] * form.beats_per_entry)),
            ]
        return assignments

    def _widen(self, form: Format, piece: Value) -> Value:
        """DRAM scalars as the memory holds them: those of ACC_8BIT are sign-extended."""
        if form.buffer != Buffer.ACC_8BIT:
            return piece
        narrow, wide = self.machine.bits(Buffer.ACC_8BIT), self.machine.bits(Buffer.ACC)
        scalars = (piece.word_select(i, narrow) for i in range(len(piece) // narrow))
        return Cat(Cat(scalar, scalar[-1].replicate(wide - narrow)) for scalar in scalars)


# Entries of a row in beats: x_size, and up to 512 beats in an entry.
ROW_BEAT_BITS = 16 + 10
