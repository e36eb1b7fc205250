"""Full queues, late tokens, any flags: the core computes what it should, in the cycle it should."""

import numpy as np
import pytest
from functional_coverage import CONNECTED, KINDS, kind_of
from rtl_checks import check, check_results, needs_compiler
from rtl_machines import machine
from situations import PLAYERS, kinds_of, players, situation_program

from simulator.checker import Code, errors
from simulator.checker import check as check_stream
from vta_hw.verilated import VerilatedCore

NAMES = ("tiny", "odd")


@needs_compiler
@pytest.mark.parametrize("number", range(12))
@pytest.mark.parametrize("name", NAMES)
def test_situations(name, number):
    program = situation_program(np.random.default_rng([number, 14]), machine(name), number)
    check(VerilatedCore(machine(name)), program, 16 * number)
    check_results(VerilatedCore(machine(name)), program, pressure=number + 1)


@pytest.mark.parametrize("number", [0, 1, 2, 15])
@pytest.mark.parametrize("name", [*NAMES, "extended-tiny"])
def test_they_have_neither_races_nor_deadlocks(name, number):
    program = situation_program(np.random.default_rng([number, 15]), machine(name), number)
    found = check_stream(program.stream, program.machine, program.dram)
    # FINISH waits for nobody here, and may push tokens: these are situations, too.
    intended = {Code.STORE_UNFINISHED, Code.TOKEN_LEFT}
    assert {finding.code for finding in errors(found)} <= intended, found


@pytest.mark.parametrize("name", [*NAMES, "extended-tiny"])
def test_every_kind_plays_with_every_flag(name):
    dealt = players(machine(name))
    kinds = kinds_of(machine(name))
    assert len(dealt) == len(set(dealt)) == sum(2 ** len(CONNECTED[KINDS[k]]) for k in kinds)
    turns = -(-len(dealt) // PLAYERS)
    given = set()
    for number in range(turns):
        program = situation_program(np.random.default_rng(1), machine(name), number)
        for row in program.table:
            kind = kind_of(row)
            given.add((kind, tuple(flag for flag in CONNECTED[KINDS[kind]] if row[flag])))
    assert set(dealt) <= given
