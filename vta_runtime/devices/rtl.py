"""The RTL as a device: the core compiled by Verilator, with the shared memory model behind it."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vta_isa.encoding import as_words
from vta_isa.errors import VtaError
from vta_isa.insn import INSN_BYTES
from vta_isa.launch import Launch
from vta_isa.machine import Machine

from .memory import HostMemory
from .simulator import MEMORY_BYTES

if TYPE_CHECKING:
    from vta_hw.verilated import VerilatedCore

WavesWanted = tuple[Path, int, int]  # file, first cycle, the cycle behind the last


def make_core(machine: Machine, waves: WavesWanted | None = None) -> "VerilatedCore":
    """The compiled core of ``machine``, fresh from reset; compiled first if it is not in the cache.

    ``waves``: a VCD or FST file for every signal, by its suffix, and the first cycle and the one
    behind the last to write there, counted over all launches; whole after ``close`` of the core.

    Raises VtaError where the Python packages or the C++ compiler that this needs are missing.
    """
    # Not at the top: Amaranth and Verilator come with an extra, and few runs need them.
    try:
        from vta_hw.verilated import VerilatedCore, Waves
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != "amaranth":
            raise
        raise VtaError(
            "the RTL needs amaranth, which is not installed; it comes with "
            "`pip install 'vta-sdk[rtl]'`"
        ) from error
    return VerilatedCore(machine, waves=Waves(*waves) if waves is not None else None)


class RtlDevice:
    """The RTL with ``memory_bytes`` of DRAM; launches, counters and timelines as simulated ones.

    The first device of a machine compiles its core, which takes up to a minute; later ones find
    it in the cache. ``record_bursts`` adds every DRAM burst to the timelines; ``waves`` as for
    ``make_core``.
    """

    def __init__(
        self,
        machine: Machine,
        *,
        memory_bytes: int = MEMORY_BYTES,
        record_bursts: bool = False,
        waves: WavesWanted | None = None,
    ):
        self.machine = machine
        self.memory_bytes = memory_bytes
        self.core = make_core(machine, waves)
        self._record_bursts = record_bursts
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

    def close(self) -> None:
        """No launch follows; what ``waves`` asked for is complete."""
        self.core.close()

    def run(self, insn_address: int, insn_count: int) -> Launch:
        """Launch the stream at physical ``insn_address``."""
        words = as_words(self._memory.view(insn_address, insn_count * INSN_BYTES).copy())
        return self.core.launch(
            words, self._memory.bytes, insn_address, record_bursts=self._record_bursts
        )
