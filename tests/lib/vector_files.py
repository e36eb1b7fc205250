"""The conformance streams of tests/vectors: instructions, DRAM before and after, the machine."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from programs import Program

from vta_isa.encoding import decode_stream
from vta_isa.machine import Machine, load_machine

FOLDER = Path(__file__).parents[1] / "vectors"
NAMES = tuple(sorted(folder.name for folder in FOLDER.iterdir()))


@dataclass(frozen=True)
class Vector:
    """One stream; ``after`` is the DRAM image that it leaves, agreed on by two implementations."""

    program: Program
    after: NDArray[np.uint8]


@cache
def machine_of_vector(name: str) -> Machine:
    meta = json.loads((FOLDER / name / "meta.json").read_text())
    return load_machine(meta["config"])


def vector(name: str) -> Vector:
    folder, machine = FOLDER / name, machine_of_vector(name)
    stream = np.frombuffer((folder / "insn.bin").read_bytes(), dtype="<u8").reshape(-1, 2)
    before, after = (
        np.fromfile(folder / file, dtype=np.uint8) for file in ("dram.bin", "dram_out.bin")
    )
    return Vector(Program(stream, before, machine, decode_stream(stream, machine)), after)


def by_machine() -> dict[str, list[str]]:
    """Names of vectors for each hash of a machine, so that a machine is compiled once."""
    found: dict[str, list[str]] = {}
    for name in NAMES:
        found.setdefault(machine_of_vector(name).hash, []).append(name)
    return found
