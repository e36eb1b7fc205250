"""The vectorised checks agree with the scalar ones, also across the blocks they work in."""

import machines
import numpy as np
import pytest
from programs import random_program

from simulator.checks import check_program
from simulator.kernels import static_checks
from simulator.kernels.program_order import tokens_in_program_order
from simulator.kernels.static_checks import StaticChecks, self_modifying
from simulator.order import _program_order_is_legal, token_flow, tokens_after
from vta_isa.enums import Buffer, Opcode
from vta_isa.errors import StreamError
from vta_isa.insn import INSN_DTYPE, finish, load, records, store

TINY = machines.machine("tiny")


@pytest.fixture(params=[1, 3, 4096])
def block(request, monkeypatch):
    monkeypatch.setattr(static_checks, "BLOCK_INSNS", request.param)


def random_table(rng, count):
    """Fields near the limits of ``TINY``, so that about half of the instructions are legal."""
    table = np.zeros(count, dtype=INSN_DTYPE)
    highest = {"opcode": 5, "buffer": 6, "alu_op": 5, "dram_base": 70, "imm": 1, "uop_end": 20}
    for name in INSN_DTYPE.names:
        flag = name.startswith(("pop_", "push_", "use_", "reset"))
        pad = "pad" in name
        most = 1 if flag or pad else highest.get(name, 12)
        values = rng.integers(0, most + 1, count)
        table[name] = np.where(rng.random(count) < (0.1 if flag or pad else 0.7), values, 0)
    table["uop_end"] += TINY.depth(Buffer.UOP) - 15
    table[-1] = records([finish()])[0]
    return table


def outcome(check, *arguments):
    try:
        check(*arguments)
    except StreamError as error:
        return str(error), error.insn
    return None


@pytest.mark.parametrize("seed", range(150))
def test_the_same_instruction_is_refused_in_the_same_words(seed, block):
    rng = np.random.default_rng(seed)
    table = random_table(rng, int(rng.integers(1, 9)))
    dram_bytes = int(rng.integers(0, 4000))
    got = outcome(StaticChecks(TINY), table, dram_bytes)
    assert got == outcome(check_program, table, TINY, dram_bytes), f"seed {seed}"


@pytest.mark.parametrize("seed", range(40))
def test_program_order_is_legal_where_the_scheduler_finds_it_legal(seed, block):
    rng = np.random.default_rng(seed)
    tokens, capacity = tuple(int(n) for n in rng.integers(0, 3, 4)), int(rng.integers(2, 4))
    table = np.zeros(int(rng.integers(1, 9)), dtype=INSN_DTYPE)
    table["opcode"] = rng.choice([Opcode.LOAD, Opcode.STORE, Opcode.GEMM], len(table))
    table["buffer"] = rng.choice([Buffer.INP, Buffer.ACC], len(table))
    for flag in ("pop_prev", "pop_next", "push_prev", "push_next"):
        table[flag] = rng.random(len(table)) < 0.25
    legal = _program_order_is_legal(*token_flow(table), capacity, tokens)
    want = tokens_after(table, tokens) if legal else None
    assert tokens_in_program_order(table, tokens, capacity) == want, f"seed {seed}"


def test_random_programs_pass(block):
    for seed in range(5):
        program = random_program(np.random.default_rng(seed), TINY)
        StaticChecks(TINY)(program.table, len(program.dram))


OUT_BYTES = TINY.entry_bytes(Buffer.OUT)


@pytest.mark.parametrize(
    ("uops", "entry", "rows", "want"),
    [
        ((0, 1), 1, 1, False),
        ((OUT_BYTES // 4, 1), 1, 1, True),
        ((OUT_BYTES // 4 - 1, 1), 1, 1, False),
        ((OUT_BYTES // 4 - 1, 2), 1, 1, True),
        ((2 * OUT_BYTES // 4 - 1, 1), 1, 1, True),
        ((2 * OUT_BYTES // 4, 1), 1, 1, False),
        ((2 * OUT_BYTES // 4, 1), 1, 2, True),
        ((OUT_BYTES // 4, 0), 1, 1, False),
        ((OUT_BYTES // 4, 1), 1, 0, False),
    ],
)
def test_streams_that_store_their_own_micro_ops_are_recognised(uops, entry, rows, want):
    base, size = uops
    insns = [
        load(Buffer.UOP, sram_base=0, dram_base=1000, x_size=1),
        load(Buffer.UOP, sram_base=0, dram_base=base, x_size=size),
        store(sram_base=0, dram_base=2000, x_size=1),
        store(sram_base=0, dram_base=entry, x_size=1, y_size=rows),
        finish(),
    ]
    assert self_modifying(records(insns), TINY) is want
