"""Random programs and vectors on every machine; compiling them all takes many minutes.

Not collected by default: ``pytest tests/hw/every_machine.py``, a part of it with ``-k int4``.
"""

import machines
import numpy as np
import pytest
import vector_files
from programs import random_program
from rtl_checks import check, check_results, needs_compiler
from rtl_machines import random_machine
from situations import situation_program

from vta_hw.verilated import VerilatedCore, run_rtl

pytestmark = needs_compiler

FILLED = 8  # command and token queues up to this are filled in no time


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


@pytest.mark.parametrize("name", vector_files.NAMES)
def test_vectors(name):
    program, after = vector_files.vector(name).program, vector_files.vector(name).after
    check(VerilatedCore(program.machine), program)
    dram, _ = run_rtl(program.stream, program.dram, program.machine)
    np.testing.assert_array_equal(dram, after)
