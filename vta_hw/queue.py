"""A first-in first-out queue that holds exactly as many items as it says."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out


class Queue(wiring.Component):
    """A queue of ``depth`` items in a memory.

    An item pushed in cycle n is at the head of an empty queue in n + 1. The place of an item taken
    in n can be filled from n + 1: ``push.ready`` and ``pop.valid`` depend on registers only. One
    push and one pop per cycle. ``pop.payload`` is a register; the memory's synchronous read port
    has the item behind it, if there is one.
    """

    def __init__(self, shape, depth: int):
        self.shape = shape
        self.depth = depth
        super().__init__({"push": In(stream.Signature(shape)), "pop": Out(stream.Signature(shape))})

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = memory = Memory(shape=self.shape, depth=self.depth, init=[])
        write = memory.write_port()
        # An item pushed behind the only one is read in the cycle in which it is written.
        read = memory.read_port(transparent_for=(write,))

        level = Signal(range(self.depth + 1))
        few, full = Signal(init=1), Signal()  # at most one item; no room
        tail = Signal(range(self.depth))
        second = Signal(range(self.depth), init=1 % self.depth)  # place of the item behind the head
        pushed, popped = Signal(), Signal()

        def behind(place):
            return Mux(place == self.depth - 1, 0, place + 1)

        m.d.comb += [
            self.push.ready.eq(~full),
            pushed.eq(self.push.valid & self.push.ready),
            popped.eq(self.pop.valid & self.pop.ready),
            write.addr.eq(tail),
            write.data.eq(self.push.payload),
            write.en.eq(pushed),
            read.addr.eq(Mux(popped, behind(second), second)),
        ]
        # What is asked of the level, a cycle early.
        fewer, more = popped & ~pushed, pushed & ~popped
        m.d.sync += [
            level.eq(level + pushed - popped),
            self.pop.valid.eq(pushed | (self.pop.valid & ~(few & popped))),
            few.eq(Mux(few, ~(self.pop.valid & more), (level == 2) & fewer)),
            full.eq(Mux(full, ~popped, (level == self.depth - 1) & more)),
            second.eq(read.addr),
        ]
        with m.If(pushed):
            m.d.sync += tail.eq(behind(tail))
        with m.If(popped | ~self.pop.valid):
            m.d.sync += self.pop.payload.eq(Mux(few, self.push.payload, read.data))
        return m
