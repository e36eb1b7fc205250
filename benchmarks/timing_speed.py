"""How fast the timing engine is: instructions, bursts and cycles per second, compiled or not.

    python benchmarks/timing_speed.py [-c MACHINE]

Each stream is timed several times in this process, and the best time counts (a first, untimed run
compiles or loads the engine). Streams are synthetic: what they keep busy is in their name.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from simulator.timing import Timing, simulate
from vta_isa.enums import AluOp, Buffer
from vta_isa.insn import Insn, alu, finish, gemm, load, records, store
from vta_isa.machine import load_machine


def compute_heavy(count: int) -> list[Insn]:
    """GEMMs of 16 iterations and nothing else: one step of the engine per instruction."""
    return [gemm(uops=(0, 1), iters=(1, 16))] * count


def double_buffered(count: int) -> list[Insn]:
    """Load, reset, multiply, shift and store in two threads, as a convolution does."""
    tile: list[Insn] = []
    for first in range(count // 7):
        busy = first > 1  # the buffers of two tiles ago must be free again
        tile += [
            load(Buffer.INP, sram_base=0, dram_base=0, x_size=14, y_size=8, x_stride=56,
                 x_pad=(1, 1), y_pad=(1, 0), pop_next=busy),
            load(Buffer.WGT, sram_base=0, dram_base=0, x_size=9, push_next=True),
            gemm(uops=(0, 8), iters=(4, 14), reset=True, pop_next=busy),
            gemm(uops=(0, 8), iters=(9, 14), pop_prev=True, push_prev=True),
            alu(AluOp.SHR, uops=(0, 8), iters=(1, 14), imm=8),
            alu(AluOp.MIN, uops=(0, 8), iters=(1, 14), imm=127, push_next=True),
            store(sram_base=0, dram_base=0, x_size=14, y_size=8, x_stride=56,
                  pop_prev=True, push_prev=True),
        ]  # fmt: skip
    return tile


def short_rows(count: int) -> list[Insn]:
    """Loads of many short rows by both loaders: one step of the engine per burst."""
    rows = {"sram_base": 0, "dram_base": 0, "x_size": 2, "y_size": 100, "x_stride": 14}
    return [load(Buffer.INP, **rows), load(Buffer.ACC, **rows)] * (count // 2)


STREAMS: dict[str, tuple[Callable[[int], list[Insn]], int]] = {
    "compute heavy": (compute_heavy, 100_000),
    "double buffered": (double_buffered, 28_000),
    "short rows": (short_rows, 2_000),
}


def best_time(run: Callable[[], Timing], repeats: int) -> tuple[float, Timing]:
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        timing = run()
        times.append(time.perf_counter() - begin)
    return min(times), timing


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-c", "--machine", default="default", help="preset or YAML file")
    machine = load_machine(parser.parse_args().machine)

    begin = time.perf_counter()
    simulate(records([finish()]), machine)
    print(f"{machine.name}; first call in this process: {time.perf_counter() - begin:.2f} s")
    print(
        f"{'stream':16} {'':10} {'insns':>7} {'bursts':>8} {'cycles':>10} {'ms':>8}"
        f" {'Minsn/s':>8} {'Mburst/s':>8} {'Mcycle/s':>9}"
    )
    for name, (make, size) in STREAMS.items():
        for compiled, count, repeats in ((True, size, 7), (False, size // 20, 2)):
            table: NDArray[np.void] = records([*make(count), finish()])

            def run(table: NDArray[np.void] = table, compiled: bool = compiled) -> Timing:
                return simulate(table, machine, compiled=compiled)

            seconds, timing = best_time(run, repeats)
            bursts = timing.counters["dram_read_bursts"] + timing.counters["dram_write_bursts"]
            rates = (rate / seconds / 1e6 for rate in (len(table), bursts, timing.cycles))
            print(
                f"{name:16} {'compiled' if compiled else 'uncompiled':10} {len(table):7d}"
                f" {bursts:8d} {timing.cycles:10d} {seconds * 1e3:8.2f}"
                + "".join(f" {rate:8.2f}" for rate in rates)
            )


if __name__ == "__main__":
    main()
