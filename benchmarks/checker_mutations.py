"""How many wrong streams the checker flags: mutants of correct ones, executed in random orders.

    python benchmarks/checker_mutations.py [--mutants N] [--orders N] [--seed N]

Correct streams are the test vectors, random programs for several machines, and small layers
compiled for `tiny`. Of each, --mutants with one thing wrong are made (a token or flag deleted or
moved, a pad shrunk, an address shifted) and executed in --orders token-legal orders. Ends with
status 1 if a mutant that matters was missed.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "lib"))

import machines  # noqa: E402
from mutants import Score, Subject, judge, subject  # noqa: E402
from programs import random_program  # noqa: E402

from vta.compile import launched_streams  # noqa: E402
from vta.workloads import Add, Conv2d, Dense, Relu  # noqa: E402
from vta_isa.encoding import decode_stream  # noqa: E402
from vta_isa.machine import load_machine  # noqa: E402

LAYERS = (
    Dense(name="dense", m=2, k=8, n=12),
    Dense(name="odd-dense", m=5, k=7, n=9),
    Add(name="add", length=150),
    Relu(name="relu", length=77),
    Conv2d(name="conv", height=4, width=4, in_channels=4, out_channels=8, kernel=3, padding=1),
    Conv2d(name="strided", height=5, width=5, in_channels=4, out_channels=4, kernel=3, stride=2),
)
RANDOM_MACHINES = ("smallest", "tiny", "int4", "short-queues", "bus32", "batch4-wide-out")


def subjects(seed: int) -> Iterator[Subject]:
    for folder in sorted((ROOT / "tests" / "vectors").iterdir()):
        machine = load_machine(json.loads((folder / "meta.json").read_text())["config"])
        table = decode_stream((folder / "insn.bin").read_bytes(), machine)
        yield subject(folder.name, table, np.fromfile(folder / "dram.bin", np.uint8), machine)
    tiny = load_machine("tiny")
    for layer in LAYERS:
        for vthreads in (False, True):
            for stream in launched_streams(layer, tiny, vthreads):
                assert stream.dram is not None
                table = decode_stream(stream.words, tiny)
                name = f"{layer.name}{', threads' * vthreads} ({len(table)})"
                yield subject(name, table, stream.dram, tiny)
    for name in RANDOM_MACHINES:
        for number in range(2):
            rng = np.random.default_rng([seed, number])
            program = random_program(rng, machines.machine(name), size=25, data_bytes=2048)
            yield subject(f"random, {name}", program.table, program.dram, program.machine)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mutants", type=int, default=60, help="of each stream")
    parser.add_argument("--orders", type=int, default=20, help="executions of each mutant, at most")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    score = Score()
    for each in subjects(given.seed):
        begin = time.perf_counter()
        rng = np.random.default_rng([given.seed, len(each.name)])
        judge(each, rng, count=given.mutants, orders=given.orders, score=score)
        print(f"{each.name:32} {time.perf_counter() - begin:7.1f} s", flush=True)
    print(f"\nseed {given.seed}: {score.mutants} mutants\n{score}")
    for line in score.missed:
        print(f"MISSED {line}")
    return bool(score.missed)


if __name__ == "__main__":
    sys.exit(main())
