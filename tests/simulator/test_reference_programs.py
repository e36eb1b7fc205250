"""The random programs: legal, varied, repeatable, and the same under any timing of the stages."""

from collections import Counter

import machines
import numpy as np
import pytest
from programs import random_program, shrink

from simulator.checks import executes, is_requantize
from simulator.order import token_flow
from simulator.reference import ReferenceState, run, step
from vta_isa.encoding import decode_stream, decode_uops
from vta_isa.enums import AluOp, Buffer, FusedOp, LowKind, Opcode, Stage
from vta_isa.insn import stages


def some_legal_order(rng, table, capacity):
    """Instruction numbers in an order that only stages and tokens restrict, drawn at random."""
    pops, pushes = token_flow(table)
    stage = stages(table)
    waiting = {s: np.flatnonzero(stage == s).tolist()[::-1] for s in Stage}
    count = np.zeros(4, dtype=int)
    favourite = list(Stage)[rng.integers(3)]  # far ahead of the others, most of the time
    order = []
    while len(order) < len(table):
        heads = [
            s
            for s in Stage
            if waiting[s]
            and (count >= pops[waiting[s][-1]]).all()
            and (count + pushes[waiting[s][-1]] <= capacity).all()
        ]
        eager = favourite in heads and rng.random() < 0.9
        number = waiting[favourite if eager else heads[rng.integers(len(heads))]].pop()
        count += pushes[number].astype(int) - pops[number]
        order.append(number)
    return order


@pytest.mark.parametrize("name", machines.NAMES)
@pytest.mark.parametrize("seed", range(3))
def test_results_do_not_depend_on_how_fast_each_stage_is(name, seed):
    rng = np.random.default_rng([seed, 1])
    program = random_program(rng, machines.machine(name))
    want, state = program.dram.copy(), ReferenceState(program.machine)
    run(program.table, want, state)
    for _ in range(4):
        dram, other = program.dram.copy(), ReferenceState(program.machine)
        for number in some_legal_order(rng, program.table, program.machine.queues.token):
            step(program.table[number], number, dram, other)
        np.testing.assert_array_equal(dram, want, err_msg=f"{name} {seed=}")
        for buffer in (Buffer.UOP, Buffer.INP, Buffer.WGT, Buffer.ACC):
            np.testing.assert_array_equal(other.sram(buffer), state.sram(buffer), f"{name} {seed=}")


def test_a_seed_gives_one_program():
    machine = machines.machine("batch2")
    first, again = (random_program(np.random.default_rng(5), machine) for _ in range(2))
    np.testing.assert_array_equal(first.stream, again.stream)
    np.testing.assert_array_equal(first.dram, again.dram)
    np.testing.assert_array_equal(decode_stream(first.stream, machine), first.table)


def memory_kinds(insn):
    kind = f"{Opcode(int(insn['opcode'])).name} {Buffer(int(insn['buffer'])).name}"
    if not insn["x_size"]:
        return ["token only"]
    facts = {
        "": True,
        " padded": any(insn[f"{a}_pad_{e}"] for a in "xy" for e in ("before", "after")),
        " no rows": insn["y_size"] == 0,
        " 2-D": insn["y_size"] > 1,
        " overlapping rows": insn["y_size"] > 1 and insn["x_stride"] < insn["x_size"],
    }
    return [kind + fact for fact, true in facts.items() if true]


def uop_kinds(insn, state):
    kind = Opcode(int(insn["opcode"])).name
    if not executes(insn):
        return [f"{kind} empty"]
    words = state.uop[int(insn["uop_begin"]) : int(insn["uop_end"])]
    dst = decode_uops(words, state.machine)[:, 0].tolist()
    facts = {" uops": len(dst) > 1, " repeated uop dst": len(set(dst)) < len(dst)}
    if kind == "ALU":
        fused = is_requantize(insn)
        facts[f" {(FusedOp if fused else AluOp)(int(insn['alu_op'])).name}"] = True
        facts[" immediate" if insn["use_imm"] else " tensor"] = not fused
        facts[" biased"] = fused and not insn["use_imm"]
        facts[f" {LowKind(int(insn['low_kind'])).name}"] = fused
    else:
        facts[" reset" if insn["reset"] else " product"] = not insn["overwrite"]
        facts[" overwrite"] = bool(insn["overwrite"])
    return [kind + fact for fact, true in facts.items() if true]


def kinds(program):
    """What each instruction of a program exercises, in words."""
    state, dram = ReferenceState(program.machine), program.dram.copy()
    wall = 1 << (program.machine.bits(Buffer.ACC) - 1)
    for number, insn in enumerate(program.table):
        before = state.acc.astype(np.int64)
        match int(insn["opcode"]):
            case Opcode.LOAD | Opcode.STORE:
                yield from memory_kinds(insn)
            case Opcode.GEMM | Opcode.ALU as opcode:
                yield from uop_kinds(insn, state)
                step(insn, number, dram, state)
                if np.abs(state.acc - before).max() > wall:
                    yield f"{Opcode(opcode).name} wraps"
                continue
            case Opcode.FINISH:
                yield "FINISH"
        step(insn, number, dram, state)


def test_every_kind_of_instruction_comes_up():
    seen = Counter()
    for seed in range(20):
        rng = np.random.default_rng([seed, 2])
        seen.update(kinds(random_program(rng, machines.machine("int4"), size=60)))
    facts = ("", " padded", " 2-D", " overlapping rows", " no rows")
    expected = [
        *("token only", "FINISH", "GEMM reset", "GEMM product", "ALU immediate", "ALU tensor"),
        *(f"{op}{fact}" for op in ("GEMM", "ALU") for fact in (" empty", " uops", " wraps")),
        *(f"{op} repeated uop dst" for op in ("GEMM", "ALU")),
        *(f"ALU {op.name}" for op in AluOp),
        *(f"LOAD {b.name}{fact}" for b in Buffer if b != Buffer.OUT for fact in facts),
        *(f"STORE OUT{fact}" for fact in facts if fact != " padded"),
    ]
    missing = [what for what in expected if not seen[what]]
    assert not missing, seen


def test_extensions_come_up_where_the_machine_has_them():
    seen = Counter()
    for seed in range(10):
        rng = np.random.default_rng([seed, 4])
        seen.update(kinds(random_program(rng, machines.machine("extended-tiny"), size=60)))
    expected = ["GEMM overwrite", "GEMM product", "GEMM reset", "ALU REQUANTIZE", "ALU biased"]
    expected += [f"ALU {low.name}" for low in LowKind]
    assert not [what for what in expected if not seen[what]], seen


def test_a_failing_program_shrinks_to_what_makes_it_fail():
    program = random_program(np.random.default_rng(8), machines.machine("block8"))

    def changes_the_accumulators(candidate):
        state = ReferenceState(candidate.machine)
        run(candidate.table, candidate.dram.copy(), state)
        return bool(state.acc.any())

    small = shrink(program, changes_the_accumulators)
    assert changes_the_accumulators(small)
    np.testing.assert_array_equal(decode_stream(small.stream, small.machine), small.table)
    moving = (small.table["x_size"] > 0) | (small.table["iter_out"] > 0)
    assert 1 <= np.count_nonzero(moving) <= 3
