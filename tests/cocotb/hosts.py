"""Two ways to launch a stream: by the wires of the core, by the registers of the accelerator.

Both have a memory and a monitor on their AXI master, and count what is architectural.
"""

from random import Random

import cocotb
import functional_coverage
from axi_lite import OKAY, Host
from axi_lite_monitor import LiteMonitor
from axi_memory import Memory, Mood
from axi_monitor import Monitor
from cocotb.triggers import RisingEdge
from observer import Observer
from packed import fields_of
from support import drive, start

from vta_hw.counts import counts_layout
from vta_isa.counters import CAUSES, COUNTERS
from vta_isa.launch import Places
from vta_isa.microarch import burst_bytes
from vta_isa.registers import by_name, register_map

PATIENCE = 200_000  # cycles until a launch hangs


class CoreHost:
    """``vta_core``: start and busy are wires, counters are summed here.

    ``places`` are those of the last launch, if coverage is collected.
    """

    places: Places | None = None

    def __init__(self, dut, machine, rng: Random):
        self.dut, self.machine, self.rng = dut, machine, rng
        self.clk, self.core = dut.clk, dut.core
        self.memory = Memory(dut, "m_axi_", dut.clk, b"", rng, Mood())
        self.monitor = Monitor(dut, "m_axi_", dut.clk, dut.rst, **_limits(machine))

    async def begin(self) -> None:
        cocotb.start_soon(self.monitor.run())  # which also looks at reset
        await start(self.dut, start=0, insn_address=0, insn_count=0, bases=0)
        cocotb.start_soon(self.memory.run())

    async def launch(self, insn_address: int, insn_count: int) -> dict[str, int]:
        """Counters of the launch, when it has ended."""
        fields = fields_of(counts_layout())
        counters = dict.fromkeys(fields, 0)
        observer = Observer(self.dut, insn_count) if functional_coverage.wanted() else None
        drive(self.dut, start=1, insn_address=insn_address, insn_count=insn_count)
        counts, busy = self.dut.counts, self.dut.busy
        for cycle in range(PATIENCE):
            await RisingEdge(self.clk)
            drive(self.dut, start=0)
            if cycle and not int(busy.value):
                self.places = observer.places if observer is not None else None
                return counters
            word = int(counts.value)
            now = {name: word >> low & mask for name, (low, mask) in fields.items()}
            for name, value in now.items():
                counters[name] += value
            if observer is not None:
                observer.cycle(now)
            assert not int(self.dut.failed.value), "an answer was taken for a failure"
        raise AssertionError(f"busy for {PATIENCE} cycles")


class TopHost:
    """``vta``: everything through AXI4-Lite, as a driver on a processor would do it."""

    places = None  # nobody sees them from there

    def __init__(self, dut, machine, rng: Random, pause: float = 0.0):
        self.dut, self.machine, self.rng = dut, machine, rng
        self.clk, self.core = dut.ap_clk, dut.accelerator.core
        self.registers = by_name(register_map(machine))
        self.memory = Memory(dut, "m_axi_data_", dut.ap_clk, b"", rng, Mood())
        self.monitor = Monitor(
            dut, "m_axi_data_", dut.ap_clk, dut.ap_rst_n, in_reset=0, **_limits(machine)
        )
        self.bus = Host(dut, "s_axi_control_", dut.ap_clk, rng, pause)
        self.lite_monitor = LiteMonitor(dut, "s_axi_control_", dut.ap_clk, dut.ap_rst_n, in_reset=0)

    async def begin(self) -> None:
        from cocotb.clock import Clock
        from cocotb.triggers import ClockCycles
        from support import PERIOD_NS

        cocotb.start_soon(self.monitor.run())  # which also look at reset
        cocotb.start_soon(self.lite_monitor.run())
        self.dut.ap_rst_n.value = 0
        Clock(self.clk, PERIOD_NS, unit="ns").start()
        await ClockCycles(self.clk, 2)
        self.dut.ap_rst_n.value = 1
        await RisingEdge(self.clk)
        self.bus.start()
        cocotb.start_soon(self.memory.run())

    async def set(self, name: str, value: int) -> None:
        """Write every word of a register."""
        for word, offset in enumerate(self.registers[name].offsets):
            response = await self.bus.write(offset, value >> 32 * word & 0xFFFF_FFFF)
            assert response == OKAY, f"{name}: BRESP {response}"

    async def get(self, name: str) -> int:
        """Read every word of a register."""
        value = 0
        for word, offset in enumerate(self.registers[name].offsets):
            data, response = await self.bus.read(offset)
            assert response == OKAY, f"{name}: RRESP {response}"
            value |= data << 32 * word
        return value

    async def field(self, register: str, name: str) -> int:
        field = self.registers[register].field(name)
        return (await self.get(register) & field.mask) >> field.low

    async def flag(self, register: str, name: str) -> None:
        """Write one to one bit."""
        await self.set(register, self.registers[register].field(name).mask)

    async def order(self, insn_address: int, insn_count: int) -> None:
        """Begin a launch."""
        await self.set("insn_address", insn_address)
        await self.set("insn_count", insn_count)
        await self.flag("control", "start")

    async def idle(self, patience: int = PATIENCE // 10) -> None:
        """Poll until not busy."""
        for _ in range(patience):
            if not await self.field("status", "busy"):
                return
        raise AssertionError(f"busy for {patience} polls")

    async def launch(self, insn_address: int, insn_count: int) -> dict[str, int]:
        """Counters of the launch, when it has ended well."""
        await self.order(insn_address, insn_count)
        await self.idle()
        status = await self.get("status")
        cause = await self.get("error_cause")
        assert await self.field("status", "done"), f"{status=:#x}, {cause=}"
        assert (await self.field("status", "error"), cause) == (0, 0)
        return {counter.name: await self.get(counter.name) for counter in COUNTERS}


def _limits(machine) -> dict[str, int]:
    return {"burst_bytes": burst_bytes(machine), "reads": machine.axi.outstanding_reads}


def check_counters(counters: dict[str, int], wanted: dict[str, int]) -> None:
    """Events are those of ``wanted``; every cycle of every stage has exactly one cause."""
    cycles = counters["cycles"]
    for stage, causes in CAUSES.items():
        total = sum(counters[f"{stage}_{cause}"] for cause in causes)
        assert total == cycles, f"causes of {stage} add up to {total}, not to {cycles} cycles"
    events = [counter.name for counter in COUNTERS if counter.unit != "cycle"]
    differ = {e: (counters[e], wanted[e]) for e in events if counters[e] != wanted[e]}
    assert not differ, f"RTL, simulator: {differ}"
