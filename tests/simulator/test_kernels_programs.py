"""Every engine computes the bits of the reference: whole programs, DRAM, SRAMs and tokens."""

import json
from functools import cache
from pathlib import Path

import machines
import numpy as np
import pytest
from programs import random_program

from simulator.kernels import Kernels
from simulator.kernels.tiers import TIERS, runnable_tiers
from simulator.reference import ReferenceState, run
from vta_isa.encoding import decode_stream
from vta_isa.enums import Buffer
from vta_isa.machine import load_machine

VECTORS = sorted((Path(__file__).parents[1] / "vectors").iterdir())
BUFFERS = [b for b in Buffer if b != Buffer.ACC_8BIT]

# Machines whose kernels differ; the others of `machines` differ in timing only.
SHAPES = (
    "tiny",
    "bus32",
    "batch2",
    "batch4-wide-out",
    "wide-in",
    "block8",
    "block32",
    "many-inputs",
    "extended",
    "extended-tiny",
)
TYPES = ("int4", "int2-weights", "int16", "int16-acc")
EVERY_TIER = ("tiny", "bus32", "batch4-wide-out", "block32", "int4", "int16", "extended")
SEEDS = range(4)


@cache
def judged(name, seed):
    """A program, and what the reference makes of it."""
    program = random_program(np.random.default_rng(seed), machines.machine(name))
    dram, state = program.dram.copy(), ReferenceState(program.machine)
    run(program.table, dram, state)
    return program, dram, state


def engines(name):
    return ["numpy", *(tier.name for tier in runnable_tiers(machines.machine(name)))]


def assert_same(kernels, dram, want_dram, want_state, hint):
    np.testing.assert_array_equal(dram, want_dram, err_msg=f"dram, {hint}")
    for buffer in BUFFERS:
        got, want = kernels.sram(buffer), want_state.sram(buffer)
        assert got.dtype == want.dtype, f"{buffer.name}, {hint}"
        np.testing.assert_array_equal(got, want, err_msg=f"{buffer.name}, {hint}")
    assert tuple(kernels.tokens) == want_state.tokens, hint


CASES = [
    *((name, engine) for name in SHAPES + TYPES for engine in ("numpy", "auto")),
    *((name, engine) for name in EVERY_TIER for engine in engines(name)[2:]),  # [1] is auto
]


@pytest.mark.parametrize(("name", "engine"), CASES)
def test_random_programs_give_the_bits_of_the_reference(name, engine):
    for seed in SEEDS:
        program, want_dram, want_state = judged(name, seed)
        kernels, dram = Kernels(program.machine, engine), program.dram.copy()
        kernels.run(program.table, dram)
        assert_same(kernels, dram, want_dram, want_state, f"seed {seed}")


@pytest.mark.parametrize("folder", VECTORS, ids=lambda folder: folder.name)
@pytest.mark.parametrize("engine", ["numpy", "native"])
def test_the_conformance_vectors_come_out_as_agreed(folder, engine):
    machine = load_machine(json.loads((folder / "meta.json").read_text())["config"])
    dram = np.fromfile(folder / "dram.bin", dtype=np.uint8)
    kernels = Kernels(machine, engine)
    kernels.run(decode_stream((folder / "insn.bin").read_bytes(), machine), dram)
    np.testing.assert_array_equal(dram, np.fromfile(folder / "dram_out.bin", dtype=np.uint8))


def test_every_tier_of_this_architecture_that_the_host_has_is_tested():
    tested = {engine for _, engine in CASES}
    fastest = {Kernels(machines.machine(name)).engine_name for name in EVERY_TIER}
    runnable = {tier.name for name in EVERY_TIER for tier in runnable_tiers(machines.machine(name))}
    assert runnable <= tested | fastest
    assert runnable <= {tier.name for tier in TIERS}


def test_machines_that_share_kernels_do_not_share_state():
    program, want_dram, want_state = judged("tiny", 0)
    first, second = Kernels(program.machine), Kernels(program.machine)
    first.run(program.table, program.dram.copy())
    dram = program.dram.copy()
    second.run(program.table, dram)
    assert_same(second, dram, want_dram, want_state, "seed 0")


def test_an_image_that_is_not_contiguous_is_written_all_the_same():
    program, want_dram, want_state = judged("tiny", 1)
    wide = np.zeros((len(program.dram), 2), dtype=np.uint8)
    wide[:, 0] = program.dram
    kernels = Kernels(program.machine)
    kernels.run(program.table, wide[:, 0])
    assert_same(kernels, wide[:, 0], want_dram, want_state, "seed 1")
    assert not wide[:, 1].any()
