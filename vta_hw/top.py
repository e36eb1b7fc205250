"""The accelerator as a block design wants it: AXI4 master, AXI4-Lite slave, interrupt."""

from amaranth.back import verilog
from amaranth.hdl import ClockDomain, ClockSignal, Module, Mux, ResetInserter, ResetSignal, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from vta_isa.faults import Fault
from vta_isa.insn import INSN_BYTES
from vta_isa.machine import Machine
from vta_isa.registers import ADDRESS_BITS, BASED, register_map

from .axi import Axi4Read, Axi4Write
from .axi_lite import AxiLite
from .core import Core
from .counter_bank import CounterBank
from .counts import count_widths
from .csr import Csr
from .gate import Gate
from .insn_check import NUMBER_BITS

TOP_NAME = "vta"
"""The module that `vta rtl` writes."""
CLOCK, RESET, INTERRUPT = "ap_clk", "ap_rst_n", "interrupt"
"""Ports of it that belong to no bus."""
CONTROL, DATA = "s_axi_control", "m_axi_data"


class Accelerator(wiring.Component):
    """The core with its registers.

    ``start`` of the registers is ``start`` of the core in the cycle after it. A launch that ends
    sets ``done`` in the cycle after its last one. A fault, an AXI response that is not OKAY and a
    soft reset stop the core through the gate; when DRAM has answered everything, the machine is
    idle, and but for a soft reset ``error`` is set. Of several faults the first counts.
    ``interrupt`` is a register.
    """

    def __init__(self, machine: Machine):
        self.machine = machine
        addr_bits, data_bits = machine.axi.addr_bits, machine.axi.data_bits
        super().__init__(
            {
                "control": In(AxiLite(ADDRESS_BITS)),
                "read": Out(Axi4Read(addr_bits, data_bits)),
                "write": Out(Axi4Write(addr_bits, data_bits)),
                "interrupt": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        machine = self.machine
        core, gate = Core(machine), Gate(machine)
        m.submodules.csr = csr = Csr(register_map(machine))
        m.submodules.counters = counters = CounterBank(count_widths())
        m.submodules.core = ResetInserter(gate.reset)(core)
        m.submodules.gate = gate
        wiring.connect(m, wiring.flipped(self.control), csr.bus)
        wiring.connect(m, csr.counters, counters.read)
        wiring.connect(m, core.read, gate.core_read)
        wiring.connect(m, core.write, gate.core_write)
        wiring.connect(m, gate.read, wiring.flipped(self.read))
        wiring.connect(m, gate.write, wiring.flipped(self.write))
        m.d.comb += [
            core.insn_address.eq(csr.insn_address),
            core.insn_count.eq(csr.insn_count),
            *(
                getattr(core.bases, name).eq(getattr(csr, f"{name}_base"))
                for name in (buffer.name.lower() for buffer in BASED)
            ),
        ]

        start, done, error = Signal(), Signal(), Signal()
        starting = Signal()  # a register of its own: much hangs on it in the core
        cause, insn = Signal(Fault), Signal(NUMBER_BITS)
        last_dispatched = Signal(NUMBER_BITS)
        silent = Signal()  # the host stops the machine: no error
        misplaced = csr.insn_address[: exact_log2(INSN_BYTES)] != 0
        failed = gate.read_failed | gate.write_failed
        with m.FSM() as fsm:
            with m.State("idle"):
                with m.If(csr.control_soft_reset):
                    m.d.comb += gate.stop.eq(1)
                    m.d.sync += silent.eq(1)
                    m.next = "stopping"
                with m.Elif(csr.control_start):
                    m.d.comb += start.eq(1)
                    m.d.sync += [cause.eq(Fault.NONE), insn.eq(0), last_dispatched.eq(-1)]
                    with m.If(misplaced):
                        m.d.comb += error.eq(1)
                        m.d.sync += cause.eq(Fault.INSN_ADDRESS)
                    with m.Else():
                        m.d.sync += starting.eq(1)
                        m.next = "starting"
            with m.State("starting"):
                m.d.sync += starting.eq(0)
                m.next = "running"
            with m.State("running"):
                m.d.sync += silent.eq(csr.control_soft_reset)
                with m.If(core.fault.valid):
                    m.d.sync += [cause.eq(core.fault.cause), insn.eq(core.fault.insn)]
                with m.Elif(failed):
                    m.d.sync += [
                        cause.eq(Mux(gate.read_failed, Fault.READ_RESPONSE, Fault.WRITE_RESPONSE)),
                        insn.eq(last_dispatched),
                    ]
                with m.If(core.trace.dispatch.any()):
                    m.d.sync += last_dispatched.eq(last_dispatched + 1)
                with m.If(core.fault.valid | failed | csr.control_soft_reset):
                    m.d.comb += gate.stop.eq(1)
                    m.next = "stopping"
                with m.Elif(~core.busy):
                    m.d.comb += done.eq(1)
                    m.next = "idle"
            with m.State("stopping"), m.If(~gate.stopped):
                m.d.comb += error.eq(~silent)
                m.next = "idle"

        # What is counted comes from all over the core: a register is on its way.
        m.d.sync += [
            counters.counts.eq(core.counts),
            counters.clear.eq(start | core.start),
        ]
        m.d.comb += [
            core.start.eq(starting),
            csr.status_busy.eq(~fsm.ongoing("idle")),
            csr.status_done_set.eq(done),
            csr.status_error_set.eq(error),
            csr.status_done_clear.eq(start),
            csr.status_error_clear.eq(start),
            csr.interrupt_status_done_set.eq(done),
            csr.interrupt_status_error_set.eq(error),
            csr.error_cause.eq(cause),
            csr.error_insn.eq(insn),
        ]
        m.d.sync += self.interrupt.eq(
            (csr.interrupt_status_done & csr.interrupt_enable_done)
            | (csr.interrupt_status_error & csr.interrupt_enable_error)
        )
        return m


class Top(wiring.Component):
    """The accelerator with flat port names that tools take for interfaces.

    ``ap_clk``; ``ap_rst_n``, synchronous to it and active low; ``interrupt``, high while there is a
    reason; ``s_axi_control_*``, an AXI4-Lite slave of 4 KiB; ``m_axi_data_*``, an AXI4 master.
    """

    def __init__(self, machine: Machine):
        self.accelerator = Accelerator(machine)
        self.inner = {}  # port -> signal of the accelerator
        members = {CLOCK: In(1), RESET: In(1)}
        prefixes = {"control": f"{CONTROL}_", "read": f"{DATA}_", "write": f"{DATA}_"}
        for path, member, signal in self.accelerator.signature.flatten(self.accelerator):
            name = prefixes.get(path[0], "") + str(path[-1])
            self.inner[name] = signal
            members[name] = member
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        m.domains.sync = ClockDomain()
        m.submodules.accelerator = self.accelerator
        m.d.comb += [ClockSignal().eq(self.ap_clk), ResetSignal().eq(~self.ap_rst_n)]
        for name, inner in self.inner.items():
            outer = getattr(self, name)
            inward = self.signature.members[name].flow == In
            m.d.comb += inner.eq(outer) if inward else outer.eq(inner)
        return m


def top_verilog(machine: Machine) -> str:
    """Module ``vta`` and its submodules; the same text for the same machine."""
    return verilog.convert(Top(machine), name=TOP_NAME, emit_src=False, strip_internal_attrs=True)
