"""Device memory that lives in this process."""

import numpy as np
from numpy.typing import NDArray

from vta_isa.errors import RuntimeCallError

from ..buffers import FIRST_ADDRESS, PAGE_BYTES

ADDRESS_SPACE_BYTES = 1 << 32  # physical addresses have 32 bits


class HostMemory:
    """``size`` bytes of zeros, index = physical address; the host commits pages when touched."""

    def __init__(self, size: int):
        if not FIRST_ADDRESS < size <= ADDRESS_SPACE_BYTES or size % PAGE_BYTES:
            raise RuntimeCallError(
                f"memory_bytes = {size}; it must be a multiple of {PAGE_BYTES}, more than "
                f"{FIRST_ADDRESS} and at most {ADDRESS_SPACE_BYTES}, the 32-bit address space"
            )
        self.bytes: NDArray[np.uint8] = np.zeros(size, np.uint8)

    def write(self, address: int, data: NDArray[np.uint8]) -> None:
        """Copy bytes to ``address``."""
        self.view(address, data.size)[:] = data

    def view(self, address: int, size: int) -> NDArray[np.uint8]:
        """The ``size`` bytes from ``address`` themselves, not a copy."""
        if address < 0 or size < 0 or address + size > self.bytes.size:
            raise RuntimeCallError(
                f"device memory: {size} bytes from address {address:#x} do not lie inside its "
                f"{self.bytes.size} bytes"
            )
        return self.bytes[address : address + size]

    @property
    def host_address(self) -> int:
        """The CPU's address of physical address 0."""
        return int(self.bytes.ctypes.data)
