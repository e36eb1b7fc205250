"""How the native kernels keep the SRAM images: converted once at LOAD, so that GEMM need not.

========  ==========================================================================================
uop       uint32, as in DRAM
inp       row-major, in the tier's scalar type; VNNI flips the sign bit: x is kept as x + 128
wgt       per tile ``[block_in/group][block_out][group]``: one 32-bit lane holds ``group``
          consecutive input columns of one output, and a broadcast input word drives all outputs.
          VNNI appends ``[chunks][block_out] int32``: -128 * (sum of the chunk's weights), which
          takes the 128 out again
acc       int32, sign-extended from the accumulator's own width; OUT is its low bits
========  ==========================================================================================
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from vta_isa.enums import Buffer
from vta_isa.machine import Machine

from .tiers import Dot, Tier

ALIGNMENT_BYTES = 64  # of every image: a cache line and the widest vector


@dataclass(frozen=True)
class Layout:
    """The SRAM images of one machine under one tier; how weight tiles are cut into registers."""

    machine: Machine
    tier: Tier

    @cached_property
    def batch(self) -> int:
        return self.machine.gemm.batch

    @cached_property
    def block_in(self) -> int:
        return self.machine.gemm.block_in

    @cached_property
    def block_out(self) -> int:
        return self.machine.gemm.block_out

    @cached_property
    def group(self) -> int:
        """Input columns per 32-bit lane of weights."""
        return self.tier.dot.group

    @cached_property
    def scalar_bits(self) -> int:
        """Bits of an input or weight scalar in the images."""
        return 16 if self.tier.dot is Dot.WIDENING else 32 // self.group

    @cached_property
    def flipped(self) -> bool:
        """Whether inputs are kept as x + 128, unsigned."""
        return self.tier.dot is Dot.UNSIGNED_SIGNED

    @cached_property
    def lanes(self) -> int:
        """Outputs per vector."""
        return self.tier.lanes(self.machine)

    @cached_property
    def unit_bits(self) -> int:
        """One output's share of a weight vector."""
        return self.group * self.scalar_bits

    @cached_property
    def groups(self) -> int:
        """Broadcasts that cover an input row."""
        return self.block_in // self.group

    @cached_property
    def chunk_groups(self) -> int:
        """Groups of a tile held in registers at a time: as many as fit."""
        return min(self.groups, self._register_budget)

    @cached_property
    def chunk_vectors(self) -> int:
        """Output vectors of a tile held in registers at a time."""
        if self.tier.dot is Dot.TILES:
            return 1
        return min(self.block_out // self.lanes, self._register_budget // self.chunk_groups)

    @cached_property
    def _register_budget(self) -> int:
        """Weight registers, rounded down to the power of two that divides every tile."""
        return 1 << (self.tier.registers.bit_length() - 1)

    @cached_property
    def inp_bytes(self) -> int:
        return self.batch * self.block_in * self.scalar_bits // 8

    @cached_property
    def wgt_tile_bytes(self) -> int:
        return self.block_in * self.block_out * self.scalar_bits // 8

    @cached_property
    def wgt_bytes(self) -> int:
        """A tile and its corrections."""
        corrections = self.groups // self.chunk_groups * self.block_out * 4
        return self.wgt_tile_bytes + (corrections if self.flipped else 0)

    @cached_property
    def acc_bytes(self) -> int:
        return self.batch * self.block_out * 4

    def entry_bytes(self, buffer: Buffer) -> int:
        """Bytes of one entry in its image."""
        return {
            Buffer.UOP: 4,
            Buffer.INP: self.inp_bytes,
            Buffer.WGT: self.wgt_bytes,
            Buffer.ACC: self.acc_bytes,
        }[buffer]

    def new_image(self, buffer: Buffer) -> NDArray[np.uint8]:
        """``(depth, entry_bytes)``, aligned, holding zeros in every scalar."""
        image = aligned_bytes(self.machine.depth(buffer) * self.entry_bytes(buffer))
        image[:] = self.padding(buffer)
        return image.reshape(self.machine.depth(buffer), -1)

    def padding(self, buffer: Buffer) -> int:
        """The byte that fills an entry of zeros."""
        return 0x80 if buffer == Buffer.INP and self.flipped else 0

    def recover(self, buffer: Buffer, image: NDArray[np.uint8]) -> NDArray[np.integer]:
        """The architectural contents of an image, row-major, as the reference shows them."""
        machine = self.machine
        shape = (machine.depth(buffer), *machine.entry_shape(buffer))
        scalar = np.dtype(f"i{self.scalar_bits // 8}")
        if buffer == Buffer.UOP:
            return image.view(np.uint32).reshape(-1).copy()
        if buffer == Buffer.INP:
            scalars = (image ^ np.uint8(self.padding(buffer))).view(scalar)
        elif buffer == Buffer.WGT:
            tiles = np.ascontiguousarray(image[:, : self.wgt_tile_bytes]).view(scalar)
            tiles = tiles.reshape(-1, self.groups, self.block_out, self.group)
            scalars = tiles.transpose(0, 2, 1, 3)
        else:
            scalars = image.view(np.int32)
        if buffer == Buffer.OUT:
            dropped = 32 - machine.bits(Buffer.OUT)
            scalars = (scalars << dropped) >> dropped
        return scalars.reshape(shape).astype(machine.dtype(buffer))


def aligned_bytes(size: int) -> NDArray[np.uint8]:
    """``(size,) uint8`` zeros that start on a cache line; NumPy alone promises 16 bytes."""
    room = np.zeros(size + ALIGNMENT_BYTES, dtype=np.uint8)
    skip = -room.ctypes.data % ALIGNMENT_BYTES
    return room[skip : skip + size]
