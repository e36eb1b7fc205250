"""Queues keep every item, unchanged and in order."""

from collections.abc import Mapping
from types import MappingProxyType

from amaranth.hdl import Assert, Cover, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from vta_hw.queue import Queue

from .proof import Mutant, Proof
from .symbiyosys import Unbounded

BITS = 2  # of a payload


class QueueSpec(wiring.Component):
    """Follows one item, any one: ``mark`` chooses it as it goes in.

    Whatever holds for an item nobody chose in particular holds for all of them.
    """

    push: In(1)
    payload: In(BITS)
    mark: In(1)
    pop: In(1)

    def __init__(self, queue: Queue):
        self.queue = queue
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        m.submodules.queue = queue = self.queue
        inside = Signal(range(queue.depth + 2))
        pushed, popped = Signal(), Signal()
        m.d.comb += [
            queue.push.valid.eq(self.push),
            queue.push.payload.eq(self.payload),
            queue.pop.ready.eq(self.pop),
            pushed.eq(self.push & queue.push.ready),
            popped.eq(self.pop & queue.pop.valid),
        ]
        m.d.sync += inside.eq(inside + pushed - popped)

        marked, word = Signal(), Signal(BITS)
        ahead = Signal(range(queue.depth + 1))  # items that leave before the marked one
        with m.If(~marked & pushed & self.mark):
            m.d.sync += [marked.eq(1), word.eq(self.payload), ahead.eq(inside - popped)]
        with m.If(marked & popped):
            m.d.sync += [ahead.eq(ahead - 1), marked.eq(ahead != 0)]

        stalled, head = Signal(), Signal(BITS)
        was_full = Signal()
        m.d.sync += [stalled.eq(queue.pop.valid & ~self.pop), head.eq(queue.pop.payload)]
        with m.If(~queue.push.ready):
            m.d.sync += was_full.eq(1)

        m.d.comb += [
            # All places are used, and an item is there in the cycle after it went in.
            Assert(queue.push.ready == (inside != queue.depth)),
            Assert(queue.pop.valid == (inside != 0)),
            Cover(was_full & ~queue.pop.valid),
            Cover(marked & popped & (ahead == 0) & (word == 2)),
        ]
        with m.If(marked & (ahead == 0)):
            m.d.comb += Assert(queue.pop.payload == word)
        with m.If(stalled):
            m.d.comb += Assert(queue.pop.valid & (queue.pop.payload == head))
        return m


MUTANTS = {
    "one place is never used": Mutant("level == self.depth - 1", "level >= self.depth - 2"),
    "the tail moves on without a push": Mutant("with m.If(pushed)", "with m.If(self.push.valid)"),
    "the word written is not the word read": Mutant("transparent_for=(write,)", ""),
    "the next head is not yet read": Mutant(
        "Mux(few, self.push.payload", "Mux(level <= 2, self.push.payload"
    ),
    "the head changes while it waits": Mutant(
        "with m.If(popped | ~self.pop.valid)", "with m.If(popped | ~popped)"
    ),
}


def _proof(
    depth: int, mutants: Mapping[str, Mutant] = MappingProxyType({}), slow: bool = False
) -> Proof:
    return Proof(
        name=f"queue, {depth} deep",
        claims="Every item comes out once, unchanged and in order; the head is stable while it "
        "waits; all places are used.",
        component=Queue,
        spec=lambda queue: QueueSpec(queue(BITS, depth)),
        method=Unbounded(),
        cover_cycles=2 * depth + 3,
        mutant_cycles=2 * depth + 4,
        mutants=mutants,
        slow=slow,
    )


PROOFS = (_proof(1), _proof(2), _proof(3, MUTANTS), _proof(8, slow=True))
