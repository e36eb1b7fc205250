"""Reads the instruction stream and deals it out to the command queues."""

from enum import IntEnum

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from vta_isa.enums import Buffer, Opcode
from vta_isa.insn import INSN_BITS, INSN_BYTES, layouts
from vta_isa.machine import Machine
from vta_isa.microarch import BUFFER_CHUNKS, CHUNK_INSNS

from .bursts import BurstSplitter, burst_layout
from .layouts import Views

COUNT_BITS = 32  # of the number of instructions


class Lane(IntEnum):
    """Index of each command queue."""

    LOAD = 0
    COMPUTE = 1
    STORE = 2


_route = data.StructLayout({"load": 1, "store": 1})  # to which queue; neither: compute


class Fetch(wiring.Component):
    """Reads and dispatches ``insn_count`` instructions from ``insn_address``, a multiple of 16.

    ``start`` in cycle 0; the first chunk (an aligned 256-byte block, or what the stream touches of
    it) is presented in 1. The buffer has two halves; chunk k + 1 is presented two cycles after
    the last grant of chunk k and the dispatch of the last instruction of chunk k - 1. A beat
    on the bus in cycle b is ``data`` in b + 1, written then, and what it completes is dispatched
    from b + 2 on: one instruction per cycle, in order, held back while the queue it belongs to is
    full. ``busy`` from 1 until the last one is dispatched.
    """

    def __init__(self, machine: Machine):
        self.machine = machine
        super().__init__(
            {
                "start": In(1),
                "insn_address": In(machine.axi.addr_bits),
                "insn_count": In(COUNT_BITS),
                "request": Out(stream.Signature(burst_layout(machine))),
                "data": In(machine.axi.data_bits),
                "valid": In(1),
                "insns": Out(stream.Signature(INSN_BITS)).array(len(Lane)),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        self._request_chunks(m)
        self._dispatch(m)
        return m

    def _request_chunks(self, m: Module) -> None:
        machine = self.machine
        m.submodules.splitter = splitter = BurstSplitter(machine)
        wiring.connect(m, splitter.burst, wiring.flipped(self.request))

        insn_bits, chunk_bits = exact_log2(INSN_BYTES), exact_log2(CHUNK_INSNS)
        place = Signal(machine.axi.addr_bits - insn_bits - chunk_bits)  # next chunk to request
        left = Signal(COUNT_BITS)  # instructions to request, from that place on
        held = Signal(range(BUFFER_CHUNKS + 1))  # chunks requested and not all dispatched
        self.chunk_done = Signal()  # the last instruction of a chunk is dispatched
        asking = Signal()  # bursts of a chunk are presented
        may_ask = Signal()
        # Of what is left; a cycle late, which is in time: after every change, a burst is presented.
        is_any, is_whole = Signal(), Signal()

        m.d.comb += [
            may_ask.eq(is_any & (held != BUFFER_CHUNKS) & ~asking),
            splitter.rows.eq(1),
        ]
        m.d.sync += [is_any.eq(left != 0), is_whole.eq(left[chunk_bits:] != 0)]
        # The first chunk: what is before the stream's first instruction is left out.
        first = self.insn_address[insn_bits:]
        skipped = first[:chunk_bits]
        room, count = Signal(range(CHUNK_INSNS + 1)), Signal(range(CHUNK_INSNS + 1))
        is_all = Signal()  # of the stream
        few = self.insn_count[: len(room)]
        m.d.comb += [
            room.eq(CHUNK_INSNS - skipped),
            is_all.eq((self.insn_count[len(room) :] == 0) & (few <= room)),
            count.eq(Mux(is_all, self.insn_count, room)),
        ]
        with m.If(self.start):
            m.d.comb += [
                splitter.start.eq(self.insn_count != 0),
                splitter.address.eq(self.insn_address),
                splitter.row_bytes.eq(count << insn_bits),
            ]
            m.d.sync += [
                place.eq(first[chunk_bits:] + 1),
                left.eq(Mux(is_all, 0, self.insn_count - room)),
                held.eq(1),
                asking.eq(1),
            ]
        with m.Else():
            m.d.comb += [
                splitter.start.eq(may_ask),
                splitter.address.eq(Cat(Const(0, insn_bits + chunk_bits), place)),
                splitter.row_bytes.eq(Mux(is_whole, CHUNK_INSNS, left[:chunk_bits]) << insn_bits),
            ]
            m.d.sync += held.eq(held + may_ask - self.chunk_done)
            with m.If(may_ask):
                m.d.sync += [
                    place.eq(place + 1),
                    left.eq(Mux(is_whole, left - CHUNK_INSNS, 0)),
                    asking.eq(1),
                ]
            with m.Elif(self.request.ready & splitter.last):
                m.d.sync += asking.eq(0)

    def _dispatch(self, m: Module) -> None:
        machine = self.machine
        bus = machine.bus_bytes
        insns = CHUNK_INSNS * BUFFER_CHUNKS  # in the buffer
        word_bytes = max(bus, INSN_BYTES)
        words = insns * INSN_BYTES // word_bytes
        m.submodules.buffer = buffer = Memory(shape=8 * word_bytes, depth=words, init=[])
        write = buffer.write_port(granularity=8 * bus)
        # An instruction is dispatched in the cycle after its last beat was written.
        read = buffer.read_port(domain="comb")

        per_word = exact_log2(word_bytes // INSN_BYTES)  # log2 of instructions in a word
        beats_per_word = exact_log2(word_bytes // bus)
        beats = insns * INSN_BYTES // bus

        # Where each instruction goes is decided when its first beat is written: whether the queue
        # has room for it, and what follows from that, is all that a cycle has to find out.
        routes = Signal(data.ArrayLayout(_route, 1 << per_word))
        m.submodules.routes = routes_memory = Memory(shape=routes.shape(), depth=words, init=[])
        write_routes = routes_memory.write_port()
        read_routes = routes_memory.read_port(domain="comb")

        fill = Signal(range(beats))  # place in the buffer of the next beat
        place = Signal(range(insns))  # of the next instruction to dispatch
        left = Signal(COUNT_BITS)  # to dispatch
        # Beats written, minus those that instructions dispatched and what lies before the first one
        # fill; in units of the smaller of beat and instruction.
        unit = min(bus, INSN_BYTES)
        beat_units, insn_units = bus // unit, INSN_BYTES // unit
        stock = Signal(signed((insns * INSN_BYTES // unit).bit_length() + 2))

        address = self.insn_address
        first_beat = address[exact_log2(bus) :] if bus > 1 else address
        skipped = address[exact_log2(INSN_BYTES) : exact_log2(word_bytes)]

        insn = Signal(INSN_BITS)
        dispatched = Signal()
        m.d.comb += [
            write.addr.eq(fill >> beats_per_word),
            write.data.eq(Cat([self.data] * (word_bytes // bus))),
            write.en.eq(self.valid << fill[:beats_per_word] if beats_per_word else self.valid),
            write_routes.addr.eq(write.addr),
            write_routes.data.eq(routes),
            write_routes.en.eq(self.valid & (fill[:beats_per_word] == 0)),
            read.addr.eq(place >> per_word),
            read_routes.addr.eq(read.addr),
        ]
        for i in range(1 << per_word):
            first = self.data.word_select(i, INSN_BITS) if per_word else self.data
            views = Views(layouts(machine), Cat(first, Const(0, INSN_BITS))[:INSN_BITS])
            m.d.comb += [
                routes[i].load.eq(views.is_(Opcode.LOAD) & views.buffer_is(Buffer.INP, Buffer.WGT)),
                routes[i].store.eq(views.is_(Opcode.STORE)),
            ]
        route = Signal(_route)
        m.d.comb += [
            insn.eq(read.data.word_select(place[:per_word], INSN_BITS) if per_word else read.data),
            route.eq(read_routes.data[place[:per_word]] if per_word else read_routes.data[0]),
        ]
        valid = Signal()
        m.d.comb += valid.eq(self.busy & (stock >= insn_units))
        for lane, here in (
            (Lane.LOAD, route.load),
            (Lane.COMPUTE, ~route.load & ~route.store),
            (Lane.STORE, route.store),
        ):
            queue = self.insns[lane]
            m.d.comb += [queue.valid.eq(valid & here), queue.payload.eq(insn)]
            with m.If(queue.valid & queue.ready):
                m.d.comb += dispatched.eq(1)

        m.d.comb += self.chunk_done.eq(dispatched & place[: exact_log2(CHUNK_INSNS)].all())
        m.d.sync += [
            fill.eq(fill + self.valid),
            place.eq(place + dispatched),
            stock.eq(stock + Mux(self.valid, beat_units, 0) - Mux(dispatched, insn_units, 0)),
        ]
        with m.If(dispatched):
            m.d.sync += [left.eq(left - 1), self.busy.eq(left != 1)]
        with m.If(self.start):
            m.d.sync += [
                fill.eq(first_beat),
                place.eq(address[exact_log2(INSN_BYTES) :]),
                left.eq(self.insn_count),
                self.busy.eq(self.insn_count != 0),
                stock.eq(-skipped if per_word else 0),
            ]
