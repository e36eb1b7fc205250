"""Races, found from tokens alone: against a judge that compares every pair of instructions."""

import json
from itertools import pairwise, product
from pathlib import Path

import machines
import numpy as np
import pytest
from images import Image
from programs import random_program

from simulator.checks import executes
from simulator.hazards import Hazard, HazardKind, find_hazards
from simulator.order import execution_order, happens_before, token_flow
from simulator.reference import ReferenceState, step
from vta_isa.encoding import decode_stream, decode_uops
from vta_isa.enums import AluOp, Buffer, FusedOp, Opcode, Stage, TokenQueue
from vta_isa.errors import DeadlockError, StreamError
from vta_isa.insn import alu, finish, gemm, load, noop, records, stages, store
from vta_isa.machine import load_machine

VECTORS = sorted((Path(__file__).parents[1] / "vectors").iterdir())
BLOCK8 = machines.machine("block8")


# -- the judge ----------------------------------------------------------------------------------


def touched(insn, uop_memory, machine):
    """(reads, writes): sets of (memory, entry or byte), by the letter of the instruction."""
    reads, writes = set(), set()
    f = {name: int(insn[name]) for name in insn.dtype.names}
    if f["opcode"] in (Opcode.LOAD, Opcode.STORE) and f["x_size"]:
        buffer = Buffer(f["buffer"])
        dram = writes if f["opcode"] == Opcode.STORE else reads
        sram = reads if f["opcode"] == Opcode.STORE else writes
        unit = machine.entry_bytes(buffer)
        for row, column in product(range(f["y_size"]), range(f["x_size"])):
            entry = f["dram_base"] + row * f["x_stride"] + column
            dram |= {("DRAM", byte) for byte in range(entry * unit, (entry + 1) * unit)}
        rows = f["y_pad_before"] + f["y_size"] + f["y_pad_after"]
        columns = f["x_pad_before"] + f["x_size"] + f["x_pad_after"]
        memory = "ACC" if buffer in (Buffer.OUT, Buffer.ACC_8BIT) else buffer.name
        sram |= {(memory, f["sram_base"] + k) for k in range(rows * columns)}
    if f["opcode"] in (Opcode.GEMM, Opcode.ALU) and executes(insn):
        operands = {"dst": "ACC"}
        if f["opcode"] == Opcode.ALU and not f["use_imm"]:
            operands["src"] = "ACC"
        if f["opcode"] == Opcode.GEMM and not f["reset"]:
            operands |= {"src": "INP", "wgt": "WGT"}
        uops = decode_uops(uop_memory[f["uop_begin"] : f["uop_end"]], machine).tolist()
        for i, j, uop in product(range(f["iter_out"]), range(f["iter_in"]), uops):
            for (operand, memory), start in zip(operands.items(), uop, strict=False):
                if operand == "src" and f["alu_op"] == FusedOp.REQUANTIZE:
                    start = uops[0][1]  # its bias
                at = start + i * f[f"{operand}_factor_out"] + j * f[f"{operand}_factor_in"]
                (writes if operand == "dst" else reads).add((memory, at))
    return reads, writes


def reachability(table):
    """``(n, n) bool``: whether program order in stages and tokens lead from one to the other."""
    pops, pushes = token_flow(table)
    edges = [np.flatnonzero(stages(table) == s) for s in Stage]
    pairs = [pair for numbers in edges for pair in pairwise(numbers)]
    for queue in TokenQueue:
        pairs += zip(np.flatnonzero(pushes[:, queue]), np.flatnonzero(pops[:, queue]), strict=False)
    reach = np.eye(len(table), dtype=bool)
    into = {number: [a for a, b in pairs if b == number] for number in range(len(table))}
    for number in range(len(table)):  # the tables here are legal in program order
        for earlier in into[number]:
            assert earlier < number
            reach[:, number] |= reach[:, earlier]
    return reach


def races(table, machine, dram):
    """{(first, second, memory, kind): what both touch}, over all pairs."""
    state, image = ReferenceState(machine), dram.copy()
    footprints = []
    for number, insn in enumerate(table):
        footprints.append(touched(insn, state.uop, machine))
        step(insn, number, image, state)
    reach, stage = reachability(table), stages(table)
    found = {}
    for second, first in product(range(len(table)), repeat=2):
        if first >= second or stage[first] == stage[second] or reach[first, second]:
            continue
        (reads1, writes1), (reads2, writes2) = footprints[first], footprints[second]
        for kind, common in (
            (HazardKind.RAW, writes1 & reads2),
            (HazardKind.WAR, reads1 & writes2),
            (HazardKind.WAW, writes1 & writes2),
        ):
            for memory in {memory for memory, _ in common}:
                places = {place for where, place in common if where == memory}
                found[first, second, memory, kind] = places
    return found


def agree(table, machine, dram, context):
    """The findings are races of the judge, and no instruction that races goes unnoticed."""
    want, got = races(table, machine, dram), find_hazards(table, machine, dram)
    stage = stages(table)
    for hazard in got:
        places = want.get((hazard.first, hazard.second, hazard.memory, hazard.kind))
        assert places is not None, (context, str(hazard))
        assert {hazard.low, hazard.high} <= places, (context, str(hazard))
    noticed = {(h.second, h.memory, h.kind, stage[h.first]) for h in got}
    expected = {(second, memory, kind, stage[first]) for first, second, memory, kind in want}
    assert noticed == expected, context
    return bool(got)


def without_token(table, queue, index):
    """The table without one push of a queue and the pop that it belongs to."""
    pops, pushes = token_flow(table)
    mutant = table.copy()
    flags = {
        TokenQueue.LOAD_TO_COMPUTE: ("push_next", "pop_prev"),
        TokenQueue.COMPUTE_TO_LOAD: ("push_prev", "pop_next"),
        TokenQueue.COMPUTE_TO_STORE: ("push_next", "pop_prev"),
        TokenQueue.STORE_TO_COMPUTE: ("push_prev", "pop_next"),
    }[queue]
    for flag, flow in zip(flags, (pushes, pops), strict=True):
        mutant[flag][np.flatnonzero(flow[:, queue])[index]] = 0
    return mutant


def mutants(table):
    _, pushes = token_flow(table)
    for queue in TokenQueue:
        for index in range(int(pushes[:, queue].sum())):
            yield (queue.name, index), without_token(table, queue, index)


@pytest.mark.parametrize("name", machines.NAMES)
def test_random_programs_have_no_races(name):
    for seed in range(6):
        program = random_program(np.random.default_rng([seed, 3]), machines.machine(name), size=60)
        found = find_hazards(program.table, program.machine, program.dram)
        assert not found, (seed, [str(hazard) for hazard in found])


@pytest.mark.parametrize("name", ["smallest", "int4", "batch4-wide-out"])
@pytest.mark.parametrize("seed", range(2))
def test_random_programs_that_lost_a_token(name, seed):
    rng = np.random.default_rng([seed, 4])
    program = random_program(rng, machines.machine(name), size=25, data_bytes=2048)
    assert not agree(program.table, program.machine, program.dram, seed)
    racy = [
        agree(table, program.machine, program.dram, (seed, which))
        for which, table in list(mutants(program.table))[::3]
    ]
    assert any(racy)


def test_random_programs_without_any_tokens():
    for seed in range(3):
        rng = np.random.default_rng([seed, 5])
        program = random_program(rng, BLOCK8, size=25, data_bytes=2048)
        table = program.table.copy()
        for flag in ("pop_prev", "pop_next", "push_prev", "push_next"):
            table[flag] = 0
        assert agree(table, program.machine, program.dram, seed)


@pytest.mark.parametrize("folder", VECTORS, ids=lambda folder: folder.name)
def test_vectors_have_no_races_until_they_lose_a_token(folder):
    machine = load_machine(json.loads((folder / "meta.json").read_text())["config"])
    table = decode_stream((folder / "insn.bin").read_bytes(), machine)
    dram = np.fromfile(folder / "dram.bin", dtype=np.uint8)
    assert not find_hazards(table, machine, dram)
    racy = [which for which, mutant in mutants(table) if find_hazards(mutant, machine, dram)]
    assert racy


# -- by hand ------------------------------------------------------------------------------------


def hazards(image, *insns, **options):
    return find_hazards(records([*insns, finish()]), image.machine, image.dram(), **options)


def image_with_room():
    image = Image(BLOCK8)
    image.reserve(Buffer.WGT, 8)  # 512 bytes
    return image


INP = {"sram_base": 0, "dram_base": 0, "x_size": 4}
GEMM = {"uops": (0, 1), "iters": (1, 3), "src": (0, 1)}


def test_a_product_that_does_not_wait_for_its_input():
    found = hazards(image_with_room(), load(Buffer.INP, **INP), gemm(**GEMM))
    assert found == [Hazard(HazardKind.RAW, 0, 1, "INP", 0, 2)]
    assert str(found[0]) == (
        "insn 1: read after write of INP entries 0..2 races with insn 0; order them by a token"
    )
    assert not hazards(
        image_with_room(),
        load(Buffer.INP, **INP, push_next=True),
        gemm(**GEMM, pop_prev=True),
    )


def test_an_input_overwritten_while_it_is_used():
    found = hazards(image_with_room(), gemm(**GEMM), load(Buffer.INP, **INP))
    assert found == [Hazard(HazardKind.WAR, 0, 1, "INP", 0, 2)]


def test_results_overwritten_while_they_are_stored():
    found = hazards(
        image_with_room(),
        alu(AluOp.ADD, uops=(0, 1), imm=1, push_next=True),
        store(sram_base=0, dram_base=0, x_size=1, pop_prev=True),
        load(Buffer.ACC, sram_base=0, dram_base=8, x_size=1),
    )
    assert found == [Hazard(HazardKind.WAR, 1, 2, "ACC", 0, 0)]


def test_loads_and_stores_race_for_dram_only_where_their_rows_meet():
    image = image_with_room()
    stored = {"sram_base": 0, "y_size": 3, "x_size": 2, "x_stride": 4}  # OUT entries of 8 bytes
    loaded = load(Buffer.INP, sram_base=0, dram_base=2, y_size=3, x_size=2, x_stride=4)
    assert not hazards(image, loaded, store(dram_base=0, **stored))
    later = hazards(image, loaded, store(dram_base=1, **stored))
    assert later == [Hazard(HazardKind.WAR, 0, 1, "DRAM", 16, 87)]
    earlier = hazards(image, store(dram_base=5, **stored), loaded)
    assert earlier == [Hazard(HazardKind.RAW, 0, 1, "DRAM", 48, 87)]


def test_load_and_store_are_ordered_through_compute():
    image = image_with_room()
    one = {"sram_base": 0, "dram_base": 0, "x_size": 1}
    chain = [
        store(**one, push_prev=True),
        noop(Stage.COMPUTE, pop_next=True, push_prev=True),
        load(Buffer.INP, **one, pop_next=True),
    ]
    assert not hazards(image, *chain)
    assert hazards(image, *chain[:1], noop(Stage.COMPUTE, push_prev=True), *chain[2:],
                   noop(Stage.COMPUTE, pop_next=True))  # fmt: skip


def test_stages_in_program_order_and_separate_data_need_no_tokens():
    image = image_with_room()
    assert not hazards(
        image,
        load(Buffer.INP, **INP),
        load(Buffer.INP, **INP),
        load(Buffer.ACC, sram_base=4, dram_base=8, x_size=2),
        alu(AluOp.ADD, uops=(0, 1), imm=1),
        store(sram_base=2, dram_base=4, x_size=2),
        store(sram_base=2, dram_base=4, x_size=2),
    )


def test_operands_that_are_not_used_do_not_race():
    image = image_with_room()
    loads = [
        load(Buffer.INP, **INP),
        load(Buffer.WGT, sram_base=0, dram_base=0, x_size=4),
    ]
    assert not hazards(image, *loads, gemm(**GEMM, reset=True))
    assert not hazards(image, *loads, gemm(**(GEMM | {"iters": (0, 3)})))
    assert not hazards(image, *loads, alu(AluOp.ADD, uops=(0, 1)))
    assert len(hazards(image, *loads, gemm(**GEMM))) == 2


def test_the_stall_of_a_full_token_queue_orders_nothing():
    """Load cannot give its second token before the first is taken, but another machine could."""
    image = Image(BLOCK8.replace(queues={"token": 1}))
    image.reserve(Buffer.WGT, 8)
    program = [
        gemm(**GEMM),
        noop(Stage.LOAD, push_next=True),
        noop(Stage.COMPUTE, pop_prev=True),
        noop(Stage.LOAD, push_next=True),
        load(Buffer.INP, **INP),
        noop(Stage.COMPUTE, pop_prev=True),
    ]
    assert [(h.first, h.second) for h in hazards(image, *program)] == [(0, 4)]


def test_tokens_of_an_earlier_launch_order_nothing_in_this_one():
    image = image_with_room()
    program = [load(Buffer.INP, **INP, push_next=True), gemm(**GEMM, pop_prev=True)]
    assert not hazards(image, *program)
    assert hazards(image, *program, tokens=(1, 0, 0, 0))


def test_micro_ops_come_from_the_image_or_an_earlier_launch():
    image = image_with_room()
    base = image.place_uops([(0, 9, 0)])
    inp = load(Buffer.INP, sram_base=9, dram_base=0, x_size=1)
    uop = load(Buffer.UOP, sram_base=0, dram_base=base, x_size=1)
    assert not hazards(image, inp, gemm(uops=(0, 1)))
    assert hazards(image, uop, inp, gemm(uops=(0, 1)))
    padded = load(Buffer.UOP, sram_base=0, dram_base=base, x_size=1, y_pad=(1, 0), x_pad=(1, 2))
    assert not hazards(image, padded, inp, gemm(uops=(0, 5)))
    assert hazards(image, padded, inp, gemm(uops=(5, 6)))
    words = np.zeros(BLOCK8.depth(Buffer.UOP), dtype=np.uint32)
    words[:1] = image.dram()[4 * base :].view("<u4")
    assert hazards(image, inp, gemm(uops=(0, 1)), uops=words)
    assert words[0]


def test_micro_ops_that_the_stream_stores_are_refused():
    image = image_with_room()
    program = [
        store(sram_base=0, dram_base=0, x_size=1, push_prev=True),
        load(Buffer.UOP, sram_base=0, dram_base=1, x_size=1, pop_next=True),
    ]
    match = r"insn 1 \(LOAD UOP\): loads micro-ops that the stream itself stores"
    with pytest.raises(StreamError, match=match) as caught:
        hazards(image, *program)
    assert caught.value.insn == 1


def test_streams_that_cannot_run_are_refused_as_everywhere():
    image = image_with_room()
    with pytest.raises(DeadlockError):
        hazards(image, noop(Stage.LOAD, pop_next=True))
    with pytest.raises(StreamError, match="INP has entries"):
        hazards(image, load(Buffer.INP, sram_base=255, dram_base=0, x_size=2))
    with pytest.raises(StreamError, match="src index of uop 0 reaches"):
        hazards(image, gemm(uops=(0, 1), iters=(1, 3), src=(0, 200)))


def test_happens_before_follows_stages_and_tokens():
    table = records(
        [
            noop(Stage.LOAD, push_next=True),
            noop(Stage.LOAD),
            noop(Stage.COMPUTE, pop_prev=True, push_next=True),
            noop(Stage.STORE, pop_prev=True),
            finish(),
        ]
    )
    before = happens_before(table, execution_order(table, BLOCK8))
    assert before.place.tolist() == [1, 2, 1, 1, 2]
    got = {(a, b) for a, b in product(range(5), repeat=2) if before.ordered(a, b)}
    assert got == {(0, 1), (0, 2), (0, 3), (0, 4), (2, 3), (2, 4)}


def test_a_long_stream_is_checked_in_reasonable_time():
    rng = np.random.default_rng(6)
    program = random_program(rng, machines.machine("default"), size=1500, iterations=256)
    assert not find_hazards(program.table, program.machine, program.dram)
