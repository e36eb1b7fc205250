"""A machine that needs nothing but a clock and a serial line."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from vta_isa.machine import Machine
from vta_isa.registers import ADDRESS_BITS

from ..top import Accelerator
from .bram_memory import BramMemory
from .register_access import RegisterAccess
from .uart_bridge import UartBridge


class System(wiring.Component):
    """The accelerator, its memory of ``memory_bytes``, and the way from a host to both.

            rx, tx --- bridge ---+--- memory === read, write === accelerator
                                 |                                    |
                                 +--- register access --- control ----+

    ``divider`` is clock cycles per bit of the serial line.
    """

    def __init__(self, machine: Machine, memory_bytes: int, divider: int):
        self.machine = machine
        self.memory_bytes = memory_bytes
        self.divider = divider
        super().__init__({"rx": In(1, init=1), "tx": Out(1, init=1), "interrupt": Out(1)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.accelerator = accelerator = Accelerator(self.machine)
        m.submodules.memory = memory = BramMemory(self.machine, self.memory_bytes)
        m.submodules.bridge = bridge = UartBridge(self.divider)
        m.submodules.register_access = registers = RegisterAccess(ADDRESS_BITS)
        wiring.connect(m, accelerator.read, memory.read)
        wiring.connect(m, accelerator.write, memory.write)
        wiring.connect(m, bridge.memory, memory.host)
        wiring.connect(m, bridge.registers, registers.host)
        wiring.connect(m, registers.bus, accelerator.control)
        m.d.comb += [
            bridge.rx.eq(self.rx),
            self.tx.eq(bridge.tx),
            self.interrupt.eq(accelerator.interrupt),
        ]
        return m
