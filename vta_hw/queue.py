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
        tail = Signal(range(self.depth))
        second = Signal(range(self.depth), init=1 % self.depth)  # place of the item behind the head
        pushed, popped = Signal(), Signal()

        def behind(place):
            return Mux(place == self.depth - 1, 0, place + 1)

        m.d.comb += [
            self.push.ready.eq(level != self.depth),
            self.pop.valid.eq(level != 0),
            pushed.eq(self.push.valid & self.push.ready),
            popped.eq(self.pop.valid & self.pop.ready),
            write.addr.eq(tail),
            write.data.eq(self.push.payload),
            write.en.eq(pushed),
            read.addr.eq(Mux(popped, behind(second), second)),
        ]
        m.d.sync += [level.eq(level + pushed - popped), second.eq(read.addr)]
        with m.If(pushed):
            m.d.sync += tail.eq(behind(tail))
        with m.If(level == 0):
            m.d.sync += self.pop.payload.eq(self.push.payload)
        with m.Elif(popped):
            m.d.sync += self.pop.payload.eq(Mux(level == 1, self.push.payload, read.data))
        return m
