"""Simulator and RTL side by side: the same launches on both, and everything about them compared."""

import time
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.machine import Simulator
from vta_isa.encoding import as_words
from vta_isa.errors import DeadlockError, StreamError
from vta_isa.launch import Launch
from vta_isa.machine import Machine
from vta_runtime.devices.rtl import WavesWanted, make_core

from .differences import BUFFERS, Difference, data_differences, timing_differences
from .trace_text import neighbours


@dataclass(frozen=True)
class LaunchComparison:
    """One launch on both sides; a side that did not come to its end has no record."""

    words: NDArray[np.uint64] = field(repr=False)  # (n, 2)
    machine: Machine
    simulator: Launch | None
    rtl: Launch | None
    images: tuple[NDArray[np.uint8], NDArray[np.uint8]] = field(repr=False)  # DRAM after, each
    difference: Difference | None
    sram_bytes: int  # compared
    seconds: dict[str, float]  # host time of each side

    @property
    def deadlocked(self) -> bool:
        """Neither side comes to an end, and so they agree."""
        return self.simulator is None and self.rtl is None

    @property
    def cycles(self) -> int:
        """As simulated; 0 for a stream that deadlocks."""
        return self.simulator.cycles if self.simulator else 0

    @property
    def bursts(self) -> int:
        """Of both directions, as simulated."""
        bursts = self.simulator.timeline.bursts if self.simulator else None
        return len(bursts.stage) if bursts else 0

    def as_json(self) -> dict[str, object]:
        return {
            "instructions": len(self.words),
            "cycles": self.cycles,
            "bursts": self.bursts,
            "counters": len(self.simulator.counters) if self.simulator else 0,
            "dram_bytes": len(self.images[0]),
            "sram_bytes": self.sram_bytes,
            "deadlocked": self.deadlocked,
            "difference": self.difference.as_json() if self.difference else None,
            "seconds": dict(self.seconds),
        }


class Lockstep:
    """A simulator and a compiled core of one machine; both keep SRAM and tokens between launches.

    ``waves``: a VCD or FST file for the RTL's signals, first cycle, cycle behind the last; whole
    after ``close``. After a launch that one side did not end, there is no common state to go on
    from.
    """

    def __init__(self, machine: Machine, *, waves: WavesWanted | None = None):
        self.machine = machine
        self.simulator = Simulator(machine, record_bursts=True, record_places=True)
        self.core = make_core(machine, waves)

    def launch(
        self, stream: bytes | NDArray[Any], dram: NDArray[np.uint8], insn_address: int = 0
    ) -> LaunchComparison:
        """Run ``stream`` on a copy of ``dram`` each. StreamError for one that may not run."""
        words = as_words(stream)
        images = dram.copy(), dram.copy()
        begin = time.perf_counter()
        simulated, failure = self._simulate(words, images[0], insn_address)
        middle = time.perf_counter()
        measured, breach = self._execute(words, images[1], insn_address)
        end = time.perf_counter()
        difference = None
        if simulated is None or measured is None:
            if failure is None or not isinstance(breach, DeadlockError):
                texts = [
                    str(error) if error else f"ends after {launch.cycles} cycles" if launch else ""
                    for launch, error in ((simulated, failure), (measured, breach))
                ]
                insn = next((e.insn for e in (failure, breach) if isinstance(e, StreamError)), None)
                difference = Difference("the launch", texts[0], texts[1], insn)
        else:
            difference = self._compare(words, simulated, measured, images)
        return LaunchComparison(
            words,
            self.machine,
            simulated,
            measured,
            images,
            difference,
            sum(self.machine.depth(b) * self.machine.entry_bytes(b) for b in BUFFERS),
            {"simulator": middle - begin, "rtl": end - middle},
        )

    def close(self) -> None:
        """No launch follows; what ``waves`` asked for is complete."""
        self.core.close()

    def _simulate(
        self, words: NDArray[np.uint64], dram: NDArray[np.uint8], insn_address: int
    ) -> tuple[Launch | None, DeadlockError | None]:
        try:
            return self.simulator.launch(words, dram, insn_address), None
        except DeadlockError as error:
            return None, error

    def _execute(
        self, words: NDArray[np.uint64], dram: NDArray[np.uint8], insn_address: int
    ) -> tuple[Launch | None, Exception | None]:
        # The simulator has accepted the stream: whatever the RTL objects to is a difference.
        try:
            how = {"record_bursts": True, "record_places": True}
            return self.core.launch(words, dram, insn_address, **how), None
        except (StreamError, AssertionError) as error:
            return None, error

    def _compare(
        self,
        words: NDArray[np.uint64],
        simulated: Launch,
        measured: Launch,
        images: tuple[NDArray[np.uint8], NDArray[np.uint8]],
    ) -> Difference | None:
        """The first difference: the earliest in time, else of the sums, else of the data."""
        for difference in timing_differences(simulated, measured):
            around = neighbours(words, self.machine, simulated, measured, difference.insn)
            return replace(difference, around=around)
        memories = {b: (self.simulator.sram(b), self.core.sram(b)) for b in BUFFERS}
        return next(data_differences(images, memories), None)
