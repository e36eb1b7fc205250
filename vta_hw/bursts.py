"""Rows of a two-dimensional access, cut into AXI bursts."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from vta_isa.machine import Machine
from vta_isa.microarch import burst_bytes
from vta_isa.registers import BASE_ALIGNMENT_BITS

ROWS_BITS = 16  # of y_size
ROW_BYTES = 16 + 12  # bits of the bytes of a row: x_size entries of at most a page


def burst_layout(machine: Machine) -> data.StructLayout:
    """``address`` in bytes, a multiple of the bus; ``len`` beats minus one."""
    return data.StructLayout({"address": machine.axi.addr_bits, "len": 8})


def base_bits(machine: Machine) -> int:
    """Bits of a base: it is a number of pages."""
    return machine.axi.addr_bits - BASE_ALIGNMENT_BITS


def based(base: Value, address: Value) -> Value:
    """The byte address ``base`` pages further."""
    in_page, page = address[:BASE_ALIGNMENT_BITS], address[BASE_ALIGNMENT_BITS:]
    return Cat(in_page, (page + base)[: len(base)])


class BurstSplitter(wiring.Component):
    """Presents the bursts of ``rows`` rows of ``row_bytes``, ``stride_bytes`` apart, in order.

    ``start`` in cycle s, in which no burst is presented, takes the inputs, which matter in no other
    cycle, and the first burst is presented in s + 1; each further one in the cycle after the one
    before was taken. ``last`` is high with the last burst. A burst ends at the row's end or at the
    next multiple of ``burst_bytes``, so none crosses 4 KiB. No rows: no burst.
    """

    def __init__(self, machine: Machine):
        self.machine = machine
        bits = machine.axi.addr_bits
        super().__init__(
            {
                "start": In(1),
                "address": In(bits),
                "row_bytes": In(bits),  # at least 1 where there are rows
                "stride_bytes": In(bits),
                "rows": In(ROWS_BITS),
                "burst": Out(stream.Signature(burst_layout(machine))),
                "last": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        machine = self.machine
        bits = machine.axi.addr_bits
        skipped = exact_log2(machine.bus_bytes)  # address bits inside a beat
        cut = exact_log2(burst_bytes(machine) // machine.bus_bytes)  # log2 of the most beats

        row = Signal(bits)  # byte address of the row
        size = Signal(ROW_BYTES)  # bytes of a row, less one
        stride = Signal(bits)
        rows = Signal(ROWS_BITS)  # the one in progress included
        beat = Signal(bits - skipped)  # first one of the burst presented
        # Last beat of the row, counted from the last cut before the burst: so far, and in which.
        last, cuts = Signal(cut), Signal(ROW_BYTES + 1 - cut - skipped)
        row_done, only = Signal(), Signal()
        next_row = Signal(bits)

        def last_beat(in_cut, more):
            """From the first byte of a row, less the bytes before its cut, and how many follow."""
            return Cat(last, cuts).eq((in_cut + more) >> skipped)

        m.d.comb += [
            row_done.eq(cuts == 0),
            self.burst.payload.address.eq(Cat(Const(0, skipped), beat)),
            self.burst.payload.len.eq(Mux(row_done, last - beat[:cut], ~beat[:cut])),
            only.eq(rows == 1),
            self.last.eq(row_done & only),
            # Outside of the conditions: sums must not wait for them.
            next_row.eq(row + stride),
        ]
        with m.If(self.burst.valid & self.burst.ready):
            with m.If(row_done):
                m.d.sync += [
                    row.eq(next_row),
                    beat.eq(next_row >> skipped),
                    last_beat(next_row[: cut + skipped], size),
                    rows.eq(rows - 1),
                    self.burst.valid.eq(~only),
                ]
            with m.Else():
                m.d.sync += [beat.eq(Cat(Const(0, cut), beat[cut:] + 1)), cuts.eq(cuts - 1)]
        with m.If(~self.burst.valid):  # with the start, too, which is there late in its cycle
            m.d.sync += [
                row.eq(self.address),
                size.eq(self.row_bytes - 1),
                stride.eq(self.stride_bytes),
                beat.eq(self.address >> skipped),
                # The short sum first, so that no long one waits for another.
                last_beat(self.address[: cut + skipped] - 1, self.row_bytes),
            ]
        with m.If(self.start):
            m.d.sync += [rows.eq(self.rows), self.burst.valid.eq(self.rows != 0)]
        return m
