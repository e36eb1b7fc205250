"""The register file: what a write changes, holes, and that every access is answered."""

from amaranth.hdl import Assert, Cat, Const, Cover, Module, Mux, Signal

from vta_hw.axi_lite import OKAY, SLVERR
from vta_hw.csr import Csr
from vta_isa.machine import load_machine
from vta_isa.registers import Access, register_map

from .axi import assume_sender_is_stable, sender_is_stable
from .proof import Mutant, Proof
from .surroundings import Surroundings
from .symbiyosys import Unbounded

ANSWER_CYCLES = 2  # a host that is ready for it waits so long, once everything has been sent


class CsrSpec(Surroundings):
    """A host that does what AXI4-Lite allows, and a copy of the fields that it can write.

    The copy is made from the table in another way than the registers are: the host's word goes
    through masks, bit by bit.
    """

    def elaborate(self, platform):
        m = Module()
        self.around(m)
        csr: Csr = self.part
        bus = csr.bus
        for channel, payload in (
            ("aw", [bus.awaddr]),
            ("w", [bus.wdata, bus.wstrb]),
            ("ar", [bus.araddr]),
        ):
            valid, ready = getattr(bus, f"{channel}valid"), getattr(bus, f"{channel}ready")
            assume_sender_is_stable(m, channel, valid, ready, payload)
        sender_is_stable(m, "b", bus.bvalid, bus.bready, [bus.bresp])
        sender_is_stable(m, "r", bus.rvalid, bus.rready, [bus.rdata, bus.rresp])
        self._writes(m)
        self._reads(m)
        return m

    def _writes(self, m: Module) -> None:
        csr, bus = self.part, self.part.bus
        has_address, has_data = Signal(), Signal()
        address, word, strobes = (Signal.like(x) for x in (bus.awaddr, bus.wdata, bus.wstrb))
        done = Signal()
        m.d.comb += [
            done.eq(has_address & has_data & (~bus.bvalid | bus.bready)),
            Assert(bus.awready == ~has_address),
            Assert(bus.wready == ~has_data),
        ]
        with m.If(done):
            m.d.sync += [has_address.eq(0), has_data.eq(0)]
        with m.If(bus.awvalid & bus.awready):
            m.d.sync += [has_address.eq(1), address.eq(bus.awaddr)]
        with m.If(bus.wvalid & bus.wready):
            m.d.sync += [has_data.eq(1), word.eq(bus.wdata), strobes.eq(bus.wstrb)]

        fields = [
            (register, field)
            for register in csr.registers
            for field in register.fields
            if field.access is not Access.READ_ONLY
        ]
        writable = {place for register, _ in fields for place in register.offsets}
        legal = (strobes == 0b1111) & Cat(address == place for place in sorted(writable)).any()
        answers, okay = Signal(), Signal()
        m.d.sync += [answers.eq(done), okay.eq(legal)]
        with m.If(answers):
            m.d.comb += Assert(bus.bvalid & (bus.bresp == Mux(okay, OKAY, SLVERR)))
        unasked = Signal()  # a response must have had its write
        m.d.sync += unasked.eq((unasked | done) & ~(bus.bvalid & bus.bready & ~done))
        with m.If(bus.bvalid):
            m.d.comb += Assert(unasked)

        for register, field in fields:
            name = register.signal(field)
            value = getattr(csr, name)
            mask = Signal(register.bits, name=f"{name}_mask")
            new = Cat([word] * register.words)
            for index, place in enumerate(register.offsets):
                with m.If(done & legal & (address == place)):
                    m.d.comb += mask.eq(0xFFFFFFFF << (32 * index))
            where = slice(field.low, field.low + field.width)
            before = Signal(field.width, name=f"{name}_expected", init=field.reset)
            match field.access:
                case Access.READ_WRITE:
                    after = (value & ~mask[where]) | (new[where] & mask[where])
                case Access.SELF_CLEARING:
                    after = new[where] & mask[where]
                case Access.WRITE_ONE_TO_CLEAR:
                    ones = new[where] & mask[where]
                    inside = getattr(csr, f"{name}_clear")
                    after = (value & ~ones & ~inside) | getattr(csr, f"{name}_set")
                    m.d.comb += [
                        Cover((value != 0) & (ones != 0)),
                        Cover((value != 0) & (mask != 0) & (ones == 0)),
                    ]
            m.d.sync += before.eq(after)
            m.d.comb += Assert(value == before)

        waited = Signal(range(ANSWER_CYCLES + 1))
        with m.If(has_address & has_data & bus.bready):
            m.d.sync += waited.eq(waited + 1)
            m.d.comb += Assert(waited < ANSWER_CYCLES)
        with m.Elif(~has_address | ~has_data):
            m.d.sync += waited.eq(0)
        m.d.comb += [
            Cover(bus.bvalid & (bus.bresp == OKAY)),
            Cover(bus.bvalid & (bus.bresp == SLVERR)),
        ]

    def _reads(self, m: Module) -> None:
        csr, bus = self.part, self.part.bus
        has_address, address = Signal(), Signal.like(bus.araddr)
        m.d.comb += Assert(bus.arready == ~has_address)
        known = Cat(
            address == place for register in csr.registers for place in register.offsets
        ).any()
        counted = Cat(
            address == place for register in csr.counted for place in register.offsets
        ).any()
        done = Signal()
        counter_is_there = csr.counters.valid if csr.counted else Const(0)
        m.d.comb += done.eq(
            has_address & (~bus.rvalid | bus.rready) & (~counted | counter_is_there)
        )
        with m.If(done):
            m.d.sync += has_address.eq(0)
        with m.If(bus.arvalid & bus.arready):
            m.d.sync += [has_address.eq(1), address.eq(bus.araddr)]

        fresh, hole = Signal(), Signal()
        m.d.sync += [fresh.eq(done), hole.eq(~known)]
        with m.If(fresh):
            m.d.comb += Assert(bus.rvalid & (bus.rresp == Mux(hole, SLVERR, OKAY)))
            with m.If(hole):
                m.d.comb += Assert(bus.rdata == 0)
        asked = Signal()
        m.d.sync += asked.eq((asked | done) & ~(bus.rvalid & bus.rready & ~done))
        with m.If(bus.rvalid):
            m.d.comb += Assert(asked)
        with m.If(has_address & counted):
            m.d.comb += Assert(csr.counters.request | bus.rvalid)
        m.d.comb += [
            Cover(fresh & hole),
            Cover(fresh & ~hole & (bus.rdata == 0x1234)),
        ]


MUTANTS = {
    "writing anything clears": Mutant(
        "cleared[name][where].eq(Mux(here, written, 0))",
        "cleared[name][where].eq(Mux(here, (1 << width) - 1, 0))",
    ),
    "clearing is stronger than setting": Mutant(
        'value.eq((value & ~gone) | getattr(self, f"{name}_set"))',
        'value.eq((value | getattr(self, f"{name}_set")) & ~gone)',
    ),
    "half a word is written, too": Mutant("here.eq(taken & whole &", "here.eq(taken &"),
    "a hole answers OKAY": Mutant("Mux(known, OKAY, SLVERR)", "OKAY"),
    "a hole is not answered": Mutant(
        "answered.eq(full & room),", "answered.eq(full & room & known),"
    ),
    "a response is withdrawn": Mutant("with m.Elif(bus.bready):", "with m.Else():"),
    "an answer is overwritten": Mutant("room.eq(~bus.rvalid | bus.rready),", "room.eq(1),"),
}

PROOFS = (
    Proof(
        name="registers",
        claims="Every access is answered within two cycles of a host that is ready, a counter's "
        "when its turn comes; an answer is stable while it waits. Where there is no register, and "
        "where a write has not four strobes, it is SLVERR, reads are 0 and writes change nothing. "
        "Fields change as their kind says, and never otherwise; one clears, zero does not, and "
        "setting is stronger.",
        component=Csr,
        spec=lambda csr: CsrSpec(csr(register_map(load_machine("tiny")))),
        method=Unbounded(),
        cover_cycles=8,
        mutant_cycles=8,
        mutants=MUTANTS,
    ),
)
