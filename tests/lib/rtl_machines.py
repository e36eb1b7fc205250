"""Machines that the RTL is tested on in every run: few, and quick to compile or to simulate."""

from functools import cache

import machines

from vta_isa.machine import Machine, load_machine

# Small, and unlike the presets wherever a machine can be: banks in every memory, sub-byte scalars,
# two rows, late memory, a second ACC read port.
ODD = {
    "name": "odd",
    "gemm": {"batch": 2, "block_in": 2, "block_out": 8},
    "types": {"inp": "int4", "wgt": "int2", "out": "int4"},
    "sram": {"uop": "512 B", "inp": "512 B", "wgt": "512 B", "acc": "4 KiB"},
    "axi": {"data_bits": 256, "burst_beats": 8, "outstanding_reads": 3, "addr_bits": 40},
    "queues": {"command": 3, "token": 2},
    "alu": {"tensor_interval": 1},
    "memory": {"read_latency": 11, "write_latency": 3, "jitter": 5},
}


@cache
def machine(name: str) -> Machine:
    """``odd``, or one of ``machines``."""
    return load_machine(ODD) if name == "odd" else machines.machine(name)
