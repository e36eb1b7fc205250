"""Many wide counters in one memory and one adder."""

from collections.abc import Mapping
from functools import reduce
from operator import or_

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from vta_isa.registers import COUNTER_BITS

LATENCY = 2  # cycles from the memory's address to the sum


class CounterRead(wiring.Signature):
    """One counter is asked for; ``valid`` for one cycle, while ``request`` is held, brings it."""

    def __init__(self, counters: int):
        super().__init__(
            {
                "request": Out(1),
                "index": Out(range(counters)),
                "valid": In(1),
                "value": In(COUNTER_BITS),
            }
        )


class CounterBank(wiring.Component):
    """Counts what ``counts`` says in every cycle, one field per counter, in 64 bits each.

    ``clear`` in cycle n: every counter is what ``counts`` says in n. A small counter per field
    takes the counts as they come. One after the other, in rounds of one cycle per counter, they are
    added to the memory and begin again at zero. So a read waits for its turn, at most a round and
    LATENCY cycles, and brings all that was counted before LATENCY cycles before ``valid``.
    """

    def __init__(self, widths: Mapping[str, int]):
        assert len(widths) > LATENCY, "a sum must be written before its turn comes again"
        self.widths = dict(widths)
        super().__init__(
            {
                "clear": In(1),
                "counts": In(data.StructLayout(self.widths)),
                "read": In(CounterRead(len(widths))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        number = len(self.widths)
        m.submodules.memory = memory = Memory(shape=COUNTER_BITS, depth=number, init=[])
        old, new = memory.read_port(), memory.write_port()

        turn = Signal(range(number))
        # The same, one bit per counter: what picks a counter needs no decoding.
        turns = Signal(number, init=1)
        m.d.sync += [
            turn.eq(Mux(turns[-1], 0, turn + 1)),
            turns.eq(turns.rotate_left(1)),
        ]
        # What lies in the memory is of the launch before until its turn has come once.
        stale = Signal(range(number + 1))
        with m.If(self.clear):
            m.d.sync += stale.eq(number)
        with m.Elif(stale != 0):
            m.d.sync += stale.eq(stale - 1)

        # ---- the small counters: a round of the highest count fits ------------------------------
        small = []
        for mine, (name, width) in zip(turns, self.widths.items(), strict=True):
            count = Signal(width + (number - 1).bit_length(), name=f"{name}_small")
            m.d.sync += count.eq(Mux(self.clear | mine, 0, count) + self.counts[name])
            small.append(count)

        # ---- turn + 1: both addends are there, + 2: the sum -------------------------------------
        places = [Signal(range(number), name=f"place{i}") for i in range(LATENCY)]
        addend = Signal(max(len(count) for count in small))
        delayed = Signal.like(addend)
        was_stale = Signal()
        before = Signal(COUNTER_BITS)
        total = Signal(COUNTER_BITS)
        m.d.comb += [
            old.addr.eq(turn),
            old.en.eq(1),
            total.eq(before + delayed),
            new.addr.eq(places[1]),
            new.data.eq(total),
            new.en.eq(1),
        ]
        m.d.sync += [
            places[0].eq(turn),
            places[1].eq(places[0]),
            addend.eq(reduce(or_, (Mux(mine, c, 0) for mine, c in zip(turns, small, strict=True)))),
            delayed.eq(addend),
            was_stale.eq(stale != 0),
            before.eq(Mux(was_stale, 0, old.data)),
        ]

        m.d.comb += [
            self.read.valid.eq(self.read.request & (places[1] == self.read.index)),
            self.read.value.eq(total),
        ]
        return m
