"""The write side of memory: what a STORE puts on AW and W."""

from amaranth.hdl import Assert, Assume, Cover, Module, Mux, Signal
from amaranth.lib import data

from vta_hw.layouts import struct
from vta_hw.store import Store
from vta_isa.enums import Opcode
from vta_isa.insn import MEM
from vta_isa.machine import load_machine
from vta_isa.microarch import PAGE_BYTES, WRITE_AHEAD

from .axi import ADDRESS, assume_sender_is_stable, sender_is_stable
from .proof import Mutant, Proof
from .surroundings import Surroundings
from .symbiyosys import Bounded

# Entries of half a beat, bursts of two beats.
MACHINE = load_machine("tiny").replace(
    axi={"addr_bits": 16, "data_bits": 64, "burst_beats": 2},
)
COUNT_BITS = 3  # of what a STORE counts: entries of a row, rows, distances


class StoreSpec(Surroundings):
    """STOREs of small tiles anywhere, tokens at any time, a memory that does what AXI allows."""

    def elaborate(self, platform):
        m = Module()
        self.around(m)
        store: Store = self.part
        axi = store.axi
        insn = data.View(struct(MEM), store.insns.payload)
        sent = [store.insns.payload]
        assume_sender_is_stable(m, "insns", store.insns.valid, store.insns.ready, sent)
        m.d.comb += [
            Assume(insn.opcode == Opcode.STORE),
            Assume(insn.x_size >> COUNT_BITS == 0),
            Assume(insn.y_size >> COUNT_BITS == 0),
        ]

        # ---- bursts that have their address and not all their beats, oldest first ---------------
        assert WRITE_AHEAD == 2
        owed = [Signal(9, name=f"owed{i}") for i in range(2)]
        aw, w = axi.awvalid & axi.awready, axi.wvalid & axi.wready
        ends = w & (owed[0] == 1)
        rest = Signal(9)
        m.d.comb += rest.eq(Mux(ends, owed[1], owed[0] - w))
        m.d.sync += [
            owed[0].eq(Mux(aw & (rest == 0), axi.awlen + 1, rest)),
            owed[1].eq(Mux(aw & (rest != 0), axi.awlen + 1, Mux(ends, 0, owed[1]))),
        ]
        unanswered = Signal(8)
        m.d.sync += unanswered.eq(unanswered + ends - axi.bvalid)
        m.d.comb += [
            Assume(~axi.bvalid | (unanswered != 0)),
            Assume(~axi.wready | (unanswered != 255)),
        ]

        for channel, fields in (("aw", ADDRESS), ("w", ("data", "strb", "last"))):
            valid, ready = getattr(axi, f"{channel}valid"), getattr(axi, f"{channel}ready")
            payload = [getattr(axi, channel + field) for field in fields]
            sender_is_stable(m, channel, valid, ready, payload)
        several = Signal()  # rows of several entries
        with m.If(store.start):
            m.d.sync += several.eq((insn.x_size > 1) & (insn.y_size > 1))
        last = Signal(MACHINE.axi.addr_bits + 1)
        m.d.comb += [
            last.eq(axi.awaddr + (axi.awlen + 1) * MACHINE.bus_bytes - 1),
            Assert(axi.bready),
            Assert(~axi.awvalid | (axi.awaddr // PAGE_BYTES == last // PAGE_BYTES)),
            # This is what the gate asks of the core.
            Assert(~axi.awvalid | (owed[1] == 0)),
            Assert(~axi.wvalid | (owed[0] != 0)),
            Assert(~axi.wvalid | (axi.wlast == (owed[0] == 1))),
            # Tokens go out when all is in memory.
            Assert(~store.end | ((owed[0] == 0) & (unanswered == 0))),
            Cover(store.end & several),
            Cover((owed[1] != 0) & axi.wvalid & ~axi.wready),
        ]
        return m


MUTANTS = {
    "data goes before its address": Mutant("eq(full & (ahead != 0))", "eq(full)"),
    "too many bursts ahead": Mutant("full & (ahead != WRITE_AHEAD)", "full"),
    "a beat moves on before it is taken": Mutant("advance.eq(~full | taken)", "advance.eq(1)"),
    "an address moves on before it is taken": Mutant("ready.eq(~full | aw_taken)", "ready.eq(1)"),
    "only its row's end ends a burst": Mutant("| (beat == burst_beats - 1)", ""),
    "ends before the response": Mutant("| (unanswered != 0)", ""),
}

PROOFS = tuple(
    Proof(
        name=f"store, {cycles} cycles",
        claims="AW and W wait unchanged; no burst crosses 4 KiB; every burst has as many beats as "
        "its address said, WLAST with the last, the first one behind the address; at most two "
        "bursts have their address and not all their data; a STORE ends behind its last response.",
        component=Store,
        spec=lambda store: StoreSpec(store(MACHINE)),
        method=Bounded(cycles),
        cover_cycles=16,
        mutant_cycles=cycles,
        mutants=mutants,
        slow=slow,
    )
    for cycles, mutants, slow in ((10, MUTANTS, False), (14, {}, True))
)
