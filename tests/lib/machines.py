"""Machines worth testing on: every shape, type and size that has a code path of its own."""

from vta_isa.machine import Machine, load_machine

SMALL = {"uop": "1 KiB", "inp": "2 KiB", "wgt": "8 KiB", "acc": "8 KiB"}

# Name -> description; whatever is left out has its published default.
DESCRIPTIONS: dict[str, str | dict[str, object]] = {
    "default": "default",
    "tiny": "tiny",
    "batch2": {"gemm": {"batch": 2}},
    "batch4-wide-out": {"gemm": {"batch": 4, "block_in": 8, "block_out": 32}, "sram": SMALL},
    "wide-in": {"gemm": {"block_in": 32, "block_out": 8}, "sram": SMALL},
    "block8": {"gemm": {"block_in": 8, "block_out": 8}, "sram": SMALL},
    "block32": {
        "gemm": {"block_in": 32, "block_out": 32},
        "sram": {"uop": "4 KiB", "inp": "8 KiB", "wgt": "64 KiB", "acc": "32 KiB"},
    },
    "int4": {"types": {"inp": "int4", "wgt": "int4", "out": "int4"}, "sram": SMALL},
    "int2-weights": {"types": {"wgt": "int2"}, "sram": SMALL},
    "int16": {"types": {"inp": "int16", "out": "int16"}, "sram": SMALL},
    "int16-acc": {"types": {"inp": "int4", "wgt": "int4", "acc": "int16"}, "sram": SMALL},
    "packed": {"gemm": {"batch": 2, "block_in": 8, "block_out": 4, "packing": 2}, "sram": SMALL},
    "bus32": {"axi": {"data_bits": 32, "burst_beats": 16}, "sram": SMALL},
    "bus512": {"axi": {"data_bits": 512, "outstanding_reads": 1}, "sram": SMALL},
    "fast-alu": {"alu": {"tensor_interval": 1}, "axi": {"data_bits": 128}, "sram": SMALL},
    "extended": {
        "gemm": {"block_in": 8, "block_out": 8},
        "sram": SMALL,
        "extensions": {"gemm_overwrite": True, "alu_requantize": True},
    },
    # Their fields are split over what narrow indices leave unused; accumulators wrap soon.
    "extended-tiny": {
        "base": "tiny",
        "gemm": {"batch": 2},
        "types": {"acc": "int16"},
        "alu": {"tensor_interval": 1},
        "extensions": {"gemm_overwrite": True, "alu_requantize": True},
    },
    "short-queues": {"queues": {"command": 2, "token": 1}, "sram": SMALL},
    "smallest": {
        "gemm": {"block_in": 8, "block_out": 8},
        "sram": {"uop": 64, "inp": 64, "wgt": 512, "acc": 512},
    },
    "many-inputs": {
        "sram": {"uop": "32 KiB", "inp": "128 KiB", "wgt": "64 KiB", "acc": "64 KiB"},
        "memory": {"read_latency": 100, "write_latency": 30, "jitter": 7},
    },
}


def machine(name: str) -> Machine:
    """The machine of that name in ``DESCRIPTIONS``."""
    description = DESCRIPTIONS[name]
    if isinstance(description, str):
        return load_machine(description)
    return load_machine({"name": name, **description})


NAMES = tuple(DESCRIPTIONS)
