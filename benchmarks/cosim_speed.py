"""Simulator and verilated RTL on the same streams: simulated cycles per second of host time.

    python benchmarks/cosim_speed.py [-c MACHINE] [WORKLOAD/LAYER ...]

By default on ResNet-18's C2. Both run the same launches in this process; the simulator is timed
several times, with timing and function as ``vta run`` uses it, and the best time counts; the RTL is
timed once. Besides the time on the clock, the processor time is shown: on a machine that others
use, too, it is the better measure. Compilation and loading are in neither. Wanted: the RTL at 0.1
Mcycle/s or more, the simulator at 50 or more, and 500 times the RTL.
"""

import argparse
import time
from collections.abc import Callable

from simulator.machine import Simulator
from vta.compile import launched_streams
from vta.workloads import load_workload
from vta_isa.launch import Launch
from vta_isa.machine import Machine, load_machine
from vta_runtime import Stream
from vta_runtime.devices.rtl import make_core

REPEATS = 7


def measure(run: Callable[[], list[Launch]]) -> tuple[int, float, float]:
    """Cycles, seconds on the clock, seconds of processor time."""
    clock, processor = time.perf_counter(), time.process_time()
    launches = run()
    clock, processor = time.perf_counter() - clock, time.process_time() - processor
    return sum(launch.cycles for launch in launches), clock, processor


def on_rtl(streams: list[Stream], machine: Machine) -> list[Launch]:
    core = make_core(machine)
    return [core.launch(s.words, s.dram.copy(), s.insn_address) for s in streams]


def simulators(
    streams: list[Stream], machine: Machine, *, function: bool
) -> Callable[[], list[Launch]]:
    """What is timed; making the simulator and copying DRAM is done before."""
    simulator = Simulator(machine, function=function)
    images = [stream.dram.copy() for stream in streams]

    def run() -> list[Launch]:
        return [
            simulator.launch(stream.words, image, stream.insn_address)
            for stream, image in zip(streams, images, strict=True)
        ]

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-c", "--machine", default="default", help="preset or YAML file")
    parser.add_argument("workloads", nargs="*", default=["resnet18/C2"])
    asked = parser.parse_args()
    machine = load_machine(asked.machine)
    make_core(machine)  # compiles

    print(
        f"{'layer':14} {'':17} {'cycles':>10} {'clock s':>9} {'Mcycle/s':>9}"
        f" {'processor s':>12} {'Mcycle/s':>9}"
    )
    for workload in asked.workloads:
        for layer in load_workload(workload).layers:
            streams = launched_streams(layer, machine, vthreads=True)
            times = {"RTL": measure(lambda streams=streams: on_rtl(streams, machine))}
            for label, function in (("simulator", True), ("simulator, timing", False)):
                run = simulators(streams, machine, function=function)
                run()  # compiles the engines
                times[label] = min((measure(run) for _ in range(REPEATS)), key=lambda t: t[1])
            for label, (cycles, clock, processor) in times.items():
                print(
                    f"{layer.name:14} {label:17} {cycles:10,} {clock:9.4f}"
                    f" {cycles / clock / 1e6:9.3f} {processor:12.4f}"
                    f" {cycles / processor / 1e6:9.3f}"
                )
                assert cycles == times["RTL"][0], "simulator and RTL disagree; see vta cosim"
            for number, measured in ((1, "the clock"), (2, "processor time")):
                rates = {label: found[0] / found[number] for label, found in times.items()}
                ratio = rates["simulator"] / rates["RTL"]
                print(f"{layer.name:14} simulator / RTL by {measured}: {ratio:,.0f}")


if __name__ == "__main__":
    main()
