"""The ULX3S board with an LFE5U-85F: its pins, its clock, and the top that goes on it."""

from dataclasses import dataclass

from amaranth.hdl import Cat, ClockDomain, ClockSignal, Const, Module, ResetSignal, Signal
from amaranth.lib import wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out

from vta_isa.errors import VtaError
from vta_isa.machine import Machine
from vta_isa.units import format_bytes, format_hertz

from .bram_memory import PAGE_BYTES
from .pll import find_pll
from .system import System
from .uart import LEAST_DIVIDER

OSCILLATOR_HZ = 25_000_000
DEFAULT_BAUD = 1_000_000
DEFAULT_MEMORY_BYTES = 128 * 1024  # 64 block RAMs, beside some 100 of the machine `ecp5`
BAUD_TOLERANCE = 0.02  # of a bit: after ten of them a sample is still inside its bit
RESET_CYCLES = 16  # after the PLL has locked


@dataclass(frozen=True)
class Pin:
    """Where a port is, and how its pad is set up. Source: ``ulx3s_v20.lpf`` of the board."""

    port: str
    site: str
    setting: str


PINS = (
    Pin("clk_25mhz", "G2", "PULLMODE=NONE"),
    Pin("fire1", "R1", "PULLMODE=DOWN"),
    Pin("ftdi_txd", "M1", "PULLMODE=UP"),
    Pin("ftdi_rxd", "L4", "PULLMODE=UP DRIVE=4"),
    Pin("wifi_gpio0", "L2", "PULLMODE=NONE DRIVE=4"),
    Pin("led[0]", "B2", "PULLMODE=NONE DRIVE=4"),
    Pin("led[1]", "C2", "PULLMODE=NONE DRIVE=4"),
    Pin("led[2]", "C1", "PULLMODE=NONE DRIVE=4"),
    Pin("led[3]", "D2", "PULLMODE=NONE DRIVE=4"),
)


class Ulx3s(wiring.Component):
    """``System`` behind the pins of the board, with the names that its schematic gives them.

    ``clk_25mhz`` is the oscillator, ``ftdi_txd`` and ``ftdi_rxd`` what the USB bridge sends and
    receives. ``fire1`` is a button that resets everything but memory. LEDs: out of reset,
    interrupt, a bit of the host's, a bit of ours. ``wifi_gpio0`` keeps the other chip of the board
    from interfering.
    """

    clk_25mhz: In(1)
    fire1: In(1)
    ftdi_txd: In(1)
    ftdi_rxd: Out(1)
    led: Out(4)
    wifi_gpio0: Out(1)

    def __init__(
        self,
        machine: Machine,
        *,
        clock_hz: int | None = None,
        memory_bytes: int = DEFAULT_MEMORY_BYTES,
        baud: int = DEFAULT_BAUD,
    ):
        """``clock_hz``: that of the machine description unless told; see ``clock_hz`` afterwards
        for the one that the PLL makes."""
        self.machine = machine
        self.pll = find_pll(OSCILLATOR_HZ, machine.clock if clock_hz is None else clock_hz)
        self.clock_hz = self.pll.output_hz
        self.memory_bytes = _checked_memory(memory_bytes)
        self.baud = baud
        self.divider = _divider(int(self.clock_hz), baud)
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        m.domains.sync = ClockDomain()
        clock, locked = Signal(), Signal()
        m.submodules.pll = self.pll.instance(self.clk_25mhz, clock, locked)
        m.d.comb += ClockSignal().eq(clock)

        # Registers of their own keep running in reset; configuration sets them to zero.
        steady = Signal()
        m.submodules.steady = FFSynchronizer(locked & ~self.fire1, steady)
        waited = Signal(range(RESET_CYCLES + 1), reset_less=True)
        with m.If(~steady):
            m.d.sync += waited.eq(0)
        with m.Elif(waited != RESET_CYCLES):
            m.d.sync += waited.eq(waited + 1)
        running = Signal(reset_less=True)
        m.d.sync += running.eq(waited == RESET_CYCLES)
        m.d.comb += ResetSignal().eq(~running)

        m.submodules.system = system = System(self.machine, self.memory_bytes, self.divider)
        m.d.comb += [
            system.rx.eq(self.ftdi_txd),
            self.ftdi_rxd.eq(system.tx),
            self.led.eq(Cat(running, system.interrupt, ~self.ftdi_txd, ~system.tx)),
            self.wifi_gpio0.eq(Const(1)),
        ]
        return m

    def constraints(self) -> str:
        """Pins and clock in the vendor's format (LPF)."""
        lines = ["BLOCK RESETPATHS;", "BLOCK ASYNCPATHS;"]
        for pin in PINS:
            lines += [
                f'LOCATE COMP "{pin.port}" SITE "{pin.site}";',
                f'IOBUF PORT "{pin.port}" IO_TYPE=LVCMOS33 {pin.setting};',
            ]
        lines.append(f'FREQUENCY PORT "clk_25mhz" {OSCILLATOR_HZ / 1e6:g} MHZ;')
        return "\n".join(lines) + "\n"


def _checked_memory(size: int) -> int:
    if size <= 0 or size % PAGE_BYTES:
        raise VtaError(
            f"memory of {size} bytes; it is a multiple of {format_bytes(PAGE_BYTES)}, "
            "and at least that"
        )
    return size


def _divider(clock_hz: int, baud: int) -> int:
    """Clock cycles per bit."""
    divider = max(round(clock_hz / max(baud, 1)), 1)
    if (
        baud < 1
        or divider < LEAST_DIVIDER
        or abs(clock_hz / divider - baud) > BAUD_TOLERANCE * baud
    ):
        raise VtaError(
            f"{baud} baud cannot be made from a clock of {format_hertz(clock_hz)}: at most a "
            f"bit per {LEAST_DIVIDER} cycles, and not more than {BAUD_TOLERANCE:.0%} beside"
        )
    return divider
