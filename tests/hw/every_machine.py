"""Random programs and vectors on every machine; compiling them all takes many minutes.

Not collected by default: ``pytest tests/hw/every_machine.py``, a part of it with ``-k int4``.
"""

import json
from pathlib import Path

import machines
import numpy as np
import pytest
from programs import Program, random_program
from rtl_checks import check, check_results, needs_compiler
from rtl_machines import random_machine
from situations import situation_program

from vta_hw.verilated import VerilatedCore, run_rtl
from vta_isa.encoding import decode_stream
from vta_isa.machine import load_machine

pytestmark = needs_compiler

FILLED = 8  # command and token queues up to this are filled in no time
VECTORS = sorted((Path(__file__).parents[1] / "vectors").iterdir())


def short(name):
    queues = machines.machine(name).queues
    return max(queues.command, queues.token) <= FILLED


@pytest.mark.parametrize("name", machines.NAMES)
def test_random_programs(name):
    for seed in range(40):
        rng = np.random.default_rng([seed, 6])
        machine = machines.machine(name)
        if seed % 2:
            machine = machine.replace(memory={"jitter": seed, "read_latency": 5 * seed})
        program = random_program(rng, machine)
        check(VerilatedCore(machine), program, 16 * int(rng.integers(64)))


@pytest.mark.parametrize("seed", range(30))
def test_random_programs_on_a_random_machine(seed):
    machine = random_machine(np.random.default_rng([seed, 100]))
    print(machine.model_dump_json(indent=1))  # shown where it fails
    for number in range(30):
        rng = np.random.default_rng([seed, number])
        program = random_program(rng, machine)
        check(VerilatedCore(machine), program, 16 * int(rng.integers(64)))
        check_results(VerilatedCore(machine), program, pressure=number + 1)


@pytest.mark.parametrize("name", [name for name in machines.NAMES if short(name)])
def test_situations(name):
    machine = machines.machine(name)
    for number in range(40):
        program = situation_program(np.random.default_rng([number, 7]), machine, number)
        check(VerilatedCore(machine), program, 16 * number)
        check_results(VerilatedCore(machine), program, pressure=number + 1)


@pytest.mark.parametrize("folder", VECTORS, ids=lambda folder: folder.name)
def test_vectors(folder):
    machine = load_machine(json.loads((folder / "meta.json").read_text())["config"])
    stream = np.frombuffer((folder / "insn.bin").read_bytes(), dtype="<u8").reshape(-1, 2)
    before = np.fromfile(folder / "dram.bin", dtype=np.uint8)
    check(VerilatedCore(machine), Program(stream, before, machine, decode_stream(stream, machine)))
    dram, _ = run_rtl(stream, before, machine)
    np.testing.assert_array_equal(dram, np.fromfile(folder / "dram_out.bin", dtype=np.uint8))
