"""Which scratchpad entries the beats of a tile hold."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

SIZE_BITS = 16  # of x_size and y_size


class BeatWalker(wiring.Component):
    """Steps through the beats of a tile, rows in order, as they are on the bus.

    A beat has ``lanes`` *places*: entries, or, where an entry is wider than a beat, one place that
    is a part of an entry. ``start`` in cycle s takes the other inputs but ``lanes``, which stays as
    long as there are beats: ``first`` is the place in the scratchpad of the first datum, ``pitch``
    places lie between rows there, ``row_places`` are the data of a row, ``skip`` lanes of the first
    beat lie before the row, ``skip_step`` more of each further row's. From s + 1 on, while
    ``valid``, the outputs tell of one beat, and a cycle with ``step`` goes on to the next.
    """

    def __init__(self, place_bits: int, most_parts: int, most_lanes: int):
        self.place_bits = place_bits
        self.row_bits = SIZE_BITS + exact_log2(most_parts)
        self.most_lanes = most_lanes
        skip_bits = max(exact_log2(most_lanes), 1)
        super().__init__(
            {
                "start": In(1),
                "rows": In(SIZE_BITS),
                "first": In(place_bits),
                "pitch": In(place_bits),
                "row_places": In(self.row_bits),
                "skip": In(skip_bits),
                "skip_step": In(skip_bits),
                "lanes": In(range(most_lanes + 1)),
                "step": In(1),
                "valid": Out(1),
                "place": Out(place_bits),  # of lane 0; before the row where the beat begins there
                "used": Out(most_lanes),  # lanes that are data of the tile
                "last_of_row": Out(1),
                "last": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        rows = Signal(SIZE_BITS)  # the one in progress included
        left = Signal(self.row_bits + 1)  # places of the row from lane 0 on, skipped ones included
        skip = Signal.like(self.skip)  # in this beat
        row_skip, skip_step = Signal.like(skip), Signal.like(skip)
        next_row = Signal(self.place_bits)  # place of the first datum of the next row
        pitch, row_places = Signal.like(self.pitch), Signal.like(self.row_places)
        next_skip = Signal.like(skip)
        m.d.comb += [
            self.valid.eq(rows != 0),
            self.last_of_row.eq(left <= self.lanes),
            self.last.eq(self.last_of_row & (rows == 1)),
            self.used.eq(Cat((lane >= skip) & (lane < left) for lane in range(self.most_lanes))),
            next_skip.eq((row_skip + skip_step) & (self.lanes - 1)),
        ]
        with m.If(self.valid & self.step):
            m.d.sync += [
                self.place.eq(self.place + self.lanes),
                left.eq(left - self.lanes),
                skip.eq(0),
            ]
            with m.If(self.last_of_row):
                m.d.sync += [
                    self.place.eq(next_row - next_skip),
                    next_row.eq(next_row + pitch),
                    left.eq(row_places + next_skip),
                    skip.eq(next_skip),
                    row_skip.eq(next_skip),
                    rows.eq(rows - 1),
                ]
        with m.If(self.start):
            m.d.sync += [
                rows.eq(self.rows),
                self.place.eq(self.first - self.skip),
                next_row.eq(self.first + self.pitch),
                pitch.eq(self.pitch),
                row_places.eq(self.row_places),
                left.eq(self.row_places + self.skip),
                skip.eq(self.skip),
                row_skip.eq(self.skip),
                skip_step.eq(self.skip_step),
            ]
        return m
