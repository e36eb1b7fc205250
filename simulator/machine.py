"""The simulated machine: how long a launch takes and what it leaves in DRAM."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from vta_isa.encoding import decode_stream
from vta_isa.enums import Buffer
from vta_isa.errors import DeadlockError, StreamError
from vta_isa.launch import Launch, Timeline
from vta_isa.machine import Machine, load_machine
from vta_isa.suggest import did_you_mean

from . import reference
from .kernels import Kernels
from .kernels.static_checks import StaticChecks
from .timing import simulate
from .timing.simulation import NO_TOKENS

REFERENCE = "reference"
"""The engine that is the judge of all others."""
DEVICES = ("simulator", REFERENCE)
"""What ``execute`` can run a stream on."""


class _Function(Protocol):
    """What computes: on ``dram``, in place, with SRAM contents that persist."""

    def run(self, table: NDArray[np.void], dram: NDArray[np.uint8]) -> None: ...

    def sram(self, buffer: Buffer) -> NDArray[np.integer]: ...


class _Reference:
    """simulator.reference as an engine among others."""

    def __init__(self, machine: Machine):
        self.state = reference.ReferenceState(machine)

    def run(self, table: NDArray[np.void], dram: NDArray[np.uint8]) -> None:
        reference.run(table, dram, self.state)

    def sram(self, buffer: Buffer) -> NDArray[np.integer]:
        return self.state.sram(buffer).copy()


class Simulator:
    """A machine that keeps its SRAM contents and tokens from launch to launch.

    ``engine`` computes: ``auto``, ``native``, the name of a kernel tier or ``numpy`` (see Kernels),
    or ``reference``, the slow judge, with which the timing engine runs uncompiled too. Leave out
    ``timing`` or ``function`` for one half alone: without function, DRAM stays as it is; without
    timing a launch has 0 cycles, no counters and an empty timeline.
    """

    def __init__(
        self,
        machine: Machine,
        *,
        engine: str = "auto",
        timing: bool = True,
        function: bool = True,
        record_bursts: bool = False,
        record_places: bool = False,
    ):
        self.machine = machine
        self.timing = timing
        self.record_bursts = record_bursts
        self.record_places = record_places
        self._compiled = False if engine == REFERENCE else None
        self._check = StaticChecks(machine)
        self._function: _Function | None = None
        if function:
            self._function = (
                _Reference(machine) if engine == REFERENCE else Kernels(machine, engine)
            )
        self._tokens = NO_TOKENS  # in the queues of the timing engine

    def launch(
        self,
        stream: bytes | NDArray[Any],
        dram: NDArray[np.uint8],
        insn_address: int = 0,
    ) -> Launch:
        """Run a stream on ``dram (bytes,) uint8``, whose index is the physical byte address.

        ``stream`` is bytes or (n, 2) uint64 words; ``insn_address`` is where fetch reads it, which
        only matters to its timing: the words themselves need not be in ``dram``. Raises StreamError
        or DeadlockError, and then neither ``dram`` nor the machine has changed.
        """
        table = decode_stream(stream, self.machine)
        _check_dram(dram)
        if self._function is None:
            self._check(table, len(dram))
        launch = Launch(0, {}, Timeline(*np.zeros((4, 0), dtype=np.int64)))
        tokens = self._tokens
        if self.timing:
            try:
                launch = simulate(
                    table,
                    self.machine,
                    insn_address=insn_address,
                    tokens=tokens,
                    compiled=self._compiled,
                    record_bursts=self.record_bursts,
                    record_places=self.record_places,
                )
            except DeadlockError:
                self._check(table, len(dram))  # an instruction that is wrong is the better reason
                raise
            tokens = launch.tokens
        if self._function is not None:
            self._function.run(table, dram)
        self._tokens = tokens
        return launch

    def sram(self, buffer: Buffer) -> NDArray[np.integer]:
        """A copy of one memory, (entries, rows, columns); all zero before the first launch."""
        if self._function is None:
            raise StreamError(
                "a simulator without function has no SRAM contents; leave function on"
            )
        return self._function.sram(buffer)


def _check_dram(dram: NDArray[np.uint8]) -> None:
    if not isinstance(dram, np.ndarray) or dram.dtype != np.uint8 or dram.ndim != 1:
        what = (
            f"{dram.shape} {dram.dtype}"
            if isinstance(dram, np.ndarray)
            else f"a {type(dram).__name__}"
        )
        raise StreamError(
            f"dram is {what}; it must be (bytes,) uint8, whose index is the byte address; "
            "an array of something else becomes one by .reshape(-1).view(np.uint8)"
        )
    if not dram.flags.writeable:
        raise StreamError("dram is read-only, and a launch writes to it; pass a copy")


@dataclass(frozen=True)
class Result:
    """What ``execute`` returns: the DRAM image afterwards, and what the launch took."""

    dram: NDArray[np.uint8]
    cycles: int
    counters: dict[str, int]
    timeline: Timeline


def execute(
    stream: bytes | NDArray[Any],
    dram: NDArray[np.uint8] | bytes,
    machine: Machine | str | Path | Mapping[str, Any],
    *,
    device: str = "simulator",
    insn_address: int = 0,
) -> Result:
    """Run one stream on a copy of ``dram``, on a machine fresh from reset.

    ``stream`` is bytes or an array of 128-bit words; ``device`` is ``simulator`` or ``reference``,
    the judge: same numbers, by slow and obvious means.
    """
    if device not in DEVICES:
        raise StreamError(f"unknown device {device!r}{did_you_mean(device, DEVICES)}")
    engine = REFERENCE if device == REFERENCE else "auto"
    image = np.frombuffer(dram, np.uint8).copy() if isinstance(dram, bytes) else np.array(dram)
    simulator = Simulator(load_machine(machine), engine=engine)
    launch = simulator.launch(stream, image, insn_address)
    return Result(image, launch.cycles, launch.counters, launch.timeline)
