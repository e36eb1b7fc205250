"""The meaning of instructions, generated for one machine and compiled for one host."""

import os
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from vta_isa.enums import Buffer
from vta_isa.insn import INSN_DTYPE
from vta_isa.machine import Machine

from ..order import NO_TOKENS, execution_order, tokens_after
from .native import NativeEngine
from .numpy_engine import NumpyEngine
from .program_order import Tokens, tokens_in_program_order
from .static_checks import StaticChecks
from .tiers import choose_tier

ENGINE_VARIABLE = "VTA_SIMULATOR"

__all__ = ["ENGINE_VARIABLE", "Kernels"]


class Engine(Protocol):
    """What executes checked streams on SRAM images of its own."""

    name: str

    def run(
        self, table: NDArray[np.void], order: NDArray[np.int64], dram: NDArray[np.uint8]
    ) -> None: ...

    def sram(self, buffer: Buffer) -> NDArray[np.integer]: ...


class Kernels:
    """A machine that executes streams as fast as the host can; no timing.

    ``engine`` is ``auto`` (what the environment variable ``VTA_SIMULATOR`` names, else ``native``),
    ``native`` (the fastest tier of this host), the name of a tier, or ``numpy``. SRAM contents and
    tokens persist from run to run, and start at zero. ``engine_name`` says what was chosen.
    """

    def __init__(self, machine: Machine, engine: str = "auto"):
        self.machine = machine
        self._check = StaticChecks(machine)
        self.tokens: Tokens = NO_TOKENS  # left in the four queues, indexed by TokenQueue
        if engine == "auto":
            engine = os.environ.get(ENGINE_VARIABLE) or "native"
        self._engine: Engine
        if engine == "numpy":
            self._engine = NumpyEngine(machine)
        else:
            named = None if engine in ("auto", "native") else engine
            self._engine = NativeEngine(machine, choose_tier(machine, named))

    @property
    def engine_name(self) -> str:
        """``numpy``, or the tier of the native kernels."""
        return self._engine.name

    def run(self, table: NDArray[np.void], dram: NDArray[np.uint8]) -> None:
        """Run one launch of ``table (n,) INSN_DTYPE`` on ``dram (bytes,) uint8``, in place.

        Program order, or the nearest that the tokens allow. Raises ``StreamError`` or
        ``DeadlockError`` with the reference's messages, and then neither ``dram`` nor the SRAMs nor
        the tokens have changed.
        """
        if table.dtype != INSN_DTYPE or table.ndim != 1:
            raise TypeError(f"table is (n,) INSN_DTYPE, not {table.shape} {table.dtype}")
        if dram.dtype != np.uint8 or dram.ndim != 1 or not dram.flags.writeable:
            raise TypeError(
                f"dram is a writable (bytes,) uint8 array, not {dram.shape} {dram.dtype}"
                f"{'' if dram.flags.writeable else ', read-only'}"
            )
        self._check(table, len(dram))
        order = np.arange(len(table), dtype=np.int64)
        tokens = tokens_in_program_order(table, self.tokens, self.machine.queues.token)
        if tokens is None:
            order = execution_order(table, self.machine, self.tokens).astype(np.int64)
            tokens = tokens_after(table, self.tokens)
        image = dram if dram.flags.c_contiguous else np.ascontiguousarray(dram)
        self._engine.run(table, order, image)
        if image is not dram:
            dram[...] = image
        self.tokens = tokens

    def sram(self, buffer: Buffer) -> NDArray[np.integer]:
        """A copy of a buffer's contents, ``(depth, rows, columns)`` in ``machine.dtype(buffer)``;
        UOP ``(depth,) uint32``. OUT is the low bits of ACC."""
        return self._engine.sram(buffer)
