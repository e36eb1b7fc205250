"""A DRAM image put together tensor by tensor, for tests that write their programs by hand."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vta_isa.encoding import encode_uops
from vta_isa.enums import Buffer
from vta_isa.machine import Machine
from vta_isa.tensors import pack_entries, unpack_entries


class Image:
    """Places tensors one behind the other, each at a multiple of its entry size.

    Bases are in entries of the buffer, as instructions want them. ``filler`` is what lies between
    and in reserved space, so that a stray write shows.
    """

    def __init__(self, machine: Machine, filler: int = 0xA5):
        self.machine = machine
        self.filler = filler
        self.content = bytearray()

    def place(self, buffer: Buffer, scalars: ArrayLike) -> int:
        """Append entries ``(..., rows, columns)`` of ``buffer``; returns their ``dram_base``."""
        return self._append(pack_entries(scalars, buffer, self.machine).tobytes(), buffer)

    def place_uops(self, uops: Iterable[tuple[int, int, int]]) -> int:
        """Append micro-ops (dst, src, wgt); returns their ``dram_base``."""
        words = encode_uops(np.array(list(uops)).reshape(-1, 3), self.machine)
        return self._append(words.astype("<u4").tobytes(), Buffer.UOP)

    def reserve(self, buffer: Buffer, entries: int) -> int:
        """Append room for entries of ``buffer``; returns its ``dram_base``."""
        size = entries * self.machine.entry_bytes(buffer)
        return self._append(bytes([self.filler]) * size, buffer)

    def dram(self) -> NDArray[np.uint8]:
        """A fresh copy of the image so far."""
        return np.frombuffer(bytes(self.content), dtype=np.uint8).copy()

    def read(
        self, dram: NDArray[np.uint8], buffer: Buffer, base: int, entries: int
    ) -> NDArray[np.integer]:
        """``(entries, rows, columns)`` scalars of ``buffer`` from ``base`` on."""
        unit = self.machine.entry_bytes(buffer)
        return unpack_entries(dram[base * unit : (base + entries) * unit], buffer, self.machine)

    def _append(self, data: bytes, buffer: Buffer) -> int:
        unit = self.machine.entry_bytes(buffer)
        self.content += bytes([self.filler]) * (-len(self.content) % unit)
        base = len(self.content) // unit
        self.content += data
        return base
