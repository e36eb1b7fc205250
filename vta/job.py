"""The main job: compile every layer of a workload, run it on a device, check every number."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vta_isa import load_machine
from vta_isa.errors import VtaError, WorkloadError
from vta_isa.launch import Launch
from vta_isa.machine import Machine
from vta_isa.suggest import did_you_mean
from vta_isa.version import __version__
from vta_runtime import Stream
from vta_runtime.devices.rtl import WavesWanted

from .bounds import bound
from .compile import DEVICES, CompileLayer, compile_layer
from .figures import Figures, measured, summed
from .reference_ops import reference
from .waves import check_one_layer
from .workload_data import make_arrays
from .workloads import Layer, Workload, about_layer, load_workload

# Called before each layer with its name, its number from 0, and how many there are; and once more
# at the end, with an empty name.
Progress = Callable[[str, int, int], None]
# Called after each layer with the machine, and with the words (n, 2) and the launch of each stream.
Watch = Callable[[Layer, Machine, Sequence[tuple[NDArray[np.uint64], Launch]]], None]


class WrongResult(VtaError):
    """A device computed something else than the reference did."""


@dataclass(frozen=True)
class LayerReport:
    """One layer, run once and found right; ``count`` is how often the network runs it."""

    name: str
    kind: str
    count: int
    figures: Figures
    limit: str  # what sets the bound: compute, read or write
    outputs: int  # numbers compared with the reference
    seconds: dict[str, float]  # host time: data and reference, compile, run

    def as_json(self) -> dict[str, object]:
        return {
            "name": self.name,
            "kind": self.kind,
            "count": self.count,
            **self.figures.as_json(),
            "bound_limit": self.limit,
            "checked": True,  # a wrong number raises, so a report holds none
            "outputs": self.outputs,
            "seconds": dict(self.seconds),
        }


@dataclass(frozen=True)
class RunReport:
    """A workload's run: every layer, and sums in which a layer counts as often as it is run."""

    workload: Workload
    machine: Machine
    device: str
    vthreads: bool
    layers: tuple[LayerReport, ...]

    @property
    def total(self) -> Figures:
        """All layers."""
        return self._sum(self.layers)

    @property
    def totals(self) -> dict[str, Figures]:
        """The partial sums the workload asks for, by label."""
        return {
            label: self._sum(tuple(layer for layer in self.layers if layer.name in names))
            for label, names in self.workload.totals.items()
        }

    def _sum(self, layers: tuple[LayerReport, ...]) -> Figures:
        return summed(
            ((layer.count, layer.figures) for layer in layers), self.machine.macs_per_cycle
        )

    def as_json(self) -> dict[str, object]:
        """Plain data that ``json`` writes and reads back unchanged."""
        return {
            "version": __version__,
            "workload": self.workload.name,
            "machine": {"hash": self.machine.hash, **self.machine.model_dump(mode="json")},
            "device": self.device,
            "vthreads": self.vthreads,
            "layers": [layer.as_json() for layer in self.layers],
            "total": {**self.total.as_json(), "checked": True},
            "totals": {label: sums.as_json() for label, sums in self.totals.items()},
        }


@dataclass(frozen=True)
class Comparison:
    """The same workload without and with virtual threads."""

    without: RunReport
    threaded: RunReport

    def as_json(self) -> dict[str, object]:
        """The run with virtual threads, and under ``without_vthreads`` the other one."""
        return {**self.threaded.as_json(), "without_vthreads": self.without.as_json()}


def run(
    workload: str | Path | Mapping[str, object] | Workload,
    machine: str | Path | Mapping[str, object] | Machine = "default",
    *,
    device: str = "simulator",
    vthreads: bool = True,
    waves: WavesWanted | None = None,
    progress: Progress | None = None,
    watch: Watch | None = None,
    compile_with: CompileLayer = compile_layer,
) -> RunReport:
    """Compile, run and check each layer of ``workload`` on random data from a fixed seed.

    Every output is compared with ``vta.reference_ops``; the first difference raises
    ``WrongResult``. ``device`` is ``simulator``, ``reference``, the slow judge, or ``rtl``, the
    hardware itself compiled by Verilator. ``waves``, of one layer on ``rtl``, is a VCD or FST file
    for every signal, the first cycle to write there and the one behind the last. ``watch`` is shown
    what each layer launched, with every DRAM burst in the timelines.
    """
    loaded = load_workload(workload)
    target = load_machine(machine)
    if device not in DEVICES:
        raise WorkloadError(f"there is no device {device!r}{did_you_mean(device, DEVICES)}")
    if waves is not None:
        if device != "rtl":
            raise WorkloadError(f"{waves[0]}: the {device} has no signals to write; use rtl")
        check_one_layer(loaded, waves)
    layers = []
    for number, layer in enumerate(loaded.layers):
        if progress is not None:
            progress(layer.name, number, len(loaded.layers))
        with about_layer(loaded, layer):
            report = _run_layer(layer, target, device, vthreads, waves, watch, compile_with)
            layers.append(report)
    if progress is not None:
        progress("", len(loaded.layers), len(loaded.layers))
    return RunReport(loaded, target, device, vthreads, tuple(layers))


def compare(
    workload: str | Path | Mapping[str, object] | Workload,
    machine: str | Path | Mapping[str, object] | Machine = "default",
    *,
    device: str = "simulator",
    progress: Progress | None = None,
    compile_with: CompileLayer = compile_layer,
) -> Comparison:
    """``run`` without virtual threads, then with them."""
    without, threaded = (
        run(
            workload,
            machine,
            device=device,
            vthreads=vthreads,
            progress=progress,
            compile_with=compile_with,
        )
        for vthreads in (False, True)
    )
    return Comparison(without, threaded)


def _run_layer(
    layer: Layer,
    machine: Machine,
    device: str,
    vthreads: bool,
    waves: WavesWanted | None,
    watch: Watch | None,
    compile_with: CompileLayer,
) -> LayerReport:
    begin = time.perf_counter()
    arrays = make_arrays(layer, machine)
    expected = reference(layer, arrays, machine)
    checked = time.perf_counter()
    program = compile_with(layer, machine, vthreads)
    compiled = time.perf_counter()
    streams: list[Stream] | None = None if watch is None else []
    output, launches = program.run(arrays, device, waves=waves, streams=streams)
    end = time.perf_counter()
    check_output(output, expected, device)
    if watch is not None and streams is not None:
        words = [stream.words for stream in streams]
        watch(layer, machine, list(zip(words, launches, strict=True)))
    limits = bound(layer, machine)
    return LayerReport(
        name=layer.name,
        kind=layer.kind,
        count=layer.count,
        figures=measured(
            launches, macs=layer.macs, bound_cycles=limits.cycles, peak=machine.macs_per_cycle
        ),
        limit=limits.limit,
        outputs=expected.size,
        seconds={
            "reference": checked - begin,
            "compile": compiled - checked,
            "run": end - compiled,
        },
    )


def check_output(output: NDArray[np.integer], expected: NDArray[np.integer], device: str) -> None:
    """Raise ``WrongResult`` with the first element that is not as expected."""
    if output.shape != expected.shape:
        raise WrongResult(
            f"the {device} gave an output of shape {output.shape}, expected {expected.shape}"
        )
    wrong = np.argwhere(output != expected)
    if len(wrong):
        index = tuple(int(axis) for axis in wrong[0])
        place = ", ".join(str(axis) for axis in index)
        raise WrongResult(
            f"wrong number from the {device}: output[{place}] = {output[index]}, "
            f"expected {expected[index]} ({len(wrong)} of {expected.size} differ)"
        )
