"""Machines that the RTL is tested on in every run: few, and quick to compile or to simulate."""

from functools import cache

import machines
import numpy as np

from vta_isa.errors import MachineError
from vta_isa.machine import Machine, load_machine

# Small, and unlike the presets wherever a machine can be: banks in every memory, sub-byte scalars,
# two rows, two products per multiplier, late memory, a second ACC read port, GEMM that overwrites.
ODD = {
    "name": "odd",
    "gemm": {"batch": 2, "block_in": 2, "block_out": 8, "packing": 2},
    "types": {"inp": "int4", "wgt": "int2", "out": "int4"},
    "sram": {"uop": "512 B", "inp": "512 B", "wgt": "512 B", "acc": "4 KiB"},
    "axi": {"data_bits": 256, "burst_beats": 8, "outstanding_reads": 3, "addr_bits": 40},
    "queues": {"command": 3, "token": 2},
    "alu": {"tensor_interval": 1},
    "memory": {"read_latency": 11, "write_latency": 3, "jitter": 5},
    "extensions": {"gemm_overwrite": True},
}


@cache
def machine(name: str) -> Machine:
    """``odd``, or one of ``machines``."""
    return load_machine(ODD) if name == "odd" else machines.machine(name)


def random_machine(rng: np.random.Generator) -> Machine:
    """Any machine that can be encoded and is quick to compile; the extremes come up often."""
    while True:
        batch, block_in, block_out = (int(1 << rng.integers(high)) for high in (3, 4, 4))
        inp, wgt = (f"int{1 << rng.integers(1, 5)}" for _ in range(2))
        acc = f"int{1 << rng.integers(4, 6)}"
        out = f"int{1 << rng.integers(1, 6)}"
        bits = {name: int(kind[3:]) for name, kind in (("inp", inp), ("wgt", wgt), ("acc", acc))}
        entries = {
            "uop": 32,
            "inp": batch * block_in * bits["inp"],
            "wgt": block_out * block_in * bits["wgt"],
            "acc": batch * block_out * bits["acc"],
        }
        description = {
            "gemm": {"batch": batch, "block_in": block_in, "block_out": block_out}
            | {"packing": int(rng.integers(1, 3))},
            "types": {"inp": inp, "wgt": wgt, "acc": acc, "out": out},
            "sram": {
                name: int(size << rng.integers(1, 8)) // 8 or 1 for name, size in entries.items()
            },
            "axi": {
                "data_bits": int(32 << rng.integers(5)),
                "addr_bits": int(rng.integers(20, 65)),
                "burst_beats": int(1 << rng.integers(9)),
                "outstanding_reads": int(rng.integers(1, 9)),
            },
            "queues": {"command": int(rng.integers(1, 9)), "token": int(rng.integers(1, 5))},
            "alu": {"tensor_interval": int(rng.integers(1, 5))},
            "memory": {
                "read_latency": int(rng.integers(1, 60)),
                "write_latency": int(rng.integers(1, 20)),
                "jitter": int(rng.integers(1 << 16)) if rng.random() < 0.5 else None,
            },
            "extensions": {"gemm_overwrite": bool(rng.integers(2))},
        }
        try:
            return load_machine(description)
        except MachineError:
            continue
