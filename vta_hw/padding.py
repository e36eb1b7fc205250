"""Generates the places of the zeros around the data of a LOAD."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from vta_isa.insn import INSN_BITS, MEM

from .layouts import struct
from .shift_add import Terms

ROW_BITS = 17  # entries of a row with its padding: 65535 + 15 + 15
ROWS_BITS = 5  # rows of padding: 15 + 15


class PadEngine(wiring.Component):
    """Steps through the padding of a tile, one entry per cycle.

    ``start`` in cycle s takes ``insn``, a LOAD. From s + 2 on, while ``valid``, ``index`` is the
    next entry to be zero, and a cycle with ``write`` steps on. ``valid`` is low from the cycle
    after the last step on. ``row_entries``, from s + 1 on, is the width of the tile with its
    padding.

    Padding is runs of zeros with gaps of data between them: before the first datum, between the
    rows where rows have padding, behind the last datum. A run is some entries beside a row, and
    whole rows.
    """

    def __init__(self, index_bits: int):
        self.index_bits = index_bits
        super().__init__(
            {
                "start": In(1),
                "insn": In(INSN_BITS),
                "row_entries": Out(ROW_BITS),
                "index": Out(index_bits),
                "valid": Out(1),
                "write": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        bits = self.index_bits
        insn = data.View(struct(MEM), self.insn)
        run_layout = data.StructLayout({"rows": ROWS_BITS, "beside": 5})

        # ---- s: what the instruction says -------------------------------------------------------
        kept = Signal(struct(MEM))
        both_sides = Signal(5)
        m.d.comb += both_sides.eq(insn.x_pad_before + insn.x_pad_after)
        # The data as one piece, where nothing is between its rows: half way to its product.
        halves = Terms.of_product(insn.x_size, insn.y_size, bits).paired()
        area = halves.registers("area")
        between = Signal(run_layout)  # zeros between two rows of data
        begun = Signal()
        m.d.sync += begun.eq(self.start)
        with m.If(self.start):
            m.d.sync += [
                kept.eq(insn),
                self.row_entries.eq(insn.x_size + both_sides),
                between.beside.eq(both_sides),
                *area.eq(halves),
            ]

        # ---- s + 1: the runs and gaps of it -----------------------------------------------------
        before, behind = Signal(run_layout), Signal(run_layout)  # zeros before and behind the data
        gap = Signal(bits)  # data between two runs
        gaps = Signal(16)
        m.d.comb += [
            before.rows.eq(kept.y_pad_before),
            before.beside.eq(kept.x_pad_before),
            behind.rows.eq(kept.y_pad_after),
            behind.beside.eq(kept.x_pad_after),
            gap.eq(kept.x_size),
            gaps.eq(kept.y_size),
        ]
        with m.If(kept.y_size == 0):
            m.d.comb += [
                before.rows.eq(kept.y_pad_before + kept.y_pad_after),
                before.beside.eq(0),
            ]
        with m.Elif(between.beside == 0):
            m.d.comb += [gap.eq(area.total()), gaps.eq(1)]

        # ---- from s + 2 on ----------------------------------------------------------------------
        left = Signal(ROW_BITS)  # zeros of the run in this row
        rows = Signal(ROWS_BITS)  # whole rows of it after this one
        later_gaps = Signal(16)
        step_gap = Signal.like(gap)

        def beginning(run):
            """``left`` and ``rows`` where a run begins: what lies beside a row, then the rows."""
            any_rows, any_beside = run.rows != 0, run.beside != 0
            first = Mux(any_beside, run.beside, Mux(any_rows, self.row_entries, 0))
            return Cat(first[:ROW_BITS], (run.rows - (any_rows & ~any_beside))[:ROWS_BITS])

        def run_behind(gaps):
            """The beginning of the run behind the next of ``gaps`` gaps."""
            return Mux(gaps == 0, 0, Mux(gaps == 1, beginning(behind), beginning(between)))

        run = Cat(left, rows)
        m.d.comb += self.valid.eq(left != 0)
        with m.If(self.valid & self.write):
            m.d.sync += [self.index.eq(self.index + 1), left.eq(left - 1)]
            with m.If(left == 1):
                with m.If(rows != 0):
                    m.d.sync += [left.eq(self.row_entries), rows.eq(rows - 1)]
                with m.Else():
                    m.d.sync += [
                        # One more than the sum, with one adder.
                        self.index.eq(self.index - ~step_gap),
                        run.eq(run_behind(later_gaps)),
                        later_gaps.eq(later_gaps - 1),
                    ]
        with m.If(begun):
            m.d.sync += [
                step_gap.eq(gap),
                self.index.eq(kept.sram_base),
                run.eq(beginning(before)),
                later_gaps.eq(gaps),
            ]
            with m.If(before.as_value() == 0):
                m.d.sync += [
                    self.index.eq(kept.sram_base + gap),
                    run.eq(run_behind(gaps)),
                    later_gaps.eq(gaps - 1),
                ]
        return m
