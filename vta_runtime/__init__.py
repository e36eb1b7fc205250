"""Turns the published runtime calls into instruction streams and launches them on a device."""

from .abi import functions, symbols
from .buffers import DEVICE_TO_DEVICE, DEVICE_TO_HOST, HOST_TO_DEVICE, DeviceBuffer
from .calls import CALLS, Call
from .current import current_runtime
from .debug import DebugFlag
from .device import Device, MappedDevice
from .devices.simulator import ReferenceDevice, SimulatorDevice
from .runtime import MAX_TRANSFER_BYTES, WAIT_CYCLES, Runtime, Stream
from .uops import UopMode

__all__ = [
    "CALLS",
    "DEVICE_TO_DEVICE",
    "DEVICE_TO_HOST",
    "HOST_TO_DEVICE",
    "MAX_TRANSFER_BYTES",
    "WAIT_CYCLES",
    "Call",
    "DebugFlag",
    "Device",
    "DeviceBuffer",
    "MappedDevice",
    "ReferenceDevice",
    "Runtime",
    "SimulatorDevice",
    "Stream",
    "UopMode",
    "current_runtime",
    "functions",
    "symbols",
]
