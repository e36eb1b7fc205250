"""What the runtime needs of a device: simulator, RTL and remote board all look like this."""

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from vta_isa.launch import Launch
from vta_isa.machine import Machine


@runtime_checkable
class Device(Protocol):
    """A machine with memory. SRAM contents and tokens persist from one launch to the next."""

    @property
    def machine(self) -> Machine:
        """The description the device was built from."""
        ...

    @property
    def memory_bytes(self) -> int:
        """Physical addresses are 0 .. memory_bytes - 1; at most 2**32."""
        ...

    def write(self, address: int, data: NDArray[np.uint8]) -> None:
        """Copy bytes to physical ``address``."""
        ...

    def read(self, address: int, size: int) -> NDArray[np.uint8]:
        """``size`` bytes from physical ``address``; the caller does not write to them."""
        ...

    def run(self, insn_address: int, insn_count: int) -> Launch:
        """Execute ``insn_count`` instructions of 16 bytes from physical ``insn_address``."""
        ...


@runtime_checkable
class MappedDevice(Protocol):
    """A device whose memory this process can address, so that CPU code needs no copies."""

    def host_address(self, address: int) -> int:
        """The CPU's address of physical ``address``; contiguous over the whole memory."""
        ...
