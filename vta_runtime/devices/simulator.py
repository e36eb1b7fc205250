"""The simulator as a device: the fast engines, and the slow ones that judge them."""

import numpy as np
from numpy.typing import NDArray

from vta_isa.encoding import as_words
from vta_isa.insn import INSN_BYTES
from vta_isa.launch import Launch
from vta_isa.machine import Machine

from .memory import HostMemory

MEMORY_BYTES = 256 << 20


class SimulatorDevice:
    """The simulator with ``memory_bytes`` of DRAM, whose pages cost nothing until touched.

    ``engine`` chooses what computes: auto, native, numpy, the name of a kernel tier, or reference.
    Without ``timing`` a launch takes 0 cycles; without ``function`` no data moves;
    ``record_bursts`` adds every DRAM burst to the timelines.
    """

    def __init__(
        self,
        machine: Machine,
        *,
        memory_bytes: int = MEMORY_BYTES,
        engine: str = "auto",
        timing: bool = True,
        function: bool = True,
        record_bursts: bool = False,
    ):
        # Not at the top: the simulator brings a compiler along, which `import vta_runtime` is
        # better off without.
        from simulator.machine import Simulator

        self.machine = machine
        self.memory_bytes = memory_bytes
        self._memory = HostMemory(memory_bytes)
        self.simulator = Simulator(
            machine, engine=engine, timing=timing, function=function, record_bursts=record_bursts
        )

    def write(self, address: int, data: NDArray[np.uint8]) -> None:
        """Copy bytes to physical ``address``."""
        self._memory.write(address, data)

    def read(self, address: int, size: int) -> NDArray[np.uint8]:
        """The memory itself, so copy what must outlive the next launch."""
        return self._memory.view(address, size)

    def host_address(self, address: int) -> int:
        """The CPU's address of physical ``address``."""
        return self._memory.host_address + address

    def run(self, insn_address: int, insn_count: int) -> Launch:
        """Launch the stream at physical ``insn_address``."""
        # A copy: a stream that stores over itself was fetched before.
        words = as_words(self._memory.view(insn_address, insn_count * INSN_BYTES).copy())
        return self.simulator.launch(words, self._memory.bytes, insn_address)


class ReferenceDevice(SimulatorDevice):
    """The judge as a device: the plain NumPy semantics, and the timing engine run uncompiled."""

    def __init__(
        self,
        machine: Machine,
        *,
        memory_bytes: int = MEMORY_BYTES,
        record_bursts: bool = False,
    ):
        super().__init__(
            machine, memory_bytes=memory_bytes, engine="reference", record_bursts=record_bursts
        )
