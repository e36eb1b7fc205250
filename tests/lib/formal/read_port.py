"""The read port: AR, and which client a beat belongs to."""

from amaranth.hdl import Array, Assert, Assume, Cat, Cover, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from vta_hw.axi import OKAY
from vta_hw.memory_port import Client, ReadPort
from vta_isa.machine import load_machine
from vta_isa.microarch import PAGE_BYTES, read_window

from .axi import ADDRESS, sender_is_stable
from .proof import Mutant, Proof
from .symbiyosys import Bounded, Induction

MACHINE = load_machine("tiny").replace(
    axi={"addr_bits": 16, "data_bits": 32, "outstanding_reads": 2}
)
BURSTS = MACHINE.axi.outstanding_reads


class _AnyRequests(wiring.Component):
    """Clients that ask for anything within a page, and a memory that does anything."""

    def __init__(self, port: ReadPort):
        self.port = port
        axi = MACHINE.axi
        super().__init__(
            {
                "asks": In(len(Client)),
                "addresses": In(axi.addr_bits).array(len(Client)),
                "lens": In(8).array(len(Client)),
                "arready": In(1),
                "rvalid": In(1),
                "rlast": In(1),
                "rdata": In(axi.data_bits),
                "rresp": In(2),
            }
        )

    def _port(self, m: Module) -> tuple[Value, Value, Value]:
        """Whether a request is granted, whose, and whether AR waits."""
        m.submodules.port = port = self.port
        axi = port.axi
        m.d.comb += [
            axi.arready.eq(self.arready),
            axi.rvalid.eq(self.rvalid),
            axi.rlast.eq(self.rlast),
            axi.rdata.eq(self.rdata),
            axi.rresp.eq(self.rresp),
        ]
        for client in Client:
            request = port.requests[client]
            address, last = request.payload.address, Signal(MACHINE.axi.addr_bits + 1)
            m.d.comb += [
                request.valid.eq(self.asks[client]),
                address.eq(self.addresses[client] & -MACHINE.bus_bytes),
                request.payload.len.eq(self.lens[client]),
                last.eq(address + (request.payload.len + 1) * MACHINE.bus_bytes - 1),
                Assume(address // PAGE_BYTES == last // PAGE_BYTES),
            ]

        ready = Cat(request.ready for request in port.requests)
        granted, client = Signal(), Signal(Client)
        for number in reversed(Client):
            with m.If(self.asks[number]):
                m.d.comb += client.eq(number)
        m.d.comb += granted.eq(ready.any())
        return granted, client, axi.arvalid & ~axi.arready


class AddressSpec(_AnyRequests):
    """What AXI asks of AR, whatever the memory does."""

    def elaborate(self, platform):
        m = Module()
        granted, client, waiting = self._port(m)
        port, axi = self.port, self.port.axi
        ready = Cat(request.ready for request in port.requests)
        with m.If(granted):
            m.d.comb += Assert(self.asks.any() & (ready == 1 << client))

        fresh, address, beats_asked = Signal(), Signal(MACHINE.axi.addr_bits), Signal(8)
        chosen = Array(request.payload for request in port.requests)[client]
        m.d.sync += [fresh.eq(granted), address.eq(chosen.address), beats_asked.eq(chosen.len)]
        was_waiting = Signal()
        m.d.sync += was_waiting.eq(waiting)
        last = Signal(MACHINE.axi.addr_bits + 1)
        m.d.comb += [
            last.eq(axi.araddr + (axi.arlen + 1) * MACHINE.bus_bytes - 1),
            Assert(axi.rready),
            Assert(axi.arvalid == (fresh | was_waiting)),
            Assert(~axi.arvalid | (axi.araddr // PAGE_BYTES == last // PAGE_BYTES)),
            Cover(waiting & self.asks.any()),
            Cover(fresh & (axi.arlen == 255)),
        ]
        with m.If(fresh):
            m.d.comb += Assert((axi.araddr == address) & (axi.arlen == beats_asked))
        payload = [getattr(axi, f"ar{field}") for field in ADDRESS]
        sender_is_stable(m, "ar", axi.arvalid, axi.arready, payload)
        return m


class BeatSpec(_AnyRequests):
    """Which client a beat belongs to, and how much is under way.

    The memory sends beats in order of the addresses, whenever it likes, with RLAST where it
    belongs.
    """

    def elaborate(self, platform):
        m = Module()
        granted, client, waiting = self._port(m)
        port, axi = self.port, self.port.axi

        # ---- bursts granted and not yet received, oldest first ----------------------------------
        owner = [Signal(Client, name=f"owner{i}") for i in range(BURSTS)]
        left = [Signal(9, name=f"left{i}") for i in range(BURSTS)]  # beats; 0: no burst
        assert BURSTS == 2
        beats = left[0] + left[1]
        length = Array(request.payload.len for request in port.requests)[client] + 1
        ends = self.rvalid & (left[0] == 1)
        rest = left[0] - self.rvalid
        m.d.sync += left[0].eq(rest)
        with m.If(ends):
            m.d.sync += [left[0].eq(left[1]), owner[0].eq(owner[1]), left[1].eq(0)]
        with m.If(granted):
            with m.If((rest == 0) & (left[1] == 0)):
                m.d.sync += [left[0].eq(length), owner[0].eq(client)]
            with m.Elif(ends):
                m.d.sync += [left[0].eq(left[1]), left[1].eq(length), owner[1].eq(client)]
            with m.Else():
                m.d.sync += [left[1].eq(length), owner[1].eq(client)]
        on_bus = Signal(range(BURSTS + 1))  # bursts whose AR was taken
        m.d.sync += on_bus.eq(on_bus + (axi.arvalid & axi.arready) - ends)
        room = (left[1] == 0) & (beats < read_window(MACHINE)) & ~waiting
        m.d.comb += [
            Assume(~self.rvalid | (on_bus != 0)),
            Assume(self.rlast == (left[0] == 1)),
            # Neither more than allowed, nor less than there is room for.
            Assert(granted == (self.asks.any() & room)),
        ]

        # ---- R ----------------------------------------------------------------------------------
        belongs, data, bad = Signal(len(Client)), Signal.like(self.rdata), Signal()
        m.d.sync += [
            belongs.eq(self.rvalid << owner[0]),
            data.eq(self.rdata),
            bad.eq(self.rvalid & (self.rresp != OKAY)),
        ]
        m.d.comb += [
            Assert(Cat(port.valid) == belongs),
            Assert(port.failed == bad),
            Cover((left[1] != 0) & (owner[0] != owner[1]) & ends & (left[1] == 3)),
        ]
        with m.If(belongs.any()):
            m.d.comb += Assert(port.data == data)
        return m


ADDRESS_MUTANTS = {
    "AR changes while it waits": Mutant("(beats < window) & ~waiting", "(beats < window)"),
    "AR is withdrawn": Mutant("with m.If(~waiting):", "with m.If(1):"),
    "the priority is reversed": Mutant("for number in reversed(Client):", "for number in Client:"),
}
BEAT_MUTANTS = {
    "a burst ends with its first beat": Mutant("axi.rvalid & axi.rlast", "axi.rvalid"),
    "one burst too many": Mutant("room.eq(owners.push.ready & ", "room.eq("),
    "more beats than the window": Mutant("(beats < window)", "(beats <= window)"),
    "a response is dropped": Mutant("axi.rvalid & (axi.rresp != 0)", "axi.rvalid & axi.rresp[0]"),
}


def _beats(cycles: int, slow: bool) -> Proof:
    return Proof(
        name=f"read data, {cycles} cycles",
        claims="As many bursts and beats are under way as the limits allow, no more; requests are "
        "granted as early as that. Every beat reaches the client that asked for it, with its "
        "response.",
        component=ReadPort,
        spec=lambda port: BeatSpec(port(MACHINE)),
        method=Bounded(cycles),
        cover_cycles=14,
        mutant_cycles=cycles,
        mutants={} if slow else BEAT_MUTANTS,
        slow=slow,
    )


PROOFS = (
    Proof(
        name="read address",
        claims="AR waits unchanged; it is the request that was granted, a cycle later, the first "
        "by priority. No burst crosses 4 KiB where no request does. RREADY is always high.",
        component=ReadPort,
        spec=lambda port: AddressSpec(port(MACHINE)),
        method=Induction(2),
        cover_cycles=6,
        mutant_cycles=6,
        mutants=ADDRESS_MUTANTS,
    ),
    _beats(8, slow=False),
    _beats(20, slow=True),
)
