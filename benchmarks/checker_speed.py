"""How fast streams are checked: instructions per second, decoding included.

    python benchmarks/checker_speed.py [-c MACHINE]

The streams are those of the layers of `resnet18` as the compiler makes them, one launch after the
other and each checked by itself; and, for what a long stream costs, the longest of them many times
over. Each is checked several times in this process, and the best time counts (the first, untimed
check compiles the passes or loads them from the cache).
"""

import argparse
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from simulator.checker import Checker, errors
from vta.compile import launched_streams
from vta.workloads import load_workload
from vta_isa.machine import load_machine
from vta_runtime import Stream

REPEATS = 20
COPIES = (1, 20, 200)


def best_time(run: Callable[[], object], repeats: int = REPEATS) -> float:
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return min(times)


def report(name: str, insns: int, seconds: float) -> None:
    print(f"{name:24} {insns:8d} {seconds * 1e3:10.2f} {insns / seconds / 1e6:10.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-c", "--machine", default="default", help="preset or YAML file")
    machine = load_machine(parser.parse_args().machine)
    layers = load_workload("resnet18").layers
    streams: list[Stream] = []
    for layer in layers:
        streams += launched_streams(layer, machine, True)

    begin = time.perf_counter()
    Checker(machine).check(streams[0].words, streams[0].dram)
    print(f"{machine.name}; first check in this process: {time.perf_counter() - begin:.2f} s")
    print(f"{'stream':24} {'insns':>8} {'ms':>10} {'Minsn/s':>10}")

    def seconds(words: NDArray[np.uint64], dram: NDArray[np.uint8] | None) -> float:
        return best_time(lambda: Checker(machine).check(words, dram))

    for stream in streams:
        assert not errors(Checker(machine).check(stream.words, stream.dram))
    total = sum(len(stream.words) for stream in streams)
    spent = sum(seconds(stream.words, stream.dram) for stream in streams)
    report(f"resnet18, {len(streams)} launches", total, spent)
    stream = max(streams, key=lambda each: len(each.words))
    for copies in COPIES:
        words = np.concatenate([np.tile(stream.words[:-1], (copies, 1)), stream.words[-1:]])
        report(f"longest launch x {copies}", len(words), seconds(words, stream.dram))


if __name__ == "__main__":
    main()
