"""Token queues lose no token and invent none."""

from collections.abc import Mapping
from types import MappingProxyType

from amaranth.hdl import Assert, Cover, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from vta_hw.tokens import TokenQueue

from .proof import Mutant, Proof
from .symbiyosys import Unbounded


class TokenQueueSpec(wiring.Component):
    """Counts what went in and what came out, from the outside."""

    push: In(1)
    pop: In(1)

    def __init__(self, queue: TokenQueue):
        self.queue = queue
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        m.submodules.queue = queue = self.queue
        inside = Signal(range(queue.depth + 2))  # pushed and not yet popped
        pushed, popped = self.push & ~queue.full, self.pop & ~queue.empty
        m.d.comb += [
            queue.push.eq(self.push),
            queue.pop.eq(self.pop),
            Assert(inside <= queue.depth),
            Assert(queue.empty == (inside == 0)),
            Assert(queue.full == (inside == queue.depth)),
            Cover(popped & (inside == min(queue.depth, 3))),
        ]
        if queue.depth > 1:
            m.d.comb += Cover(pushed & popped)
        m.d.sync += inside.eq(inside + pushed - popped)
        return m


MUTANTS = {
    "pushes into a full queue count": Mutant(
        "pushed.eq(self.push & ~self.full)", "pushed.eq(self.push)"
    ),
    "pops from an empty queue count": Mutant(
        "popped.eq(self.pop & ~self.empty)", "popped.eq(self.pop)"
    ),
    "full one token early": Mutant("count == self.depth - 1", "count >= self.depth - 2"),
    "a push beside a pop is lost": Mutant(
        "pushed.eq(self.push & ~self.full)", "pushed.eq(self.push & ~self.pop & ~self.full)"
    ),
}


def _proof(depth: int, mutants: Mapping[str, Mutant] = MappingProxyType({})) -> Proof:
    return Proof(
        name=f"token queue, {depth} deep",
        claims="No token is lost or invented; full and empty are right in every cycle.",
        component=TokenQueue,
        spec=lambda queue: TokenQueueSpec(queue(depth)),
        method=Unbounded(),
        cover_cycles=min(2 * depth, 20) + 3,
        mutant_cycles=2 * depth + 3,
        mutants=mutants,
    )


PROOFS = (_proof(1), _proof(3, MUTANTS), _proof(1024))
