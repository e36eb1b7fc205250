"""The life of an instruction in its stage: start, run, end, with its tokens."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from vta_isa.insn import FINISH, INSN_BITS
from vta_isa.microarch import LOAD_SETUP

from .layouts import struct


class Consumer(wiring.Signature):
    """The end of a token queue from which tokens are taken."""

    def __init__(self):
        super().__init__({"empty": In(1), "pop": Out(1)})


class Producer(wiring.Signature):
    """The end of a token queue at which tokens are put in."""

    def __init__(self):
        super().__init__({"full": In(1), "push": Out(1)})


class StageState(wiring.Signature):
    """What a stage is doing in this cycle; none of them: no instruction is in its queue."""

    def __init__(self):
        super().__init__(
            {
                "runs": Out(1),  # from the start of an instruction to its end, both included
                "setup": Out(1),  # the first LOAD_SETUP cycles of that
                "late": Out(1),  # the work was done before, there is no room for its tokens
                "waits_prev": Out(1),  # the head lacks the token of the stage before
                "waits_next": Out(1),  # the head lacks the token of the stage behind, only
            }
        )


class StageControl(wiring.Component):
    """Starts the head of the command queue when it may, and ends it when its work is done.

    ``start`` is high in the cycle s in which the stage is free, the head is valid and every token
    it asks for is there; the tokens are consumed and the head leaves the queue in s.
    ``insns.payload`` is the instruction only in s: whoever executes it keeps what it needs. From s
    + 1 on ``running`` (an input) says that the work is not done. In the first cycle in which it is
    low and every queue to push into has room, the tokens are pushed and ``end`` is high; the next
    instruction may start in the cycle after. So nothing overlaps in a stage, and an instruction
    that nobody works on takes two cycles. A flag without a queue is tied to an ``empty`` and a
    ``full`` of 0.
    """

    insns: In(stream.Signature(INSN_BITS))
    from_prev: Out(Consumer())
    from_next: Out(Consumer())
    to_prev: Out(Producer())
    to_next: Out(Producer())
    start: Out(1)
    running: In(1)
    end: Out(1)
    state: Out(StageState())

    def elaborate(self, platform):
        m = Module()
        head = data.View(struct(FINISH), self.insns.payload)
        busy = Signal()
        push_prev, push_next = Signal(), Signal()

        no_prev = head.pop_prev & self.from_prev.empty
        no_next = head.pop_next & self.from_next.empty
        missing = no_prev | no_next
        waits = ~busy & self.insns.valid
        blocked = (push_prev & self.to_prev.full) | (push_next & self.to_next.full)
        m.d.comb += [
            self.start.eq(~busy & self.insns.valid & ~missing),
            self.insns.ready.eq(self.start),
            self.from_prev.pop.eq(self.start & head.pop_prev),
            self.from_next.pop.eq(self.start & head.pop_next),
            self.end.eq(busy & ~self.running & ~blocked),
            self.to_prev.push.eq(self.end & push_prev),
            self.to_next.push.eq(self.end & push_next),
        ]
        with m.If(self.start):
            m.d.sync += [busy.eq(1), push_prev.eq(head.push_prev), push_next.eq(head.push_next)]
        with m.Elif(self.end):
            m.d.sync += busy.eq(0)

        started, late = Signal(LOAD_SETUP - 1), Signal()  # so many cycles ago
        m.d.sync += [
            started.eq(Cat(self.start, started)),
            late.eq(busy & ~self.running & ~self.end),
        ]
        m.d.comb += [
            self.state.runs.eq(self.start | busy),
            self.state.setup.eq(self.start | started.any()),
            self.state.late.eq(late),
            self.state.waits_prev.eq(waits & no_prev),
            self.state.waits_next.eq(waits & no_next & ~no_prev),
        ]
        return m
