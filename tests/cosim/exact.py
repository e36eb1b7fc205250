"""The long comparison of simulator and RTL: vectors, networks, matrix products, random programs.

    python tests/cosim/exact.py [--programs 200] [--machines tiny,int4,...] [--parts random,...]

A core is compiled when its turn comes, for half a minute or more, and kept. One line per part,
machine and memory model; the first difference of each line is shown below it. Status 1 if there
was any.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

TESTS = Path(__file__).parents[1]
sys.path.insert(0, str(TESTS / "lib"))

import machines  # noqa: E402
import rtl_machines  # noqa: E402
import vector_files  # noqa: E402
from programs import random_program  # noqa: E402

from vta.compile import launched_streams  # noqa: E402
from vta.cosimulation import MEMORIES, with_memory  # noqa: E402
from vta.lockstep import LaunchComparison, Lockstep  # noqa: E402
from vta.workloads import load_workload  # noqa: E402
from vta_isa.machine import Machine, load_machine  # noqa: E402

MACHINES = (*machines.NAMES, "odd")
PARTS = ("vectors", "random", "matmul", "networks")
LAYERS = ("C2", "C11")
# Multiples of no block of any machine, and one of everything.
PRODUCTS = ((1, 1, 1), (1, 17, 33), (7, 37, 53), (3, 100, 19), (29, 13, 130))
PRODUCT_MACHINES = ("default", "tiny", "block8", "batch2", "bus32", "short-queues")
HEADINGS = "part      machine          memory   launches    insns   bursts      cycles"
HEADINGS += "  wrong  kcycles/s: RTL  simulator"


@dataclass
class Row:
    """Sums over the launches of one line of the table."""

    part: str
    machine: str
    memory: str
    launches: int = 0
    insns: int = 0
    bursts: int = 0
    cycles: int = 0
    wrong: int = 0
    rtl: float = 0.0  # seconds
    simulator: float = 0.0
    first: str = ""

    def add(self, run: LaunchComparison, about: str) -> None:
        self.launches += 1
        self.insns += len(run.words)
        self.bursts += run.bursts
        self.cycles += run.cycles
        self.rtl += run.seconds["rtl"]
        self.simulator += run.seconds["simulator"]
        if run.difference is not None:
            self.wrong += 1
            self.first = self.first or f"{about}: {run.difference}\n{run.difference.around}"

    def __str__(self) -> str:
        rates = (self.cycles / max(seconds, 1e-9) / 1e3 for seconds in (self.rtl, self.simulator))
        return (
            f"{self.part:9} {self.machine:16} {self.memory:8} {self.launches:8,} {self.insns:8,} "
            f"{self.bursts:8,} {self.cycles:11,} {self.wrong:6} "
            + " ".join(f"{rate:>13,.0f}" for rate in rates)
        )


def vectors(names: list[str]) -> Iterator[Row]:
    """The conformance streams, on the machines they were made for."""
    for name in vector_files.NAMES:
        found = vector_files.vector(name)
        program = found.program
        for memory in MEMORIES:
            row = Row("vectors", name[:16], memory)
            pair = Lockstep(with_memory(program.machine, memory, seed=1))
            run = pair.launch(program.stream, program.dram)
            row.add(run, name)
            if (run.images[1] != found.after).any():
                row.wrong, row.first = 1, f"{name}: DRAM is not that of dram_out.bin"
            yield row


def random(names: list[str], programs: int, first_seed: int) -> Iterator[Row]:
    """Legal programs made at random, each on a machine fresh from reset."""
    for name in names:
        machine = rtl_machines.machine(name)
        rows = [Row("random", name, memory) for memory in MEMORIES]
        for seed in range(first_seed, first_seed + programs):
            rng = np.random.default_rng([seed, 8])
            program = random_program(rng, machine)
            address = 16 * int(rng.integers(64))
            for row in rows:
                pair = Lockstep(with_memory(machine, row.memory, seed))
                run = pair.launch(program.stream, program.dram, address)
                row.add(run, f"seed {seed}")
        yield from rows


def layers(part: str, name: str, machine: Machine, workload: object) -> Iterator[Row]:
    """Layers as the compiler maps them, with and without virtual threads."""
    loaded = load_workload(workload)  # type: ignore[arg-type]
    for layer in loaded.layers:
        label = f"{layer.name} {name}"
        rows = [Row(part, label, memory) for memory in MEMORIES]
        for vthreads in (True, False):
            streams = launched_streams(layer, machine, vthreads)
            for row in rows:
                pair = Lockstep(with_memory(machine, row.memory, seed=2))
                for number, stream in enumerate(streams):
                    run = pair.launch(stream.words, stream.dram, stream.insn_address)
                    row.add(run, f"vthreads {vthreads}, launch {number}")
        yield from rows


def matmul(names: list[str]) -> Iterator[Row]:
    """Products whose extents are multiples of nothing."""
    products = [
        {"name": f"{m}x{n}x{k}", "kind": "dense", "m": m, "n": n, "k": k} for m, n, k in PRODUCTS
    ]
    for name in names:
        if name in PRODUCT_MACHINES:
            merged: dict[str, Row] = {}
            for row in layers("matmul", name, machines.machine(name), {"layers": products}):
                total = merged.setdefault(row.memory, Row("matmul", name, row.memory))
                for what in ("launches", "insns", "bursts", "cycles", "wrong", "rtl", "simulator"):
                    setattr(total, what, getattr(total, what) + getattr(row, what))
                total.first = total.first or row.first
            yield from merged.values()


def networks(names: list[str]) -> Iterator[Row]:
    """Convolutions of ResNet-18 on the default machine."""
    if "default" in names:
        for layer in LAYERS:
            yield from layers("networks", "", load_machine("default"), f"resnet18/{layer}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", type=int, default=200, help="random ones per machine")
    parser.add_argument("--seed", type=int, default=0, help="of the first random program")
    parser.add_argument("--machines", default=",".join(MACHINES), help="comma-separated")
    parser.add_argument("--parts", default=",".join(PARTS), help="comma-separated")
    asked = parser.parse_args()
    names, parts = asked.machines.split(","), asked.parts.split(",")
    for given, known in ((names, MACHINES), (parts, PARTS)):
        for word in given:
            if word not in known:
                parser.error(f"{word!r} is none of {', '.join(known)}")

    begin = time.perf_counter()
    rows: list[Row] = []
    print(HEADINGS, flush=True)
    for part in parts:
        match part:
            case "vectors":
                found = vectors(names)
            case "random":
                found = random(names, asked.programs, asked.seed)
            case "matmul":
                found = matmul(names)
            case _:
                found = networks(names)
        for row in found:
            rows.append(row)
            print(row, flush=True)
            if row.first:
                print(row.first, flush=True)
    wrong = sum(row.wrong for row in rows)
    print(
        f"{sum(row.launches for row in rows):,} launches, "
        f"{sum(row.insns for row in rows):,} instructions, "
        f"{sum(row.bursts for row in rows):,} bursts, "
        f"{sum(row.cycles for row in rows):,} cycles, "
        f"{wrong} launches that differ, {time.perf_counter() - begin:.0f} s"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
