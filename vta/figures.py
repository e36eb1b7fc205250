"""What a run is measured by, for one layer or a sum of layers."""

from collections.abc import Iterable
from dataclasses import dataclass

from vta_isa.counters import CAUSES, attribution
from vta_isa.launch import Launch

Stalls = dict[str, dict[str, int]]

_BUSY = "busy"
_INSTRUCTIONS = ("load_instructions", "compute_instructions", "store_instructions")


@dataclass(frozen=True)
class Figures:
    """Counts of one or more executions.

    ``stalls`` is ``{stage: {cause: cycles}}``: every cycle in which a stage was not busy; ``busy``
    the same for every other cycle, so that the two of a stage add up to ``cycles``.
    ``peak`` is what the machine can multiply and accumulate in a cycle.
    """

    macs: int
    instructions: int
    cycles: int
    bound_cycles: int
    dram_read_bytes: int
    dram_write_bytes: int
    stalls: Stalls
    busy: Stalls
    peak: int

    @property
    def utilization(self) -> float:
        """MACs the workload asks for over MACs the machine could have done, 0 to 1."""
        return self.macs / (self.cycles * self.peak) if self.cycles else 0.0

    @property
    def distance(self) -> float:
        """Cycles over the bound; 1 is perfect."""
        return self.cycles / self.bound_cycles if self.bound_cycles else 0.0

    def as_json(self) -> dict[str, object]:
        return {
            "macs": self.macs,
            "instructions": self.instructions,
            "cycles": self.cycles,
            "utilization": self.utilization,
            "bound_cycles": self.bound_cycles,
            "dram_read_bytes": self.dram_read_bytes,
            "dram_write_bytes": self.dram_write_bytes,
            "stalls": {stage: dict(causes) for stage, causes in self.stalls.items()},
            "busy": {stage: dict(causes) for stage, causes in self.busy.items()},
        }


def measured(launches: Iterable[Launch], *, macs: int, bound_cycles: int, peak: int) -> Figures:
    """The figures of one execution from the counters of its launches."""
    counters = [launch.counters for launch in launches]

    def total(*names: str) -> int:
        return sum(int(counter[name]) for counter in counters for name in names)

    stalls, busy = no_stalls(), not_busy()
    for counter in counters:
        for stage, causes in attribution(counter).items():
            for cause, cycles in causes.items():
                kind = busy if cause.startswith(_BUSY) else stalls
                kind[stage][cause] += int(cycles)
    return Figures(
        macs=macs,
        instructions=total(*_INSTRUCTIONS),
        cycles=total("cycles"),
        bound_cycles=bound_cycles,
        dram_read_bytes=total("dram_read_bytes"),
        dram_write_bytes=total("dram_write_bytes"),
        stalls=stalls,
        busy=busy,
        peak=peak,
    )


def summed(parts: Iterable[tuple[int, Figures]], peak: int) -> Figures:
    """The figures of running each part so many times, one after the other."""
    parts = list(parts)
    stalls, busy = no_stalls(), not_busy()
    for count, part in parts:
        for sums, addends in ((stalls, part.stalls), (busy, part.busy)):
            for stage, causes in addends.items():
                for cause, cycles in causes.items():
                    sums[stage][cause] += count * cycles
    return Figures(
        macs=sum(count * part.macs for count, part in parts),
        instructions=sum(count * part.instructions for count, part in parts),
        cycles=sum(count * part.cycles for count, part in parts),
        bound_cycles=sum(count * part.bound_cycles for count, part in parts),
        dram_read_bytes=sum(count * part.dram_read_bytes for count, part in parts),
        dram_write_bytes=sum(count * part.dram_write_bytes for count, part in parts),
        stalls=stalls,
        busy=busy,
        peak=peak,
    )


def no_stalls() -> Stalls:
    """Zero for every cause a stage may be not busy for."""
    return {
        stage: {cause: 0 for cause in causes if not cause.startswith(_BUSY)}
        for stage, causes in CAUSES.items()
    }


def not_busy() -> Stalls:
    """Zero for everything a stage may be busy with."""
    return {
        stage: {cause: 0 for cause in causes if cause.startswith(_BUSY)}
        for stage, causes in CAUSES.items()
    }
