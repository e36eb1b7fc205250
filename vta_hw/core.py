"""The accelerator: four stages, what lies between them, and the way to DRAM.

                +-------+   instructions
DRAM            | fetch |------+-----------------+------------------+
 |              +-------+      |                 |                  |
 |                  ^      command queue     command queue      command queue
 |                  |          v                 v                  v
 |  read port       |      +------+  l2c     +---------+  c2s   +-------+
 +==================+=====>| load |--------->| compute |------->| store |
 |                         |      |<---------|         |<-------|       |
 |                         +------+  c2l     +---------+  s2c   +-------+
 |                            |  INP, WGT      ^     | UOP, ACC     ^  |
 |                            +--> memories ---+     +--> OUT ------+  |
 +<================================================= write channel ====+
"""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from vta_isa.enums import Buffer
from vta_isa.faults import Fault
from vta_isa.insn import INSN_BITS
from vta_isa.machine import Machine
from vta_isa.registers import BASED

from .axi import Axi4Read, Axi4Write
from .bursts import base_bits
from .compute import Compute
from .counts import Counts, counts_layout
from .fetch import COUNT_BITS, Fetch, Lane
from .insn_check import NUMBER_BITS, InsnCheck, fault_layout
from .load import Load
from .memory_port import Client, ReadPort
from .queue import Queue
from .scratchpad import EntryRead, Geometry, Scratchpad
from .store import Store
from .tokens import TokenQueue


class Trace(wiring.Signature):
    """What happens in a cycle, for test benches; where nothing is connected nothing is synthesised.

    ``dispatch``, ``start``, ``end``: one bit per stage (load, compute, store). ``request``: a burst
    is presented, ``grant``: and granted, one bit per ``Client`` of the read port.
    """

    def __init__(self):
        stages = dict.fromkeys(("dispatch", "start", "end"), Out(len(Lane)))
        super().__init__({**stages, **dict.fromkeys(("request", "grant"), Out(len(Client)))})


def bases_layout(machine: Machine) -> data.StructLayout:
    """The base of every buffer, in pages."""
    return data.StructLayout({buffer.name.lower(): base_bits(machine) for buffer in BASED})


class Core(wiring.Component):
    """Executes one instruction stream per ``start``; timing: docs/microarchitecture.md.

    ``start`` in cycle 0, while not ``busy``, takes ``insn_address`` (bytes, a multiple of 16) and
    ``insn_count``. ``busy`` from cycle 1 to the last cycle of the launch, in which the last
    instruction ends. ``failed`` pulses for every AXI response that is not OKAY. Memories and tokens
    keep their contents from launch to launch. ``bases`` are added to DRAM addresses, in pages.
    ``counts`` is what each counter counts in this cycle. ``fault`` says that an instruction cannot
    be executed; the core goes on with undefined results, and may hang, until it is reset.
    """

    def __init__(self, machine: Machine):
        self.machine = machine
        addr_bits, data_bits = machine.axi.addr_bits, machine.axi.data_bits
        super().__init__(
            {
                "start": In(1),
                "insn_address": In(addr_bits),
                "insn_count": In(COUNT_BITS),
                "busy": Out(1),
                "failed": Out(1),
                "bases": In(bases_layout(machine)),
                "counts": Out(counts_layout()),
                "fault": Out(fault_layout()),
                "trace": Out(Trace()),
                "read": Out(Axi4Read(addr_bits, data_bits)),
                "write": Out(Axi4Write(addr_bits, data_bits)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        machine = self.machine

        m.submodules.fetch = fetch = Fetch(machine)
        m.submodules.load = load = Load(machine)
        m.submodules.compute = compute = Compute(machine)
        m.submodules.store = store = Store(machine)

        # Instructions: from fetch through a queue to each stage.
        stages = {Lane.LOAD: load, Lane.COMPUTE: compute, Lane.STORE: store}
        for lane, stage in stages.items():
            queue = Queue(INSN_BITS, machine.queues.command)
            m.submodules[f"{lane.name.lower()}_queue"] = queue
            wiring.connect(m, fetch.insns[lane], queue.push)
            wiring.connect(m, queue.pop, stage.insns)

        # Tokens between neighbours.
        for name, producer, consumer in (
            ("load_to_compute", load.to_compute, compute.from_load),
            ("compute_to_load", compute.to_load, load.from_compute),
            ("compute_to_store", compute.to_store, store.from_compute),
            ("store_to_compute", store.to_compute, compute.from_store),
        ):
            m.submodules[name] = tokens = TokenQueue(machine.queues.token)
            m.d.comb += [
                tokens.push.eq(producer.push),
                producer.full.eq(tokens.full),
                tokens.pop.eq(consumer.pop),
                consumer.empty.eq(tokens.empty),
            ]

        # DRAM.
        m.submodules.read_port = port = ReadPort(machine)
        clients = {Client.COMPUTE: compute, Client.FETCH: fetch, Client.LOAD: load}
        for client, reader in clients.items():
            wiring.connect(m, reader.request, port.requests[client])
            m.d.comb += [
                reader.data.eq(port.data),
                reader.valid.eq(port.valid[client]),
                self.trace.request[client].eq(reader.request.valid),
                self.trace.grant[client].eq(reader.request.valid & reader.request.ready),
            ]
        wiring.connect(m, port.axi, wiring.flipped(self.read))
        wiring.connect(m, store.axi, wiring.flipped(self.write))

        m.d.comb += [
            load.base_inp.eq(self.bases.inp),
            load.base_wgt.eq(self.bases.wgt),
            compute.base_uop.eq(self.bases.uop),
            compute.base_acc.eq(self.bases.acc),
            store.base.eq(self.bases.out),
        ]

        # Operands of GEMM: written by load, read by compute.
        for name in ("inp", "wgt"):
            geometry = Geometry.of(machine, Buffer[name.upper()])
            m.submodules[f"{name}_memory"] = memory = Scratchpad(geometry)
            m.submodules[f"{name}_read"] = read = EntryRead(geometry)
            m.d.comb += [
                memory.write.eq(getattr(load, f"write_{name}")),
                read.index.eq(getattr(compute, f"{name}_index")),
                memory.reads[0].en.eq(1),
                memory.reads[0].rows.eq(read.rows),
                read.data.eq(memory.reads[0].data),
                getattr(compute, name).eq(read.entry),
            ]

        # Results: every write of ACC goes to OUT as well, cut to its bits; store reads them.
        geometry = Geometry.of(machine, Buffer.OUT)
        m.submodules.out_memory = out = Scratchpad(geometry)
        for narrow, wide in zip(out.write, compute.write_acc, strict=True):
            m.d.comb += [
                narrow.row.eq(wide.row),
                narrow.en.eq(wide.en),
                narrow.data.eq(self._narrowed(wide.data)),
            ]
        m.d.comb += [
            out.reads[0].en.eq(store.read),
            out.reads[0].rows.eq(store.rows),
            store.out.eq(out.reads[0].data),
        ]

        # The launch.
        working = Signal(len(stages))  # instructions dispatched and not ended, per stage
        for lane, stage in stages.items():
            entered = Signal(name=f"{lane.name.lower()}_entered")
            count = Signal(range(machine.queues.command + 2), name=f"{lane.name.lower()}_count")
            m.d.comb += [
                entered.eq(fetch.insns[lane].valid & fetch.insns[lane].ready),
                working[lane].eq(count != 0),
                self.trace.dispatch[lane].eq(entered),
                self.trace.start[lane].eq(stage.start),
                self.trace.end[lane].eq(stage.end),
            ]
            m.d.sync += count.eq(count + entered - stage.end)
        m.d.comb += [
            fetch.start.eq(self.start),
            fetch.insn_address.eq(self.insn_address),
            fetch.insn_count.eq(self.insn_count),
            self.busy.eq(fetch.busy | working.any()),
            self.failed.eq(port.failed | store.failed),
        ]
        self._count(m, fetch, load, compute, store)
        self._check(m, fetch, compute)
        return m

    def _count(self, m: Module, fetch, load, compute, store) -> None:
        m.submodules.counting = counting = Counts(self.machine)
        for name, stage in (("load", load), ("compute", compute), ("store", store)):
            wiring.connect(m, stage.state, getattr(counting, name))
            m.d.comb += getattr(counting.starts, name).eq(stage.start)
        wiring.connect(m, compute.work, counting.work)
        m.d.comb += [
            counting.launch.eq(self.start | self.busy),
            counting.left.eq(Mux(self.start, self.insn_count != 0, fetch.busy)),
            counting.ready.eq(Cat(queue.valid for queue in fetch.insns).any()),
            counting.dispatch.eq(self.trace.dispatch.any()),
            counting.load_writes.eq(load.writing),
            counting.compute_writes.eq(compute.writing),
            counting.store_fills.eq(store.filling),
            counting.read_burst.eq(self.read.arvalid & self.read.arready),
            counting.read_beat.eq(self.read.rvalid & self.read.rready),
            counting.write_burst.eq(self.write.awvalid & self.write.awready),
            counting.write_beat.eq(self.write.wvalid & self.write.wready),
            *(
                getattr(counting.read_bytes, name).eq(getattr(stage.read_bytes, name))
                for stage in (load, compute)
                for name in stage.read_bytes.shape().members
            ),
            counting.written_bytes.eq(store.written_bytes),
            self.counts.eq(counting.counts),
        ]

    def _check(self, m: Module, fetch, compute) -> None:
        """Faults, and the place in the stream of the instruction that they are about."""
        number = Signal(NUMBER_BITS)  # of the next instruction to dispatch
        dispatched = self.trace.dispatch.any()
        with m.If(self.start):
            m.d.sync += number.eq(0)
        with m.Elif(dispatched):
            m.d.sync += number.eq(number + 1)
        m.submodules.check = check = InsnCheck(self.machine)
        m.d.comb += [
            check.valid.eq(dispatched),
            check.insn.eq(fetch.insns[Lane.COMPUTE].payload),  # all three carry the same
            check.number.eq(number),
        ]
        # Which instruction compute executes; the others are known to be in range before they start.
        m.submodules.numbers = numbers = Queue(NUMBER_BITS, self.machine.queues.command)
        running = Signal(NUMBER_BITS)
        with m.If(compute.start):
            m.d.sync += running.eq(numbers.pop.payload)
        m.d.comb += [
            numbers.push.valid.eq(self.trace.dispatch[Lane.COMPUTE]),
            numbers.push.payload.eq(number),
            numbers.pop.ready.eq(compute.start),
            self.fault.eq(check.fault),
        ]
        past_end = Signal()  # its instruction runs for some cycles more
        m.d.sync += past_end.eq(compute.past_end)
        with m.If(past_end & ~check.fault.valid):
            m.d.comb += [
                self.fault.valid.eq(1),
                self.fault.cause.eq(Fault.INDEX_RANGE),
                self.fault.insn.eq(running),
            ]
        if self.machine.extensions.alu_requantize:
            with m.If(compute.too_close & ~past_end & ~check.fault.valid):
                m.d.comb += [
                    self.fault.valid.eq(1),
                    self.fault.cause.eq(Fault.TOO_CLOSE),
                    self.fault.insn.eq(running),
                ]

    def _narrowed(self, entry):
        """Accumulator scalars cut to the bits of OUT."""
        wide, narrow = self.machine.bits(Buffer.ACC), self.machine.bits(Buffer.OUT)
        return Cat(entry.word_select(i, wide)[:narrow] for i in range(len(entry) // wide))
