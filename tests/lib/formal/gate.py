"""The gate: a core that is stopped in the middle of anything leaves no AXI transfer undone."""

from amaranth.hdl import Assert, Assume, Cover, Module, Mux, Signal

from vta_hw.axi import OKAY
from vta_hw.gate import Gate
from vta_isa.machine import load_machine
from vta_isa.microarch import WRITE_AHEAD

from .axi import ADDRESS, assume_sender_is_stable, sender_is_stable
from .proof import Mutant, Proof
from .surroundings import Surroundings
from .symbiyosys import Unbounded

MACHINE = load_machine("tiny").replace(axi={"addr_bits": 16, "data_bits": 32})
READS = 3  # bursts that the core has under way at most
WRITES = 3  # that the memory leaves unanswered at most
LEN_BITS = 2  # of a burst: the longest has four beats


class GateSpec(Surroundings):
    """A core and a memory that do what AXI allows, and someone who stops the core at any time.

    The core keeps what the gate asks of it: the first beat of a burst comes after its address was
    taken, at most WRITE_AHEAD bursts are in that state, and it takes answers at once. While the
    gate resets it, it may do anything; afterwards it knows nothing of what was before.
    """

    def elaborate(self, platform):
        m = Module()
        self.around(m)
        gate = self.part
        core_read, core_write, read, write = (
            gate.core_read,
            gate.core_write,
            gate.read,
            gate.write,
        )
        running = ~gate.reset

        # ---- the core ---------------------------------------------------------------------------
        for port, channel, fields in (
            (core_read, "ar", ADDRESS),
            (core_write, "aw", ADDRESS),
            (core_write, "w", ("data", "strb", "last")),
        ):
            valid, ready = getattr(port, f"{channel}valid"), getattr(port, f"{channel}ready")
            payload = [getattr(port, channel + field) for field in fields]
            # In reset, nothing is held: what was offered may be gone afterwards.
            assume_sender_is_stable(m, f"core_{channel}", valid & running, ready, payload, running)
        m.d.comb += [
            Assume(core_read.rready),
            Assume(core_write.bready),
            Assume(core_read.arlen >> LEN_BITS == 0),
            Assume(core_write.awlen >> LEN_BITS == 0),
        ]

        # ---- what the memory has been promised, oldest burst first ------------------------------
        assert WRITE_AHEAD == 2
        owed = [Signal(LEN_BITS + 1, name=f"beats_owed{i}") for i in range(2)]
        aw, w = write.awvalid & write.awready, write.wvalid & write.wready
        ends = w & (owed[0] == 1)
        rest = Signal(LEN_BITS + 1)
        m.d.comb += rest.eq(Mux(ends, owed[1], owed[0] - w))
        behind = Mux(ends, 0, owed[1])
        new = write.awlen[:LEN_BITS] + 1
        m.d.sync += [
            owed[0].eq(Mux(aw & (rest == 0), new, rest)),
            owed[1].eq(Mux(aw & (rest != 0), new, behind)),
        ]
        unanswered = Signal(range(WRITES + 1))  # bursts all of whose beats are there
        answered = write.bvalid & write.bready
        m.d.sync += unanswered.eq(unanswered + ends - answered)
        reads = Signal(range(READS + 1))
        ar = read.arvalid & read.arready
        m.d.sync += reads.eq(reads + ar - (read.rvalid & read.rready & read.rlast))
        m.d.comb += [
            Assume(~write.bvalid | (unanswered != 0)),
            Assume(~read.rvalid | (reads != 0)),
            Assume(~(core_read.arvalid & running) | (reads != READS)),
            Assume(~write.wready | (unanswered != WRITES)),
        ]
        with m.If(running):
            m.d.comb += [
                Assume(~core_write.wvalid | (owed[0] != 0)),
                Assume(~core_write.wvalid | (core_write.wlast == (owed[0] == 1))),
                Assume(~core_write.awvalid | (owed[1] == 0)),
            ]

        # ---- what must hold ---------------------------------------------------------------------
        for port, channel, fields in (
            (read, "ar", ADDRESS),
            (write, "aw", ADDRESS),
            (write, "w", ("data", "strb", "last")),
        ):
            valid, ready = getattr(port, f"{channel}valid"), getattr(port, f"{channel}ready")
            payload = [getattr(port, channel + field) for field in fields]
            sender_is_stable(m, channel, valid, ready, payload)
        m.d.comb += [
            Assert(read.rready & write.bready),
            Assert(~write.wvalid | ((owed[0] != 0) & (write.wlast == (owed[0] == 1)))),
            Assert(gate.read_failed == (read.rvalid & (read.rresp != OKAY))),
            Assert(gate.write_failed == (write.bvalid & (write.bresp != OKAY))),
        ]
        idle = (owed[0] == 0) & (unanswered == 0) & (reads == 0)
        was_reset, was_idle, was_waiting, was_stopped = (Signal() for _ in range(4))
        waiting = (
            (read.arvalid & ~read.arready)
            | (write.awvalid & ~write.awready)
            | (write.wvalid & ~write.wready)
        )
        m.d.sync += [
            was_reset.eq(gate.reset),
            was_idle.eq(idle),
            was_waiting.eq(waiting),
            was_stopped.eq(gate.stopped & ~gate.reset),
        ]
        with m.If(gate.reset):
            m.d.comb += [
                # The core is cut off, and what it owed is paid with beats that write nothing.
                Assert(~(core_read.arready | core_write.awready | core_write.wready)),
                Assert(~(core_read.rvalid | core_write.bvalid)),
                Assert(~(read.arvalid | write.awvalid)),
                Assert(write.wvalid == (owed[0] != 0)),
                Assert(~write.wvalid | (write.wstrb == 0)),
                Assert(~(was_reset & was_idle)),  # it opens when nothing is left
            ]
        with m.Elif(was_reset):
            m.d.comb += Assert(idle & was_idle & ~gate.stopped)  # and not before
        with m.Elif(~gate.stopped):
            m.d.comb += [
                Assert(read.arvalid == core_read.arvalid),
                Assert(write.awvalid == core_write.awvalid),
                Assert(write.wvalid == core_write.wvalid),
                Assert(core_read.rvalid == read.rvalid),
                Assert(core_write.bvalid == write.bvalid),
            ]
        # Nothing but what waits for READY holds the reset up.
        offers = read.arvalid | write.awvalid | write.wvalid
        offered = Signal()
        m.d.sync += offered.eq(offers)
        with m.If(was_stopped & ~was_waiting):
            m.d.comb += Assert(gate.reset | ~offers)
        with m.If(was_stopped & ~offered):
            m.d.comb += Assert(gate.reset)
        m.d.comb += [
            Cover(gate.reset & (owed[1] != 0) & (owed[0] == 2)),
            Cover(was_reset & ~gate.reset & core_write.awvalid),
            Cover(gate.stopped & ~gate.reset & waiting & (reads == 2)),
            Cover(gate.reset & (reads == 0) & (unanswered != 0)),
        ]
        return m


MUTANTS = {
    "an address is withdrawn": Mutant(
        'valid.eq(getattr(core, f"{channel}valid") & (free | waiting))',
        'valid.eq(getattr(core, f"{channel}valid") & free)',
    ),
    "closes while something waits": Mutant(
        "~free & ~(open_ar | open_aw | open_w)", "~free & ~(open_ar | open_aw)"
    ),
    "opens before the last answer": Mutant(
        "(reads == 0) & (unanswered == 0) & (owed[0] == 0)", "(reads == 0) & (owed[0] == 0)"
    ),
    "opens before the last read beat": Mutant("read.rready & read.rlast)", "read.rready)"),
    "the second burst is forgotten": Mutant(
        "less[0].eq(owed[1]), less[1].eq(0)", "less[0].eq(0), less[1].eq(0)"
    ),
    "the last beat is not marked": Mutant(
        "Mux(ending, owed[0] == 1, self.core_write.wlast)", "self.core_write.wlast"
    ),
    "owed beats write": Mutant("Mux(ending, 0, self.core_write.wstrb)", "self.core_write.wstrb"),
    "the core sees answers in reset": Mutant("read.rvalid & ~ending", "read.rvalid"),
}


PROOFS = (
    Proof(
        name="gate",
        claims="Whenever the core is stopped: no VALID is withdrawn and no payload changes; every "
        "burst that was begun is ended with its exact number of beats, WLAST with the last, and "
        "without strobes; the core is cut off; the gate opens when the last response is there, not "
        "before, and nothing but the memory can hold it up.",
        component=Gate,
        spec=lambda gate: GateSpec(gate(MACHINE)),
        method=Unbounded(),
        cover_cycles=14,
        mutant_cycles=12,
        mutants=MUTANTS,
    ),
)
