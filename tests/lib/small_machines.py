"""The machines of the benches."""

import machines
import vector_files

from vta_isa.machine import Machine, load_machine

# Unlike `tiny` wherever a machine can be: banks in every memory, sub-byte scalars, two rows, two
# products per multiplier, a second ACC read port, shorter queues, wider addresses,
# GEMM that overwrites.
ODD = {
    "name": "odd",
    "gemm": {"batch": 2, "block_in": 2, "block_out": 8, "packing": 2},
    "types": {"inp": "int4", "wgt": "int2", "out": "int4"},
    "sram": {"uop": "512 B", "inp": "512 B", "wgt": "512 B", "acc": "4 KiB"},
    "axi": {"data_bits": 256, "burst_beats": 8, "outstanding_reads": 3, "addr_bits": 40},
    "queues": {"command": 3, "token": 2},
    "alu": {"tensor_interval": 1},
    "extensions": {"gemm_overwrite": True},
}


# Only an ALU is made of it.
REQUANTIZE = {
    "base": "tiny",
    "gemm": {"block_out": 2},
    "types": {"acc": "int16", "out": "int16"},
    "extensions": {"alu_requantize": True},
}


def machine_of(name: str) -> Machine:
    """The machine of that name.

    One of the above; ``long-bursts``, whose reads fill the window of outstanding beats; one of
    ``machines``; that of a conformance vector; or a preset.
    """
    if name == "long-bursts":
        return load_machine("tiny").replace(axi={"burst_beats": 64, "outstanding_reads": 8})
    if name in machines.NAMES:
        return machines.machine(name)
    if name in vector_files.NAMES:
        return vector_files.machine_of_vector(name)
    return load_machine({"odd": ODD, "requantize": REQUANTIZE}.get(name, name))
