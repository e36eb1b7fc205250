"""The store stage: writes OUT entries to DRAM."""

from amaranth.hdl import Array, Cat, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from vta_isa.enums import Buffer
from vta_isa.insn import INSN_BITS, MEM
from vta_isa.machine import Machine
from vta_isa.microarch import STORE_DATA, WRITE_AHEAD, burst_bytes

from .axi import CACHEABLE, DATA_ACCESS, INCREMENTING, Axi4Write
from .beats import BeatWalker
from .bursts import ROW_BYTES, BurstSplitter, base_bits, based
from .layouts import struct
from .scratchpad import Format, Geometry, lanes_to_banks
from .stage import Consumer, Producer, StageControl, StageState

RESPONSE_BITS = 24  # bursts without their response: more than any memory leaves unanswered


class Store(wiring.Component):
    """Executes STOREs; its neighbour is compute.

    Start in s: the first AW is on the bus in s + 3, OUT is addressed from s + 1 on, and from s + 4
    on there is a valid W beat in every cycle, rows and bursts behind each other without a gap. A
    beat that is not taken stops everything behind it. The AW of a burst follows the one before when
    fewer than WRITE_AHEAD bursts have had their AW but not their last beat. The stage ends in the
    cycle after the B response of the last burst. ``failed`` is high with a response that is not
    OKAY.
    """

    def __init__(self, machine: Machine):
        self.machine = machine
        self.geometry = Geometry.of(machine, Buffer.OUT)
        axi, banks = machine.axi, self.geometry.banks
        super().__init__(
            {
                "insns": In(stream.Signature(INSN_BITS)),
                "from_compute": Out(Consumer()),
                "to_compute": Out(Producer()),
                "rows": Out(data.ArrayLayout(self.geometry.row_bits, banks)),
                "read": Out(1),  # `out` follows `rows` by one cycle in which `read` is high
                "out": In(data.ArrayLayout(self.geometry.entry_bits, banks)),
                "axi": Out(Axi4Write(axi.addr_bits, axi.data_bits)),
                "start": Out(1),
                "end": Out(1),
                "failed": Out(1),
                "base": In(base_bits(machine)),  # added to DRAM addresses, in pages
                "state": Out(StageState()),
                "filling": Out(1),  # with `state.runs`: no beat can be valid yet
                "written_bytes": Out(ROW_BYTES),  # of a row, with the cycle that reads its end
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.control = control = StageControl()
        wiring.connect(m, wiring.flipped(self.insns), control.insns)
        wiring.connect(m, control.from_prev, wiring.flipped(self.from_compute))
        wiring.connect(m, control.to_prev, wiring.flipped(self.to_compute))
        wiring.connect(m, control.state, wiring.flipped(self.state))
        insn = data.View(struct(MEM), self.insns.payload)

        works = Signal()
        issued, written = Signal(), Signal()  # every AW, every W beat of the instruction
        unanswered = Signal(RESPONSE_BITS)  # bursts with AW and without B
        m.d.comb += [
            self.start.eq(control.start),
            self.end.eq(control.end),
            works.eq(control.start & (insn.x_size != 0) & (insn.y_size != 0)),
            control.running.eq(~issued | ~written | (unanswered != 0)),
        ]
        with m.If(control.start):
            m.d.sync += [issued.eq(~works), written.eq(~works)]
        started = Signal(STORE_DATA - 1)  # so many cycles ago
        m.d.sync += started.eq(Cat(control.start, started))
        m.d.comb += self.filling.eq(control.start | started.any())

        axi = self.axi
        aw_taken = Signal()
        w_taken_last = Signal()
        ahead = Signal(range(WRITE_AHEAD + 1))  # bursts with AW and without their last beat
        m.d.comb += [
            aw_taken.eq(axi.awvalid & axi.awready),
            w_taken_last.eq(axi.wvalid & axi.wready & axi.wlast),
            axi.bready.eq(1),
            self.failed.eq(axi.bvalid & (axi.bresp != 0)),
        ]
        m.d.sync += [
            ahead.eq(ahead + aw_taken - w_taken_last),
            unanswered.eq(unanswered + aw_taken - axi.bvalid),
        ]
        self._addresses(m, insn, works, issued, ahead, aw_taken)
        self._beats(m, insn, works, written, ahead)
        return m

    def _addresses(self, m: Module, insn, works, issued, ahead, aw_taken) -> None:
        machine, axi = self.machine, self.axi
        scale = exact_log2(machine.entry_bytes(Buffer.OUT))
        m.submodules.splitter = splitter = BurstSplitter(machine)

        # One cycle later than a loader's: presented in s + 2, in the AW register in s + 3, when
        # data is about to follow.
        m.d.sync += [
            splitter.start.eq(works),
            splitter.address.eq(based(self.base, insn.dram_base << scale)),
            splitter.row_bytes.eq(insn.x_size << scale),
            splitter.stride_bytes.eq(insn.x_stride << scale),
            splitter.rows.eq(insn.y_size),
        ]
        full, last = Signal(), Signal()
        m.d.comb += [
            axi.awvalid.eq(full & (ahead != WRITE_AHEAD)),
            axi.awsize.eq(exact_log2(machine.bus_bytes)),
            axi.awburst.eq(INCREMENTING),
            axi.awcache.eq(CACHEABLE),
            axi.awprot.eq(DATA_ACCESS),
            splitter.burst.ready.eq(~full | aw_taken),
        ]
        with m.If(splitter.burst.ready):
            m.d.sync += [
                full.eq(splitter.burst.valid),
                last.eq(splitter.last),
                axi.awaddr.eq(splitter.burst.payload.address),
                axi.awlen.eq(splitter.burst.payload.len),
            ]
        with m.If(aw_taken & last):
            m.d.sync += issued.eq(1)

    def _beats(self, m: Module, insn, works, written, ahead) -> None:
        machine, geometry, axi = self.machine, self.geometry, self.axi
        form = Format.of(machine, Buffer.OUT)
        lanes = form.entries_per_beat
        parts = exact_log2(form.beats_per_entry)
        lane_bits = exact_log2(lanes)
        burst_beats = burst_bytes(machine) // machine.bus_bytes

        # ---- s + 1: which beat is next ----------------------------------------------------------
        m.submodules.walker = walker = BeatWalker(
            geometry.index_bits + parts, form.beats_per_entry, lanes
        )
        advance = Signal()
        moves = Signal()
        m.d.comb += [
            walker.start.eq(works),
            walker.rows.eq(insn.y_size),
            walker.first.eq(insn.sram_base << parts),
            walker.pitch.eq(insn.x_size << parts),
            walker.row_places.eq(insn.x_size << parts),
            walker.skip.eq(insn.dram_base & (lanes - 1)),
            walker.skip_step.eq(insn.x_stride),
            walker.lanes.eq(lanes),
            walker.step.eq(advance),
            moves.eq(advance & walker.valid),
        ]

        row_size = Signal(len(insn.x_size))
        beat = Signal(range(burst_beats))  # counted from the last place where bursts are cut
        row_place, step = Signal(32 + parts), Signal(16 + parts)  # in DRAM: of the row, to the next
        next_place = Signal.like(row_place)
        m.d.comb += next_place.eq(row_place + step)
        with m.If(moves):
            m.d.sync += beat.eq(beat + 1)
            with m.If(walker.last_of_row):
                scale = exact_log2(machine.entry_bytes(Buffer.OUT))
                m.d.comb += self.written_bytes.eq(row_size << scale)
                m.d.sync += [row_place.eq(next_place), beat.eq(next_place >> lane_bits)]
        with m.If(works):
            first = insn.dram_base << parts
            m.d.sync += [
                row_size.eq(insn.x_size),
                row_place.eq(first),
                step.eq(insn.x_stride << parts),
                beat.eq(first >> lane_bits),
            ]

        # ---- s + 2: memory; s + 3: its output register; s + 4: rotated, with strobes -------------
        about = data.StructLayout(
            {
                "valid": 1,
                "used": lanes,  # lanes that are written
                "bank": max(geometry.bank_bits, 1),  # of lane 0
                "part": max(parts, 1),
                "last": 1,  # of its burst
                "final": 1,  # of the instruction
            }
        )
        now, at_memory, at_register = (
            Signal(about, name=name) for name in ("now", "at_memory", "at_register")
        )
        entry = walker.place[parts:]
        entries = Signal.like(self.out)
        final, taken = Signal(), Signal()
        full = Signal()
        m.d.comb += [
            *(
                row.eq(place_in_bank)
                for row, (_, _, place_in_bank) in zip(
                    self.rows, lanes_to_banks(geometry, entry, lanes), strict=True
                )
            ),
            self.read.eq(advance),
            now.valid.eq(walker.valid),
            now.used.eq(walker.used),
            now.bank.eq(entry[: geometry.bank_bits] if geometry.banks > 1 else 0),
            now.part.eq(walker.place[:parts] if parts else 0),
            now.last.eq(walker.last_of_row | (beat == burst_beats - 1)),
            now.final.eq(walker.last),
            # AXI lets data go before its address, but slaves and bridges like it better this way.
            axi.wvalid.eq(full & (ahead != 0)),
            taken.eq(axi.wvalid & axi.wready),
            advance.eq(~full | taken),
        ]
        pieces = []
        for lane in range(lanes):
            bank = (at_register.bank + lane)[: geometry.bank_bits] if geometry.banks > 1 else 0
            whole = Array(entries)[bank] if geometry.banks > 1 else entries[0]
            width = machine.axi.data_bits // lanes
            pieces.append(whole.word_select(at_register.part, width) if parts else whole)
        with m.If(advance):
            m.d.sync += [
                at_memory.eq(now),
                at_register.eq(at_memory),
                entries.eq(self.out),
                full.eq(at_register.valid),
                axi.wdata.eq(Cat(pieces)),
                axi.wstrb.eq(
                    Cat(used.replicate(machine.bus_bytes // lanes) for used in at_register.used)
                ),
                axi.wlast.eq(at_register.last),
                final.eq(at_register.final),
            ]
        with m.If(taken & final):
            m.d.sync += written.eq(1)
