"""The machines of the benches."""

import machines
import rtl_machines
import vector_files

from vta_isa.machine import Machine, load_machine

# Only an ALU is made of it.
REQUANTIZE = {
    "base": "tiny",
    "gemm": {"block_out": 2},
    "types": {"acc": "int16", "out": "int16"},
    "extensions": {"alu_requantize": True},
}


def machine_of(name: str) -> Machine:
    """The machine of that name.

    ``requantize``; ``odd`` of ``rtl_machines``; ``long-bursts``, whose reads fill the window of
    outstanding beats; one of ``machines``; that of a conformance vector; or a preset.
    """
    if name == "long-bursts":
        return load_machine("tiny").replace(axi={"burst_beats": 64, "outstanding_reads": 8})
    if name == "odd" or name in machines.NAMES:
        return rtl_machines.machine(name)
    if name in vector_files.NAMES:
        return vector_files.machine_of_vector(name)
    return load_machine(REQUANTIZE if name == "requantize" else name)
