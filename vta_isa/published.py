"""The published ``vta_config.json`` format, translated to a machine description.

Its numbers are log2; its TARGET names a board, which here stands for a clock and a bus width.
"""

import logging
from collections.abc import Mapping
from typing import Any

from .errors import MachineError
from .suggest import did_you_mean

log = logging.getLogger("vta.isa")

# fmt: off
# log2 key -> its default, in the published default configuration
LOG_KEYS = {
    "LOG_INP_WIDTH":      3,
    "LOG_WGT_WIDTH":      3,
    "LOG_ACC_WIDTH":      5,
    "LOG_BATCH":          0,
    "LOG_BLOCK":          4,
    "LOG_UOP_BUFF_SIZE": 15,
    "LOG_INP_BUFF_SIZE": 15,
    "LOG_WGT_BUFF_SIZE": 18,
    "LOG_ACC_BUFF_SIZE": 17,
}
# Written by the published configuration script, read by nothing: allowed where consistent.
DERIVED_KEYS = ("LOG_BLOCK_IN", "LOG_BLOCK_OUT", "LOG_OUT_WIDTH", "LOG_OUT_BUFF_SIZE")
REVISIONS = ("0.0.1", "0.0.2")
# TARGET -> clock, bus bits
TARGETS = {
    "sim":       ("100 MHz", 64),
    "tsim":      ("100 MHz", 64),
    "pynq":      ("100 MHz", 64),
    "ultra96":   ("333 MHz", 128),
    "zcu104":    ("333 MHz", 128),
    "de10nano":  ("100 MHz", 64),
    "intelfocl": ("100 MHz", 64),
}
# fmt: on
KNOWN = ("TARGET", "HW_VER", *LOG_KEYS, *DERIVED_KEYS)
MACRO_PREFIX = "VTA_"  # the C macros carry it; the JSON files do not
LARGEST_LOG = 30


def is_published(keys: Mapping[str, Any]) -> bool:
    """Whether a mapping is of this format: one of its keys is in capitals."""
    return any(isinstance(key, str) and key.isupper() for key in keys)


def from_published(keys: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a machine description; missing ones take the published default.

    HW_VER 0.0.1 is accepted: the numbers mean the same, and one published file of revision B
    carries it by mistake. Streams made by software of revision A do not decode, though: their
    buffer and ALU operation fields have one bit less.
    """
    given = {key.removeprefix(MACRO_PREFIX): value for key, value in keys.items()}
    problems = [f"unknown key {k!r}{did_you_mean(k, KNOWN)}" for k in given if k not in KNOWN]
    target = given.get("TARGET", "sim")
    if target not in TARGETS:
        problems.append(f"TARGET = {target!r} is unknown{did_you_mean(str(target), TARGETS)}")
    revision = given.get("HW_VER", REVISIONS[-1])
    if revision not in REVISIONS:
        problems.append(f"HW_VER = {revision!r} is unknown; known: {', '.join(REVISIONS)}")
    for key in (*LOG_KEYS, *DERIVED_KEYS):
        value = given.get(key, 0)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= LARGEST_LOG:
            problems.append(f"{key} = {value!r} is no log2; allowed are 0 to {LARGEST_LOG}")
    if not problems:
        log2 = LOG_KEYS | {key: given[key] for key in LOG_KEYS if key in given}
        problems += _inconsistent(given, log2)
    if problems:
        raise MachineError("; ".join(problems))
    if revision == "0.0.1":
        log.info("HW_VER 0.0.1: read as revision B; streams of revision A software do not decode")
    return _description(target, log2)


def _inconsistent(given: Mapping[str, Any], log2: Mapping[str, int]) -> list[str]:
    derived = {
        "LOG_BLOCK_IN": log2["LOG_BLOCK"],
        "LOG_BLOCK_OUT": log2["LOG_BLOCK"],
        "LOG_OUT_WIDTH": log2["LOG_INP_WIDTH"],
        "LOG_OUT_BUFF_SIZE": log2["LOG_ACC_BUFF_SIZE"]
        + log2["LOG_INP_WIDTH"]
        - log2["LOG_ACC_WIDTH"],
    }
    return [
        f"{key} = {given[key]} contradicts the other keys, which make it {derived[key]}; remove it"
        for key in DERIVED_KEYS
        if key in given and given[key] != derived[key]
    ]


def _description(target: str, log2: Mapping[str, int]) -> dict[str, Any]:
    clock, bus_bits = TARGETS[target]
    inp, wgt, acc = (1 << log2[f"LOG_{name}_WIDTH"] for name in ("INP", "WGT", "ACC"))
    batch, block = 1 << log2["LOG_BATCH"], 1 << log2["LOG_BLOCK"]
    log_sizes = {name: log2[f"LOG_{name.upper()}_BUFF_SIZE"] for name in _SRAMS}
    design = f"{batch}x{block}_i{inp}w{wgt}a{acc}_" + "_".join(map(str, log_sizes.values()))
    return {
        "name": f"{target}_{design}",
        "gemm": {"batch": batch, "block_in": block, "block_out": block},
        "types": {"inp": f"int{inp}", "wgt": f"int{wgt}", "acc": f"int{acc}", "out": f"int{inp}"},
        "sram": {name: 1 << log_size for name, log_size in log_sizes.items()},
        "axi": {"data_bits": bus_bits},
        "clock": clock,
    }


_SRAMS = ("uop", "inp", "wgt", "acc")
