"""The native engine: one call of compiled code per stream."""

from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from vta_isa.encoding import decode_uops
from vta_isa.enums import Buffer
from vta_isa.insn import INSN_DTYPE
from vta_isa.machine import Machine

from ..checks import check_uops
from .compile import native_code
from .emit_run import IMAGES
from .layouts import Layout, aligned_bytes
from .static_checks import self_modifying
from .tiers import Tier

MEMORIES = (Buffer.UOP, Buffer.INP, Buffer.WGT, Buffer.ACC)


class NativeEngine:
    """SRAM images in the layouts of one tier, and the compiled kernels that work on them."""

    def __init__(self, machine: Machine, tier: Tier):
        self.machine = machine
        self.tier = tier
        self.name = tier.name
        self._layout = Layout(machine, tier)
        self._code = native_code(machine, tier)
        self._images = {buffer: self._layout.new_image(buffer) for buffer in MEMORIES}
        assert tuple(buffer.name.lower() for buffer in MEMORIES) == IMAGES
        self._uop_scratch = aligned_bytes(self._images[Buffer.UOP].size)

    def sram(self, buffer: Buffer) -> NDArray[np.integer]:
        """A copy of the architectural contents, row-major."""
        held = Buffer.ACC if buffer in (Buffer.OUT, Buffer.ACC_8BIT) else buffer
        return self._layout.recover(buffer, self._images[held])

    def run(
        self, table: NDArray[np.void], order: NDArray[np.int64], dram: NDArray[np.uint8]
    ) -> None:
        """Execute a checked stream in the given order; ``dram`` is contiguous and writable.

        A first pass only loads micro-ops and checks the indices they lead to, so that a stream
        that fails there changes nothing. It cannot foresee micro-ops that the stream stores
        itself; such a stream gets a copy of everything to return to.
        """
        table = np.ascontiguousarray(table, dtype=INSN_DTYPE)
        order = np.ascontiguousarray(order, dtype=np.int64)
        if self_modifying(table, self.machine):
            self._run_or_restore(table, order, dram)
            return
        self._uop_scratch[:] = self._images[Buffer.UOP].reshape(-1)
        done = self._code.check(
            table.ctypes.data,
            order.ctypes.data,
            len(order),
            self._uop_scratch.ctypes.data,
            dram.ctypes.data,
        )
        if done < len(order):
            self._raise(table, int(order[done]), self._uop_scratch)
        done = self._execute(table, order, dram)
        assert done == len(order), "the first pass saw the same micro-ops"

    def _run_or_restore(
        self, table: NDArray[np.void], order: NDArray[np.int64], dram: NDArray[np.uint8]
    ) -> None:
        images = {buffer: image.copy() for buffer, image in self._images.items()}
        before = dram.copy()
        done = self._execute(table, order, dram)
        if done == len(order):
            return
        uops = self._images[Buffer.UOP].copy()
        for buffer, image in images.items():
            self._images[buffer][...] = image
        dram[...] = before
        self._raise(table, int(order[done]), uops)

    def _execute(
        self, table: NDArray[np.void], order: NDArray[np.int64], dram: NDArray[np.uint8]
    ) -> int:
        """How many instructions were executed before the first bad index."""
        images = [self._images[buffer].ctypes.data for buffer in MEMORIES]
        done: int = self._code.run(
            table.ctypes.data, order.ctypes.data, len(order), *images, dram.ctypes.data
        )
        return done

    def _raise(self, table: NDArray[np.void], number: int, uops: NDArray[np.uint8]) -> NoReturn:
        """The message of the scalar checks for the instruction whose indices do not fit."""
        record = table[number]
        words = uops.reshape(-1).view(np.uint32)
        used = words[int(record["uop_begin"]) : int(record["uop_end"])]
        check_uops(record, number, decode_uops(used, self.machine), self.machine)
        raise AssertionError(f"native code refused insn {number}, the scalar checks do not")
