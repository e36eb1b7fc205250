"""Generates the places of the zeros around the data of a LOAD."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from vta_isa.insn import INSN_BITS, MEM

from .layouts import struct

ROW_BITS = 17  # entries of a row with its padding: 65535 + 15 + 15
RUN_BITS = 22  # zeros in a row: 15 rows and two ends


class PadEngine(wiring.Component):
    """Steps through the padding of a tile, one entry per cycle.

    ``start`` in cycle s takes ``insn`` (a LOAD) and ``row_entries``, its padded row. From s + 1 on,
    while ``valid``, ``index`` is the next entry to be zero, and a cycle with ``write`` steps on.
    ``running`` is ``valid``: it is low from the cycle after the last step on.

    Padding is runs of zeros with gaps of data between them: before the first datum, between the
    rows where rows have padding, behind the last datum.
    """

    def __init__(self, index_bits: int):
        self.index_bits = index_bits
        super().__init__(
            {
                "start": In(1),
                "insn": In(INSN_BITS),
                "row_entries": In(ROW_BITS),
                "index": Out(index_bits),
                "valid": Out(1),
                "write": In(1),
                "running": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        insn = data.View(struct(MEM), self.insn)
        bits = self.index_bits

        # What the instruction says.
        before, behind = Signal(RUN_BITS), Signal(RUN_BITS)  # zeros before and behind the data
        between = Signal(5)  # zeros between two rows of data
        gap = Signal(bits)  # data between two runs
        gaps = Signal(16)
        m.d.comb += [
            before.eq(insn.y_pad_before * self.row_entries + insn.x_pad_before),
            behind.eq(insn.y_pad_after * self.row_entries + insn.x_pad_after),
            between.eq(insn.x_pad_before + insn.x_pad_after),
            gap.eq(insn.x_size),
            gaps.eq(insn.y_size),
        ]
        with m.If(insn.y_size == 0):
            m.d.comb += before.eq((insn.y_pad_before + insn.y_pad_after) * self.row_entries)
        with m.Elif(between == 0):  # the data is one piece
            m.d.comb += [gap.eq(insn.x_size * insn.y_size), gaps.eq(1)]

        left = Signal(RUN_BITS)  # zeros of this run
        later_gaps = Signal(16)
        step_gap, step_between, step_behind = (
            Signal.like(signal) for signal in (gap, between, behind)
        )
        next_run = Signal(RUN_BITS)

        def run_behind(gaps, between, behind):
            """Zeros behind the next of ``gaps`` gaps."""
            return Mux(gaps == 0, 0, Mux(gaps == 1, behind, between))

        m.d.comb += [
            self.valid.eq(left != 0),
            self.running.eq(self.valid),
            next_run.eq(run_behind(later_gaps, step_between, step_behind)),
        ]
        with m.If(self.valid & self.write):
            m.d.sync += [self.index.eq(self.index + 1), left.eq(left - 1)]
            with m.If(left == 1):
                m.d.sync += [
                    self.index.eq(self.index + 1 + step_gap),
                    left.eq(next_run),
                    later_gaps.eq(later_gaps - 1),
                ]
        with m.If(self.start):
            m.d.sync += [
                step_gap.eq(gap),
                step_between.eq(between),
                step_behind.eq(behind),
                self.index.eq(insn.sram_base),
                left.eq(before),
                later_gaps.eq(gaps),
            ]
            with m.If(before == 0):
                m.d.sync += [
                    self.index.eq(insn.sram_base + gap),
                    left.eq(run_behind(gaps, between, behind)),
                    later_gaps.eq(gaps - 1),
                ]
        return m
