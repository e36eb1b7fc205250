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

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from vta_isa.enums import Buffer
from vta_isa.insn import INSN_BITS
from vta_isa.machine import Machine

from .axi import Axi4Read, Axi4Write
from .compute import Compute
from .fetch import COUNT_BITS, Fetch, Lane
from .load import Load
from .memory_port import Client, ReadPort
from .queue import Queue
from .scratchpad import EntryRead, Geometry, Scratchpad
from .store import Store
from .tokens import TokenQueue


class Trace(wiring.Signature):
    """What happens in a cycle, one bit per stage (load, compute, store)."""

    def __init__(self):
        super().__init__({"dispatch": Out(3), "start": Out(3), "end": Out(3)})


class Core(wiring.Component):
    """Executes one instruction stream per ``start``; timing: docs/microarchitecture.md.

    ``start`` in cycle 0, while not ``busy``, takes ``insn_address`` (bytes, a multiple of 16) and
    ``insn_count``. ``busy`` from cycle 1 to the last cycle of the launch: the FINISH has ended and
    nothing is left in any stage. ``failed`` pulses for every AXI response that is not OKAY.
    Memories and tokens keep their contents from launch to launch.
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
            m.d.comb += [reader.data.eq(port.data), reader.valid.eq(port.valid[client])]
        wiring.connect(m, port.axi, wiring.flipped(self.read))
        wiring.connect(m, store.axi, wiring.flipped(self.write))

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
        finished = Signal()
        working = Signal(len(stages))  # instructions dispatched and not ended, per stage
        with m.If(compute.finish):
            m.d.sync += finished.eq(1)
        with m.If(self.start):
            m.d.sync += finished.eq(0)
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
        running = Signal()
        with m.If(self.start):
            m.d.sync += running.eq(1)
        with m.Elif(finished & ~working.any() & ~fetch.busy):
            m.d.sync += running.eq(0)
        m.d.comb += [
            fetch.start.eq(self.start),
            fetch.insn_address.eq(self.insn_address),
            fetch.insn_count.eq(self.insn_count),
            self.busy.eq(running & ~(finished & ~working.any() & ~fetch.busy)),
            self.failed.eq(port.failed | store.failed),
        ]
        return m

    def _narrowed(self, entry):
        """Accumulator scalars cut to the bits of OUT."""
        wide, narrow = self.machine.bits(Buffer.ACC), self.machine.bits(Buffer.OUT)
        return Cat(entry.word_select(i, wide)[:narrow] for i in range(len(entry) // wide))
