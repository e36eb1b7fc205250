"""How fast whole streams are encoded and decoded: `python benchmarks/isa_encoding.py`.

Prints million instructions per minute (the aim is 10 each way), for a stream in which every kind
of instruction occurs and every field is random.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np

from vta_isa import (
    INSN_DTYPE,
    Machine,
    Opcode,
    decode_stream,
    encode_stream,
    layouts,
    load_machine,
)

ROUNDS = 3  # the best one counts


def random_table(machine: Machine, count: int, seed: int = 1) -> np.ndarray:
    """(count,) INSN_DTYPE with every field drawn from all it can hold."""
    rng = np.random.default_rng(seed)
    table = np.zeros(count, dtype=INSN_DTYPE)
    table["opcode"] = rng.integers(0, len(Opcode), size=count)
    for opcode in Opcode:
        rows = np.flatnonzero(table["opcode"] == opcode)
        layout = layouts(machine).of(opcode)
        assert layout is not None
        for name, slot in layout.slots.items():
            if name != "opcode":
                values = rng.integers(slot.field.low, slot.field.high, rows.size, endpoint=True)
                table[name][rows] = values
    return table


def best_seconds(work: Callable[[], object]) -> float:
    seconds = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--insns", type=int, default=500_000, help="instructions of the stream")
    parser.add_argument("-c", "--config", default="default", help="machine")
    options = parser.parse_args()

    machine = load_machine(options.config)
    table = random_table(machine, options.insns)
    words = encode_stream(table, machine)
    assert (decode_stream(words, machine) == table).all()
    print(f"{options.insns} instructions, machine {machine.name}, best of {ROUNDS}")
    print(f"{'':8}{'seconds':>10}{'M insn / minute':>18}")
    for name, work in {
        "encode": lambda: encode_stream(table, machine),
        "decode": lambda: decode_stream(words, machine),
    }.items():
        seconds = best_seconds(work)
        print(f"{name:8}{seconds:10.3f}{options.insns / seconds * 60 / 1e6:18.0f}")


if __name__ == "__main__":
    main()
