"""Device memory: a first-fit allocator, opaque handles, and copies between host and device."""

import ctypes
import itertools
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vta_isa.errors import RuntimeCallError

from .device import Device, MappedDevice

PAGE_BYTES = 4096  # no entry of any machine is larger, so every page starts an entry
FIRST_ADDRESS = 0x1000  # physical address 0 stays invalid, so that a null pointer never works

HOST_TO_DEVICE = 1
"""``kind`` of a ``buffer_copy`` from memory of the host."""
DEVICE_TO_HOST = 2
"""``kind`` of a ``buffer_copy`` to memory of the host."""
DEVICE_TO_DEVICE = 3
"""``kind`` of a ``buffer_copy`` between buffers."""

# A handle carries a tag in its top byte that makes it no canonical address, so that it can be told
# from a raw pointer; then the number of its Buffers object; then its own. Numbers are not reused.
_TAG = 0x56
_TAG_SHIFT = 56
_POOL_SHIFT = 36
_POOL_NUMBERS = itertools.count(1)


class Allocator:
    """First fit with coalescing over the addresses ``begin`` .. ``end - 1``, in whole granules.

    ``begin`` and ``granule`` are in bytes, ``granule`` a power of two; what lies after the last
    whole granule is not used.
    """

    def __init__(self, begin: int, end: int, granule: int = PAGE_BYTES):
        self.granule = granule
        begin = self._round_up(begin)
        end -= end % granule
        self._taken: dict[int, int] = {}  # address -> bytes
        # Free ranges by rising address; two never touch, because release() joins them.
        self._free: list[tuple[int, int]] = [(begin, end - begin)] if end > begin else []

    def _round_up(self, size: int) -> int:
        return -(-size // self.granule) * self.granule

    @property
    def free_bytes(self) -> int:
        """Bytes not allocated, in all free ranges together."""
        return sum(size for _, size in self._free)

    @property
    def largest_free_bytes(self) -> int:
        """Bytes in the largest free range, the most one allocation can get."""
        return max((size for _, size in self._free), default=0)

    @property
    def taken_bytes(self) -> int:
        """Bytes allocated, rounded up to whole granules."""
        return sum(self._taken.values())

    @property
    def top(self) -> int:
        """The address after the highest allocated byte, 0 when nothing is allocated."""
        return max((address + size for address, size in self._taken.items()), default=0)

    def allocate(self, size: int) -> int:
        """The address of ``size`` bytes; a size of 0 takes one granule, so addresses differ."""
        need = self._round_up(max(size, 1))
        for position, (address, free) in enumerate(self._free):
            if free < need:
                continue
            if free == need:
                del self._free[position]
            else:
                self._free[position] = (address + need, free - need)
            self._taken[address] = need
            return address
        raise RuntimeCallError(
            f"device memory: no room for {size} bytes ({need} in whole pages of {self.granule}); "
            f"{self.free_bytes} bytes are free, {self.largest_free_bytes} of them in one piece, "
            f"{self.taken_bytes} are allocated; free buffers or give the device more memory"
        )

    def release(self, address: int) -> None:
        """Give back what ``allocate`` returned, joining it with free neighbours."""
        size = self._taken.pop(address)
        position = bisect_left(self._free, (address, 0))
        if position < len(self._free) and self._free[position][0] == address + size:
            size += self._free.pop(position)[1]
        if position > 0:
            before, before_size = self._free[position - 1]
            if before + before_size == address:
                position -= 1
                del self._free[position]
                address, size = before, before_size + size
        self._free.insert(position, (address, size))


@dataclass
class DeviceBuffer:
    """One allocation: ``size`` bytes at physical ``address``.

    ``mirror`` is the CPU's view where the device's memory is not mapped into this process and
    somebody asked for a CPU pointer; from then on it is the truth between launches.
    """

    handle: int
    address: int
    size: int
    mirror: NDArray[np.uint8] | None = field(default=None, repr=False)


class Buffers:
    """The buffers of one runtime on one device."""

    def __init__(self, device: Device):
        self._device = device
        self.allocator = Allocator(FIRST_ADDRESS, device.memory_bytes)
        number = next(_POOL_NUMBERS) % (1 << (_TAG_SHIFT - _POOL_SHIFT))
        self._base = _TAG << _TAG_SHIFT | number << _POOL_SHIFT
        self._allocated = 0  # handles given out so far
        self._live: dict[int, DeviceBuffer] = {}

    def __iter__(self) -> Iterator[DeviceBuffer]:
        return iter(self._live.values())

    def __len__(self) -> int:
        return len(self._live)

    def alloc(self, size: int) -> DeviceBuffer:
        """Allocate ``size`` bytes; contents are whatever the memory holds."""
        if size < 0:
            raise RuntimeCallError(f"buffer_alloc: size = {size} bytes; it must be 0 or more")
        address = self.allocator.allocate(size)
        self._allocated += 1
        buffer = DeviceBuffer(self._base | self._allocated, address, size)
        self._live[buffer.handle] = buffer
        return buffer

    def free(self, handle: int) -> None:
        """Release the buffer behind ``handle``; the handle is dead afterwards."""
        buffer = self.lookup(handle, "buffer_free")
        del self._live[buffer.handle]
        self.allocator.release(buffer.address)

    def lookup(self, handle: int | None, call: str) -> DeviceBuffer:
        """The live buffer behind ``handle``; ``call`` names the caller in the message."""
        buffer = self._live.get(handle) if handle is not None else None
        if buffer is not None:
            return buffer
        if handle is None or handle == 0:
            raise RuntimeCallError(f"{call}: null handle; pass what buffer_alloc returned")
        if not is_handle(handle):
            raise RuntimeCallError(
                f"{call}: {handle:#x} is no buffer handle; pass what buffer_alloc returned, not a "
                f"CPU pointer or a physical address"
            )
        if 0 < handle - self._base <= self._allocated:
            raise RuntimeCallError(
                f"{call}: buffer {handle:#x} was freed already; a handle is valid until its "
                f"buffer_free"
            )
        raise RuntimeCallError(
            f"{call}: buffer {handle:#x} belongs to another runtime; this one has {len(self)} "
            f"live buffers; copy through host memory instead"
        )

    def write(self, buffer: DeviceBuffer, offset: int, data: NDArray[np.uint8]) -> None:
        """Copy ``data`` to byte ``offset`` of ``buffer``, within its size."""
        _check_range("buffer_copy", "target", buffer, offset, data.size)
        if data.size:
            if buffer.mirror is not None:
                buffer.mirror[offset : offset + data.size] = data
            self._device.write(buffer.address + offset, data)

    def read(self, buffer: DeviceBuffer, offset: int, size: int) -> NDArray[np.uint8]:
        """``size`` bytes from byte ``offset`` of ``buffer``, as an array of its own."""
        _check_range("buffer_copy", "source", buffer, offset, size)
        if buffer.mirror is not None:
            return buffer.mirror[offset : offset + size].copy()
        if size == 0:
            return np.empty(0, np.uint8)
        return np.array(self._device.read(buffer.address + offset, size), np.uint8)

    def copy(
        self, source: Any, source_offset: int, target: Any, target_offset: int, size: int, kind: int
    ) -> None:
        """The three copies of the contract; host sides are raw addresses or NumPy arrays."""
        if kind not in (HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE):
            raise RuntimeCallError(
                f"buffer_copy: kind = {kind}; it must be 1 (host to device), 2 (device to host) "
                f"or 3 (device to device)"
            )
        if size < 0:
            raise RuntimeCallError(f"buffer_copy: size = {size} bytes; it must be 0 or more")
        if kind == HOST_TO_DEVICE:
            data = _host_bytes(source, source_offset, size, "source", writable=False)
            self.write(self.lookup(target, "buffer_copy"), target_offset, data)
            return
        data = self.read(self.lookup(source, "buffer_copy"), source_offset, size)
        if kind == DEVICE_TO_DEVICE:
            self.write(self.lookup(target, "buffer_copy"), target_offset, data)
        else:
            _host_bytes(target, target_offset, size, "target", writable=True)[:] = data

    def cpu_address(self, buffer: DeviceBuffer) -> int:
        """The address at which the CPU reads and writes ``buffer``."""
        if isinstance(self._device, MappedDevice):
            return self._device.host_address(buffer.address)
        if buffer.mirror is None:
            buffer.mirror = self.read(buffer, 0, buffer.size)
        return buffer.mirror.ctypes.data

    def before_launch(self) -> None:
        """Bring what the CPU wrote through its pointers to the device."""
        for buffer in self:
            if buffer.mirror is not None and buffer.size:
                self._device.write(buffer.address, buffer.mirror)

    def after_launch(self) -> None:
        """Bring what the device wrote to where the CPU's pointers look."""
        for buffer in self:
            if buffer.mirror is not None and buffer.size:
                buffer.mirror[:] = self._device.read(buffer.address, buffer.size)


def is_handle(value: int) -> bool:
    """Whether ``value`` looks like a buffer handle of any runtime, alive or not."""
    return value >> _TAG_SHIFT == _TAG


def _check_range(call: str, side: str, buffer: DeviceBuffer, offset: int, size: int) -> None:
    if offset < 0 or offset + size > buffer.size:
        raise RuntimeCallError(
            f"{call}: {size} bytes from offset {offset} of the {side} do not lie inside its "
            f"{buffer.size} bytes"
        )


def _host_bytes(
    host: Any, offset: int, size: int, side: str, *, writable: bool
) -> NDArray[np.uint8]:
    """A view of ``size`` bytes of host memory, given as a raw address or as a NumPy array."""
    if isinstance(host, np.ndarray):
        if not host.flags.c_contiguous:
            raise RuntimeCallError(
                f"buffer_copy: the {side} array is not contiguous; pass np.ascontiguousarray of it"
            )
        if writable and not host.flags.writeable:
            raise RuntimeCallError(f"buffer_copy: the {side} array is read-only; pass a copy of it")
        if offset < 0 or offset + size > host.nbytes:
            raise RuntimeCallError(
                f"buffer_copy: {size} bytes from offset {offset} of the {side} array do not lie "
                f"inside its {host.nbytes} bytes"
            )
        return host.reshape(-1).view(np.uint8)[offset : offset + size]
    if size == 0:
        return np.empty(0, np.uint8)
    if not isinstance(host, int) or host == 0 or is_handle(host):
        shown = hex(host) if isinstance(host, int) else type(host).__name__
        raise RuntimeCallError(
            f"buffer_copy: the {side} is {shown} where this kind of copy needs host memory; pass "
            f"a NumPy array or the address of one, or another kind"
        )
    memory = (ctypes.c_uint8 * size).from_address(host + offset)
    return np.ctypeslib.as_array(memory)
