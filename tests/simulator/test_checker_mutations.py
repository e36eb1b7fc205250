"""A sample of benchmarks/checker_mutations.py: every mutant that matters is flagged."""

import json
from pathlib import Path

import machines
import numpy as np
import pytest
from mutants import Score, judge, subject
from programs import random_program
from token_orders import execute, random_outcomes

from vta.compile import launched_streams
from vta.workloads import Add, Conv2d, Dense
from vta_isa.encoding import decode_stream
from vta_isa.machine import load_machine

VECTORS = Path(__file__).parents[1] / "vectors"
LAYERS = {
    "dense": Dense(name="dense", m=2, k=8, n=12),
    "add": Add(name="add", length=150),
    "conv": Conv2d(
        name="conv", height=4, width=4, in_channels=4, out_channels=8, kernel=3, padding=1
    ),
}


def from_vector(name):
    folder = VECTORS / name
    machine = load_machine(json.loads((folder / "meta.json").read_text())["config"])
    table = decode_stream((folder / "insn.bin").read_bytes(), machine)
    return subject(name, table, np.fromfile(folder / "dram.bin", dtype=np.uint8), machine)


def from_compiler(name, **extensions):
    tiny = load_machine("tiny").replace(extensions=extensions)
    stream, *_ = launched_streams(LAYERS[name], tiny, True)
    assert stream.dram is not None
    return subject(name, decode_stream(stream.words, tiny), stream.dram, tiny)


def extended(name):
    return from_compiler(name, gemm_overwrite=True, alu_requantize=True)


def from_chance(name, seed):
    program = random_program(
        np.random.default_rng([seed, 71]), machines.machine(name), size=20, data_bytes=2048
    )
    return subject(f"{name}/{seed}", program.table, program.dram, program.machine)


SUBJECTS = {
    **{name: (from_vector, name) for name in ("03_conv3x3_padded", "09_load_edges")},
    **{name: (from_compiler, name) for name in LAYERS},
    "conv, extended": (extended, "conv"),
    **{
        f"{name}, random": (from_chance, name, 1)
        for name in ("smallest", "short-queues", "extended-tiny")
    },
}


@pytest.mark.parametrize("name", SUBJECTS)
def test_mutants_that_change_the_outcome_are_flagged(name):
    make, *arguments = SUBJECTS[name]
    correct = make(*arguments)
    seed = 72
    rng = np.random.default_rng(seed)
    outcomes = set(random_outcomes(correct.table, correct.machine, correct.dram, rng, 6))
    assert len(outcomes) == 1, seed
    score = Score()
    judge(correct, rng, count=30, orders=8, score=score)
    assert not score.missed, (seed, score.missed)
    assert score.uncertain[0], seed


def test_the_executor_computes_what_the_reference_does():
    for name in ("03_conv3x3_padded", "05_alu_tensor_alias", "11_batch2"):
        correct = from_vector(name)
        outcome = execute(correct.table, correct.machine, correct.dram, np.random.default_rng(73))
        assert outcome.end == "done"
        assert outcome.dram == (VECTORS / name / "dram_out.bin").read_bytes(), name
