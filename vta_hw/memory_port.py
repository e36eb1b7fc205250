"""The read side of DRAM: arbitration between fetch and the two loaders."""

from enum import IntEnum

from amaranth.hdl import Array, Module, Signal, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from vta_isa.machine import Machine
from vta_isa.microarch import read_window

from .axi import CACHEABLE, DATA_ACCESS, INCREMENTING, INSTRUCTION_ACCESS, Axi4Read
from .bursts import burst_layout
from .queue import Queue


class Client(IntEnum):
    """Who reads, in falling priority."""

    COMPUTE = 0
    FETCH = 1
    LOAD = 2


class ReadPort(wiring.Component):
    """Grants one burst per cycle to the first client that presents one.

    A grant (``ready`` of the client's request) in cycle g puts AR on the bus in g + 1. It needs
    fewer than ``axi.outstanding_reads`` bursts and fewer than ``read_window`` beats outstanding:
    granted before g and not on the bus before g; and AR not waiting for the memory. A beat on the
    bus in cycle b is in ``data`` in b + 1, with ``valid`` of the client it belongs to. RREADY is
    always high. ``failed`` is high with a beat whose response is not OKAY.
    """

    def __init__(self, machine: Machine):
        self.machine = machine
        axi = machine.axi
        super().__init__(
            {
                "requests": In(stream.Signature(burst_layout(machine))).array(len(Client)),
                "data": Out(axi.data_bits),
                "valid": Out(1).array(len(Client)),
                "failed": Out(1),
                "axi": Out(Axi4Read(axi.addr_bits, axi.data_bits)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        machine, axi = self.machine, self.axi
        window = read_window(machine)
        m.submodules.owners = owners = Queue(unsigned(2), machine.axi.outstanding_reads)

        waiting = Signal()  # AR is valid and not accepted in this cycle
        beats = Signal(range(window + 256))  # outstanding
        room = Signal()
        granted = Signal()
        client = Signal(Client)
        requests = Array(request.payload for request in self.requests)
        request = Signal(burst_layout(machine))

        m.d.comb += [
            waiting.eq(axi.arvalid & ~axi.arready),
            # One entry per outstanding burst: while there is room for another, it may be granted.
            room.eq(owners.push.ready & (beats < window) & ~waiting),
            request.eq(requests[client]),
            owners.push.valid.eq(granted),
            owners.push.payload.eq(client),
        ]
        for number in reversed(Client):
            with m.If(self.requests[number].valid):
                m.d.comb += [client.eq(number), granted.eq(room)]
        for number in Client:
            m.d.comb += self.requests[number].ready.eq(granted & (client == number))

        m.d.comb += [
            axi.arsize.eq(exact_log2(machine.bus_bytes)),
            axi.arburst.eq(INCREMENTING),
            axi.arcache.eq(CACHEABLE),
            axi.rready.eq(1),
        ]
        with m.If(~waiting):
            m.d.sync += axi.arvalid.eq(granted)
        with m.If(granted):
            m.d.sync += [
                axi.araddr.eq(request.address),
                axi.arlen.eq(request.len),
                axi.arprot.eq(DATA_ACCESS),
            ]
            with m.If(client == Client.FETCH):
                m.d.sync += axi.arprot.eq(INSTRUCTION_ACCESS)

        taken = Signal(range(257))
        m.d.comb += taken.eq(request.len + 1)
        with m.If(granted):
            m.d.sync += beats.eq(beats + taken - axi.rvalid)
        with m.Else():
            m.d.sync += beats.eq(beats - axi.rvalid)

        m.d.comb += owners.pop.ready.eq(axi.rvalid & axi.rlast)
        m.d.sync += [self.data.eq(axi.rdata), self.failed.eq(axi.rvalid & (axi.rresp != 0))]
        for number in Client:
            owned = owners.pop.valid & (owners.pop.payload == number)
            m.d.sync += self.valid[number].eq(axi.rvalid & owned)
        return m
