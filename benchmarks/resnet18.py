"""ResNet-18 on a machine: cycles against bounds, and what the host spends to get them.

    python benchmarks/resnet18.py [-c MACHINE] [--read-latency CYCLES] [--repeat N] [--json]

Every convolution of the workload is compiled once and its stream captured. Then all streams of
C2 to C12, each as often as the network runs the layer, go through the simulator: binary stream in,
DRAM image and cycle count out, decoding and checks included, on a simulator that is warm. The time
is CPU time of the process, the best of several passes; results are compared with NumPy before.
"""

import argparse
import json
import time

import numpy as np
from rich.console import Console
from rich.table import Table

from simulator.machine import Simulator
from vta.bounds import bound
from vta.compile import compile_layer
from vta.reference_ops import reference
from vta.workload_data import make_arrays
from vta.workloads import load_workload
from vta_isa import load_machine
from vta_runtime import Runtime, SimulatorDevice


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-c", dest="machine", default="default", help="preset or YAML file")
    parser.add_argument("--read-latency", type=int, help="of the DRAM; the published one is 16")
    parser.add_argument("--repeat", type=int, default=10, help="passes; the best one counts")
    parser.add_argument("--json", action="store_true", help="the same figures as JSON")
    options = parser.parse_args()

    machine = load_machine(options.machine)
    if options.read_latency is not None:
        machine = machine.replace(memory={"read_latency": options.read_latency})
    workload = load_workload("resnet18")
    counted = set(workload.totals["C2-C12"])
    rows, streams = [], []
    compile_seconds = 0.0
    for layer in workload.layers:
        arrays = make_arrays(layer, machine)
        begin = time.process_time()
        compiled = compile_layer(layer, machine, True)
        device = SimulatorDevice(machine, timing=False)
        runtime = Runtime(device, keep_memory=True)
        output = compiled.run_on(runtime, arrays)
        compile_seconds += time.process_time() - begin
        np.testing.assert_array_equal(output, reference(layer, arrays, machine), layer.name)
        (stream,) = runtime.streams
        launch = Simulator(machine).launch(stream.words, stream.dram.copy(), stream.insn_address)
        limit = bound(layer, machine).cycles
        gemm = layer.macs / machine.macs_per_cycle
        rows.append((layer.name, layer.count, launch.cycles, limit, gemm / launch.cycles))
        if layer.name in counted:
            streams += [(stream, stream.dram.copy(), layer)] * layer.count

    simulator = Simulator(machine)
    times = {"function and timing": simulator, "timing": Simulator(machine, function=False)}
    best = {}
    for name, engine in times.items():
        passes = []
        for _ in range(options.repeat):
            begin = time.process_time()
            for stream, dram, _ in streams:
                engine.launch(stream.words, dram, stream.insn_address)
            passes.append(time.process_time() - begin)
        best[name] = min(passes)

    total = sum(row[1] * row[2] for row in rows if row[0] in counted)
    macs = sum(layer.macs for _, _, layer in streams)
    figures = {
        "machine": machine.name,
        "read_latency": machine.memory.read_latency,
        "layers": [
            dict(zip(("name", "count", "cycles", "bound", "utilization"), row, strict=True))
            for row in rows
        ],
        "cycles": total,
        "instructions": sum(len(stream.words) for stream, _, _ in streams),
        "compile_seconds": compile_seconds,
        "simulate_seconds": best["function and timing"],
        "timing_seconds": best["timing"],
        "gmacs_per_second": macs / best["function and timing"] / 1e9,
        "mcycles_per_second": total / best["function and timing"] / 1e6,
    }
    if options.json:
        print(json.dumps(figures, indent=2))
        return
    table = Table(title=f"resnet18 on {machine.name}")
    for heading in ("layer", "count", "cycles", "bound", "cycles/bound", "GEMM use"):
        table.add_column(heading, justify="right")
    for name, count, cycles, limit, use in rows:
        table.add_row(
            name, f"{count}", f"{cycles:,}", f"{limit:,}", f"{cycles / limit:.3f}", f"{use:.1%}"
        )
    console = Console()
    console.print(table)
    peak = macs / machine.macs_per_cycle / total
    console.print(
        f"C2-C12 with multiplicities, memory latency {machine.memory.read_latency}: {total:,} "
        f"cycles, {peak:.1%} of peak, {len(streams)} streams"
    )
    console.print(f"compile and first run, all layers: {compile_seconds:.2f} s")
    rates = "{gmacs_per_second:.0f} GMAC/s, {mcycles_per_second:.0f} M cycles/s".format(**figures)
    both, alone = (1e3 * best[name] for name in times)
    console.print(f"simulate C2-C12, warm: {both:.1f} ms ({rates}); timing alone {alone:.1f} ms")


if __name__ == "__main__":
    main()
