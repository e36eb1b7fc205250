"""Executes LOADs: bursts are requested, beats and zeros are written to scratchpads."""

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from vta_isa.enums import Buffer
from vta_isa.insn import INSN_BITS, MEM
from vta_isa.machine import Machine

from .beats import BeatWalker
from .bursts import ROW_BYTES, BurstSplitter, base_bits, based, burst_layout
from .layouts import struct
from .padding import PadEngine
from .scratchpad import Format, Geometry, lanes_to_banks, write_entry
from .shift_add import Terms


class Loader(wiring.Component):
    """Fills ``memories`` from DRAM, with zeros around the data.

    ``start`` in cycle s takes ``insn``. The first burst is presented in s + 1, so no beat is
    ``data`` before s + 3. A beat on the bus in cycle b is ``data`` in b + 1, where it is brought to
    its banks, and written in b + 2. From s + 3 on, every cycle without a data write writes one
    entry of zeros, until all padding is written. ``running`` is high from s + 1 to the cycle before
    the last write; with nothing to do, never. ``writing`` is high in cycles with a write.
    ``writes`` come from registers. ``read_bytes`` are the bytes of a row, by memory, in the cycle
    in which its last beat is ``data``. ``base_x`` is added to DRAM addresses of memory x, in pages.
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

        # A place is an entry, or the part of an entry that one beat fills, whichever is smaller.
        most_lanes = max(form.entries_per_beat for form in formats)
        most_parts = max(form.beats_per_entry for form in formats)
        place_bits = index_bits + exact_log2(most_parts)
        m.submodules.walker = walker = BeatWalker(place_bits, most_parts, most_lanes)

        # ---- cycle s: what the instruction says, in units of the buffer it names ----------------
        works = Signal()
        kept = Signal(struct(MEM))
        rows = Cat(insn.y_size, insn.y_pad_before, insn.y_pad_after)
        m.d.comb += [
            works.eq(self.start & (insn.x_size != 0) & rows.any()),
            splitter.start.eq(works),
            splitter.rows.eq(insn.y_size),
            pads.start.eq(works),
            pads.insn.eq(self.insn),
        ]
        with m.If(works):
            m.d.sync += kept.eq(insn)
        for memory, form in owned:
            with m.If(insn.buffer == int(form.buffer)):
                scale = exact_log2(machine.entry_bytes(form.buffer))
                base = getattr(self, f"base_{memory.buffer.name.lower()}")
                m.d.comb += [
                    splitter.address.eq(based(base, insn.dram_base << scale)),
                    splitter.row_bytes.eq(insn.x_size << scale),
                    splitter.stride_bytes.eq(insn.x_stride << scale),
                ]

        # ---- s + 1: where its data goes; s + 2: before the first beat can be there --------------
        decoding, decoded = Signal(), Signal()
        first = Signal(index_bits)  # entry of the first datum
        above = Terms.of_product(pads.row_entries, kept.y_pad_before, index_bits)
        m.d.sync += [
            decoding.eq(works),
            decoded.eq(decoding),
            first.eq(above.total() + (kept.sram_base + kept.x_pad_before)),
        ]
        m.d.comb += [
            walker.start.eq(decoded),
            walker.rows.eq(kept.y_size),
            walker.skip_step.eq(kept.x_stride),
            walker.lanes.eq(1),
            walker.step.eq(self.valid),
        ]
        for memory, form in owned:
            with m.If(kept.buffer == int(form.buffer)):
                parts = exact_log2(form.beats_per_entry)
                m.d.comb += [
                    walker.first.eq(first << parts),
                    walker.pitch.eq(pads.row_entries << parts),
                    walker.row_places.eq(kept.x_size << parts),
                    walker.skip.eq(kept.dram_base & (form.entries_per_beat - 1)),
                    walker.lanes.eq(form.entries_per_beat),
                ]
                with m.If(self.valid & walker.last_of_row):
                    scale = exact_log2(machine.entry_bytes(form.buffer))
                    counted = getattr(self.read_bytes, memory.buffer.name.lower())
                    m.d.comb += counted.eq(kept.x_size << scale)

        # ---- b + 1: from beats and zeros to banks; b + 2: written -------------------------------
        m.d.comb += [
            pads.write.eq(~self.valid),
            self.running.eq(decoding | decoded | walker.valid | pads.valid),
        ]
        m.d.sync += self.writing.eq(self.valid | (pads.valid & pads.write))
        for memory in self.memories:
            write = getattr(self, f"write_{memory.buffer.name.lower()}")
            chosen = Signal(memory.write_layout, name=f"chosen_{memory.buffer.name.lower()}")
            for form in memory.formats:
                with m.If(kept.buffer == int(form.buffer)):
                    with m.If(self.valid):
                        m.d.comb += self._write_beat(memory, form, chosen, walker)
                    with m.Else():
                        writes_zeros = pads.valid & pads.write
                        index = pads.index[: memory.index_bits]
                        m.d.comb += write_entry(memory, chosen, index, Const(0), writes_zeros)
            m.d.sync += write.eq(chosen)
        return m

    def _write_beat(self, memory: Geometry, form: Format, write, walker: BeatWalker) -> list:
        """Assignments that write a beat: each lane to its bank, to the part of the entry it is."""
        assignments = []
        parts = exact_log2(form.beats_per_entry)
        part = walker.place[:parts] if parts else Const(0, 1)
        first = walker.place[parts:][: memory.index_bits]
        beat_bits = len(self.data) // form.entries_per_beat  # of one entry, or part of it
        pieces = Array(
            self._widen(form, self.data.word_select(lane, beat_bits))
            for lane in range(form.entries_per_beat)
        )
        used = Array(walker.used[: form.entries_per_beat])
        # Parts of the memory's entry that one beat of this format fills.
        filled = memory.parts // form.beats_per_entry
        entries = form.entries_per_beat
        for bank, (lane, in_beat, row) in zip(
            write, lanes_to_banks(memory, first, entries), strict=True
        ):
            lane_of_beat = lane[: exact_log2(entries)] if entries > 1 else Const(0, 1)
            en = in_beat & used[lane_of_beat]
            piece = pieces[lane_of_beat]
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
