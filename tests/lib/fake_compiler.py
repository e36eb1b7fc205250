"""A compiler and a device in one, for tests of what stands above them: exact, and instant."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from vta.bounds import bound
from vta.reference_ops import reference
from vta.workloads import Layer
from vta_isa.counters import COUNTERS
from vta_isa.launch import Launch, Timeline
from vta_isa.machine import Machine
from vta_runtime import Stream

Ints = NDArray[np.integer]


def fake_launch(cycles: int, **counters: int) -> Launch:
    """A launch of so many cycles, in which every stage idled except as ``counters`` say."""
    every = {counter.name: 0 for counter in COUNTERS} | {"cycles": cycles} | counters
    for stage in ("fetch", "load", "compute", "store"):
        causes = [name for name in every if name.startswith(f"{stage}_") and name in _CAUSES]
        every[f"{stage}_idle"] = cycles - sum(every[name] for name in causes)
    nothing = np.zeros(0, dtype=np.int64)
    return Launch(cycles, every, Timeline(nothing.astype(np.int8), nothing, nothing, nothing))


_CAUSES = {counter.name for counter in COUNTERS if counter.unit == "cycle"} - {"cycles"}


@dataclass(frozen=True)
class FakeProgram:
    layer: Layer
    machine: Machine
    launches: list[Launch]
    wrong: bool

    def run(
        self,
        arrays: Mapping[str, Ints],
        device: str,
        *,
        waves: object = None,
        streams: list[Stream] | None = None,
    ) -> tuple[Ints, list[Launch]]:
        assert streams is None, "a fake launch has no stream"
        output = reference(self.layer, arrays, self.machine).copy()
        if self.wrong:
            output.flat[-1] ^= 1
        return output, self.launches


@dataclass
class FakeCompiler:
    """Callable as ``compile_with``; layers named in ``wrong`` get one wrong output.

    With virtual threads a layer takes 1.1 x its bound, without them 1.5 x.
    """

    wrong: tuple[str, ...] = ()
    error: Exception | None = None
    compiled: list[tuple[str, bool]] = field(default_factory=list)

    def __call__(self, layer: Layer, machine: Machine, vthreads: bool) -> FakeProgram:
        self.compiled.append((layer.name, vthreads))
        if self.error is not None:
            raise self.error
        limits = bound(layer, machine)
        cycles = limits.cycles * (11 if vthreads else 15) // 10 + 5
        launch = fake_launch(
            cycles,
            compute_wait_dram=cycles // 20,
            load_wait_compute=cycles // 4,
            load_instructions=7,
            compute_instructions=11,
            store_instructions=3,
            dram_read_bytes=limits.read * machine.bus_bytes,
            dram_write_bytes=limits.write * machine.bus_bytes,
        )
        return FakeProgram(layer, machine, [launch], layer.name in self.wrong)
