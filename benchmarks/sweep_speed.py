"""How many layers of how many machines a sweep gets through in a second.

    python benchmarks/sweep_speed.py [--json] [--workers]

A layer-point is one layer on one machine. Rates are per second of CPU time, so they say what a core
does that has nothing else to do; each is a mean over all layers of ResNet-18. Every machine is new:

- memory: it differs from the one before in its memory's latency. Streams are compiled already, but
  each layer's tile is chosen again, and a stream is compiled where another tile wins.
- compile: it differs in the bus or a scratchpad, so every layer is tiled, compiled, run, compared
  with NumPy; native kernels of the simulator come from the cache.

`--workers` runs a sweep with one worker and with two and compares the wall time between the first
point and the last, which only tells something on two idle cores.
"""

import argparse
import itertools
import json
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from vta.sweep import run_sweep
from vta.sweep.evaluate import evaluate, forget_programs, load_engines
from vta.workloads import load_workload
from vta_isa import Machine, load_machine

OPTIONS = {"vthreads": True, "tile_candidates": None}


def rate(machines: Iterable[Machine]) -> tuple[float, int]:
    """(layer-points per second of CPU time, layer-points)."""
    workload = load_workload("resnet18")
    begin, count = time.process_time(), 0
    for machine in machines:
        evaluate(workload, machine, OPTIONS)
        count += len(workload.layers)
    return count / (time.process_time() - begin), count


def memories(count: int) -> list[Machine]:
    base = load_machine("default")
    return [base.replace(memory={"read_latency": 24 + 2 * number}) for number in range(count)]


def architectures() -> list[Machine]:
    base = load_machine("default")
    sizes = itertools.product((64, 128), ("32 KiB", "16 KiB"), ("16 KiB", "8 KiB"))
    return [
        base.replace(axi={"data_bits": bits}, sram={"inp": inp, "uop": uop})
        for bits, inp, uop in sizes
    ]


def wall_seconds(workers: int) -> float:
    """From the first finished batch to the last, so that starting up does not count."""
    spec = {
        "name": "speed",
        "axes": {
            "axi.data_bits": [32, 64, 128, 256],
            "axi.outstanding_reads": [4, 16],
            "memory.read_latency": {"from": 16, "to": 256, "step": 16},
        },
        "workloads": ["resnet18"],
        "objectives": ["cycles"],
    }
    times: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        run_sweep(
            spec,
            Path(folder) / "out",
            workers=workers,
            progress=lambda *_: times.append(time.monotonic()),
        )
    return times[-1] - times[0]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--workers", action="store_true", help="one worker against two as well")
    arguments = parser.parse_args()
    load_engines()
    rate(architectures())  # native kernels go to the cache
    figures: dict[str, float] = {}
    forget_programs()
    figures["compile"], compiled = rate(architectures())
    rate(memories(1))
    figures["memory"], shared = rate(memories(20)[1:])
    if arguments.workers:
        figures["one worker, s"], figures["two workers, s"] = wall_seconds(1), wall_seconds(2)
    if arguments.json:
        print(json.dumps(figures, indent=2))
        return
    print(f"memory timing only: {figures['memory']:.1f} layer-points/s per core ({shared})")
    print(f"new compilation:    {figures['compile']:.1f} layer-points/s per core ({compiled})")
    if arguments.workers:
        one, two = figures["one worker, s"], figures["two workers, s"]
        print(f"one worker {one:.1f} s, two {two:.1f} s: {one / two:.2f}x")


if __name__ == "__main__":
    main()
