"""The simulator as a device: the fast engines, and the slow ones that judge them.

``simulator`` is imported when a device is made, not with this module: it brings a compiler along.
"""

import numpy as np
from numpy.typing import NDArray

from vta_isa.encoding import as_words, decode_stream
from vta_isa.insn import INSN_BYTES
from vta_isa.launch import Launch
from vta_isa.machine import Machine

from .memory import HostMemory

MEMORY_BYTES = 256 << 20


class _InProcessDevice:
    """A machine whose memory is an array of this process."""

    def __init__(self, machine: Machine, memory_bytes: int):
        self.machine = machine
        self.memory_bytes = memory_bytes
        self._memory = HostMemory(memory_bytes)

    def write(self, address: int, data: NDArray[np.uint8]) -> None:
        """Copy bytes to physical ``address``."""
        self._memory.write(address, data)

    def read(self, address: int, size: int) -> NDArray[np.uint8]:
        """The memory itself, so copy what must outlive the next launch."""
        return self._memory.view(address, size)

    def host_address(self, address: int) -> int:
        """The CPU's address of physical ``address``."""
        return self._memory.host_address + address

    def _words(self, insn_address: int, insn_count: int) -> NDArray[np.uint64]:
        """(n, 2) uint64, a copy: a stream that stores over itself was fetched before."""
        return as_words(self._memory.view(insn_address, insn_count * INSN_BYTES).copy())


class SimulatorDevice(_InProcessDevice):
    """The simulator with ``memory_bytes`` of DRAM, whose pages cost nothing until touched.

    ``engine`` chooses the functional kernels: auto, native, numpy, or the name of a tier.
    Without ``timing`` a launch takes 0 cycles; without ``function`` no data moves.
    """

    def __init__(
        self,
        machine: Machine,
        *,
        memory_bytes: int = MEMORY_BYTES,
        engine: str = "auto",
        timing: bool = True,
        function: bool = True,
    ):
        from simulator.machine import Simulator

        super().__init__(machine, memory_bytes)
        self.simulator = Simulator(machine, engine=engine, timing=timing, function=function)

    def run(self, insn_address: int, insn_count: int) -> Launch:
        """Launch the stream at physical ``insn_address``."""
        words = self._words(insn_address, insn_count)
        return self.simulator.launch(words, self._memory.bytes, insn_address)


class ReferenceDevice(_InProcessDevice):
    """The judge as a device: the plain NumPy semantics, and the timing engine run uncompiled."""

    def __init__(self, machine: Machine, *, memory_bytes: int = MEMORY_BYTES):
        from simulator.reference import ReferenceState

        super().__init__(machine, memory_bytes)
        self.state = ReferenceState(machine)

    def run(self, insn_address: int, insn_count: int) -> Launch:
        """Launch the stream at physical ``insn_address``."""
        from simulator import reference
        from simulator.timing import simulate

        table = decode_stream(self._words(insn_address, insn_count), self.machine)
        tokens = self.state.tokens
        reference.run(table, self._memory.bytes, self.state)
        return simulate(
            table, self.machine, insn_address=insn_address, tokens=tokens, compiled=False
        )
