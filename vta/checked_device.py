"""A device that looks at every stream before it runs it."""

import numpy as np
from numpy.typing import NDArray

from simulator.checker import Checker, CheckError, errors
from vta_isa.encoding import as_words
from vta_isa.insn import INSN_BYTES
from vta_isa.launch import Launch
from vta_isa.machine import Machine
from vta_runtime import Device, MappedDevice


class CheckedDevice:
    """``device``, fresh from reset, with the checker in front of every launch.

    A stream that could race, deadlock or reach outside of a memory raises ``CheckError`` instead of
    running; warnings are passed over. The device must not have run anything before, nor run
    anything by other ways.
    """

    def __init__(self, device: Device):
        self.device = device
        self._checker = Checker(device.machine)

    @property
    def machine(self) -> Machine:
        """That of the device."""
        return self.device.machine

    @property
    def memory_bytes(self) -> int:
        """That of the device."""
        return self.device.memory_bytes

    def write(self, address: int, data: NDArray[np.uint8]) -> None:
        """Copy bytes to physical ``address``."""
        self.device.write(address, data)

    def read(self, address: int, size: int) -> NDArray[np.uint8]:
        """``size`` bytes from physical ``address``."""
        return self.device.read(address, size)

    def run(self, insn_address: int, insn_count: int) -> Launch:
        """Check the stream at physical ``insn_address``, then launch it."""
        words = as_words(self.device.read(insn_address, insn_count * INSN_BYTES))
        memory = self.device.read(0, self.memory_bytes)
        wrong = errors(self._checker.check(words, memory, insn_address))
        if wrong:
            raise CheckError(wrong)
        return self.device.run(insn_address, insn_count)


class CheckedMappedDevice(CheckedDevice):
    """The same for a device whose memory this process can address."""

    def __init__(self, device: Device):
        super().__init__(device)
        assert isinstance(device, MappedDevice)
        self._mapped = device

    def host_address(self, address: int) -> int:
        """The CPU's address of physical ``address``."""
        return self._mapped.host_address(address)


def checked(device: Device) -> CheckedDevice:
    """``device`` with the checker in front of it."""
    return (CheckedMappedDevice if isinstance(device, MappedDevice) else CheckedDevice)(device)
