"""Dependence flags, no-ops and tails: the published rules, and a slow statement of them."""

import numpy as np
import pytest

from vta_isa import (
    AluOp,
    Buffer,
    Opcode,
    RuntimeCallError,
    Stage,
    alu,
    decode_stream,
    finish,
    gemm,
    load,
    noop,
    store,
)
from vta_isa import records as insn_records
from vta_runtime import DebugFlag, Runtime

LOAD, COMPUTE, STORE = Stage.LOAD, Stage.COMPUTE, Stage.STORE


def record_reset(runtime):
    runtime.uop_push(0, 1, 0, 0, 0, 0, 0, 0)


def record_gemm(runtime):
    runtime.uop_push(0, 0, 0, 0, 0, 0, 0, 0)


def record_relu(runtime):
    runtime.uop_push(1, 0, 0, 0, 0, AluOp.MAX, 1, 0)


class Caller:
    """Makes calls with one buffer behind every address; one entry each, all at SRAM entry 0."""

    def __init__(self, runtime):
        self.runtime = runtime
        self.buffer = runtime.buffer_alloc(4096)
        self.page = runtime.buffer(self.buffer).address

    def load(self, memory, x_size=1):
        self.runtime.load_buffer_2d(self.buffer, 0, x_size, 1, x_size, 0, 0, 0, 0, 0, memory)

    def store(self, x_size=1):
        self.runtime.store_buffer_2d(0, Buffer.OUT, self.buffer, 0, x_size, 1, x_size)

    def gemm(self):
        self.runtime.push_gemm_op("gemm", record_gemm)

    def base(self, memory):
        return self.page // self.runtime.machine.entry_bytes(memory)


def assert_records(table, expected):
    """Field by field equality, with a message that shows the first difference."""
    expected = insn_records(expected)
    for number, (got, want) in enumerate(zip(table, expected, strict=False)):
        assert got.tolist() == want.tolist(), f"record {number}: {got} is not {want}"
    assert len(table) == len(expected)


def test_worked_example_of_the_contract_record_for_record(runtime, recorder):
    call = Caller(runtime)
    runtime.push_gemm_op("reset", record_reset)
    runtime.dep_push(COMPUTE, LOAD)
    runtime.dep_pop(COMPUTE, LOAD)
    call.load(Buffer.INP)
    call.load(Buffer.WGT)
    runtime.dep_push(LOAD, COMPUTE)
    runtime.dep_pop(LOAD, COMPUTE)
    call.gemm()
    runtime.dep_push(COMPUTE, STORE)
    runtime.dep_pop(COMPUTE, STORE)
    call.store()
    runtime.synchronize()

    (table,) = recorder.tables
    uops = int(table["dram_base"][0])
    inp, wgt, out = (call.base(b) for b in (Buffer.INP, Buffer.WGT, Buffer.OUT))
    assert_records(
        table,
        [
            load(Buffer.UOP, sram_base=0, dram_base=uops, x_size=1),
            gemm(uops=(0, 1), reset=True, push_prev=True),
            load(Buffer.INP, sram_base=0, dram_base=inp, x_size=1, pop_next=True),
            load(Buffer.WGT, sram_base=0, dram_base=wgt, x_size=1, push_next=True),
            load(Buffer.UOP, sram_base=1, dram_base=uops + 1, x_size=1, pop_prev=True),
            gemm(uops=(1, 2), push_next=True),
            store(sram_base=0, dram_base=out, x_size=1, pop_prev=True, push_prev=True),
            noop(LOAD, push_next=True),
            noop(COMPUTE, pop_prev=True, pop_next=True),
            finish(),
        ],
    )


TAIL = [
    noop(STORE, push_prev=True),
    noop(LOAD, push_next=True),
    noop(COMPUTE, pop_prev=True, pop_next=True),
    finish(),
]
PUSH, POP = "push", "pop"

# Sentence: the calls, and the records they become with those of the tail.
RULES = {
    "an empty queue is launched too": ([], TAIL),
    "pushing from an empty queue needs a no-op": (
        [(PUSH, COMPUTE, LOAD)],
        [noop(COMPUTE, push_prev=True), *TAIL],
    ),
    "a LOAD no-op takes no second push": (
        [(PUSH, COMPUTE, LOAD), (PUSH, COMPUTE, STORE)],
        [noop(COMPUTE, push_prev=True), noop(COMPUTE, push_next=True), *TAIL],
    ),
    "a STORE no-op takes a push": (
        [(POP, COMPUTE, STORE), (PUSH, STORE, COMPUTE)],
        [noop(STORE, pop_prev=True, push_prev=True), *TAIL],
    ),
    "a second push on one edge needs a no-op": (
        [(PUSH, STORE, COMPUTE), (PUSH, STORE, COMPUTE)],
        [noop(STORE, push_prev=True), noop(STORE, push_prev=True), *TAIL],
    ),
    "a second pop of one kind emits the first": (
        [(POP, COMPUTE, LOAD), (POP, COMPUTE, LOAD), (PUSH, LOAD, COMPUTE)],
        [
            noop(LOAD, pop_next=True),
            noop(LOAD, pop_next=True),
            noop(LOAD, push_next=True),
            *TAIL,
        ],
    ),
    "both pops of a stage share a no-op": (
        [(POP, LOAD, COMPUTE), (POP, STORE, COMPUTE), (PUSH, COMPUTE, LOAD)],
        [noop(COMPUTE, pop_prev=True, pop_next=True), noop(COMPUTE, push_prev=True), *TAIL],
    ),
    "pops of other stages stay pending until the tail": (
        [(POP, COMPUTE, STORE), (PUSH, COMPUTE, LOAD)],
        [
            noop(COMPUTE, push_prev=True),
            noop(STORE, pop_prev=True, push_prev=True),
            *TAIL[1:],
        ],
    ),
}


@pytest.mark.parametrize("rule", RULES)
def test_dependence_rule(rule, runtime, recorder):
    calls, expected = RULES[rule]
    for kind, from_stage, to_stage in calls:
        (runtime.dep_push if kind == PUSH else runtime.dep_pop)(from_stage, to_stage)
    runtime.synchronize()
    assert_records(recorder.tables[0], expected)


def test_pending_pops_go_to_the_stage_s_next_instruction(runtime, recorder):
    call = Caller(runtime)
    runtime.dep_pop(STORE, COMPUTE)
    runtime.dep_pop(LOAD, COMPUTE)
    call.load(Buffer.INP)
    call.load(Buffer.ACC)
    call.load(Buffer.ACC)
    runtime.synchronize()
    table = recorder.tables[0]
    assert table["pop_prev"][:3].tolist() == [0, 1, 0]
    assert table["pop_next"][:3].tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    ("memory", "stage"),
    [(Buffer.INP, LOAD), (Buffer.WGT, LOAD), (Buffer.ACC, COMPUTE), (Buffer.ACC_8BIT, COMPUTE)],
)
def test_a_push_goes_into_the_last_record_if_its_stage_is_the_pusher(
    memory, stage, runtime, recorder
):
    call = Caller(runtime)
    call.load(memory)
    runtime.dep_push(LOAD, COMPUTE)
    table = (runtime.synchronize(), recorder.tables[0])[1]
    assert table["push_next"][0] == (stage == LOAD)
    assert len(table) == 5 + (stage != LOAD)


def test_a_push_looks_at_the_whole_queue_s_last_record_only(runtime, recorder):
    call = Caller(runtime)
    call.load(Buffer.INP)
    call.load(Buffer.ACC)
    runtime.dep_push(LOAD, COMPUTE)
    runtime.synchronize()
    assert_records(recorder.tables[0][2:3], [noop(LOAD, push_next=True)])


def test_a_load_of_nothing_takes_no_push_but_a_store_of_nothing_does(runtime, recorder):
    call = Caller(runtime)
    call.load(Buffer.INP, x_size=0)
    runtime.dep_push(LOAD, COMPUTE)
    call.store(x_size=0)
    runtime.dep_push(STORE, COMPUTE)
    runtime.synchronize()
    table = recorder.tables[0]
    assert table["push_next"][:3].tolist() == [0, 1, 0]
    assert table["push_prev"][:3].tolist() == [0, 0, 1]


@pytest.mark.parametrize("call", ["dep_push", "dep_pop"])
@pytest.mark.parametrize(
    ("edge", "message"),
    [
        ((LOAD, STORE), "no token queue from load to store"),
        ((STORE, LOAD), "no token queue from store to load"),
        ((COMPUTE, COMPUTE), "no token queue from compute to compute"),
        ((0, 1), "stage 0 does not exist; load is 1, compute 2, store 3"),
        ((3, 4), "stage 4 does not exist"),
        ((-1, 2), "stage -1 does not exist"),
    ],
)
def test_edges_without_a_queue_are_refused(call, edge, message, runtime):
    with pytest.raises(RuntimeCallError, match=f"{call}: .*{message}"):
        getattr(runtime, call)(*edge)


class SlowQueue:
    """Section 6.5 and 6.6 of the contract once more, literally, as a list of field mappings."""

    def __init__(self):
        self.records = []
        self.pending = {stage: {} for stage in Stage}

    def create(self, stage, fields):
        self.records.append({**fields, **self.pending[stage]})
        self.pending[stage] = {}

    def flush_pops(self, stage):
        if self.pending[stage]:
            self.records.append(noop(stage, **self.pending[stage]))
            self.pending[stage] = {}

    def dep_pop(self, from_stage, to_stage):
        flag = "pop_prev" if from_stage < to_stage else "pop_next"
        if flag in self.pending[to_stage]:
            self.flush_pops(to_stage)
        self.pending[to_stage][flag] = 1

    def dep_push(self, from_stage, to_stage):
        flag = "push_next" if from_stage < to_stage else "push_prev"
        self.flush_pops(from_stage)
        if self.records:
            last = self.records[-1]
            if self.stage_of(last) == from_stage and not last.get(flag):
                last[flag] = 1
                return
        self.records.append(noop(from_stage, **{flag: True}))

    def stage_of(self, record):
        opcode = record["opcode"]
        if opcode == 1:
            return STORE
        if opcode != 0:
            return COMPUTE
        if record.get("x_size", 0) == 0:
            return None
        return LOAD if record["buffer"] in (Buffer.INP, Buffer.WGT) else COMPUTE

    def synchronize(self):
        self.dep_push(STORE, COMPUTE)
        self.dep_push(LOAD, COMPUTE)
        self.dep_pop(STORE, COMPUTE)
        self.dep_pop(LOAD, COMPUTE)
        self.flush_pops(COMPUTE)
        self.records.append(finish())
        done, self.records = self.records, []
        return done


EDGES = [(LOAD, COMPUTE), (COMPUTE, LOAD), (COMPUTE, STORE), (STORE, COMPUTE)]


@pytest.mark.parametrize("seed", range(20))
def test_random_calls_against_the_slow_statement_of_the_rules(seed, make_recorder, machine):
    rng = np.random.default_rng(seed)
    recorder = make_recorder(machine)
    runtime = Runtime(recorder)
    call = Caller(runtime)
    # Everything is in SRAM from the start, so no LOAD of micro-ops disturbs the sequence.
    slow = SlowQueue()
    loaded = False
    expected = []
    for _ in range(300):
        choice = rng.integers(0, 12)
        if choice < 4:
            edge = EDGES[rng.integers(0, 4)]
            runtime.dep_push(*edge)
            slow.dep_push(*edge)
        elif choice < 8:
            edge = EDGES[rng.integers(0, 4)]
            runtime.dep_pop(*edge)
            slow.dep_pop(*edge)
        elif choice < 9:
            memory = [Buffer.INP, Buffer.WGT, Buffer.ACC, Buffer.ACC_8BIT][rng.integers(0, 4)]
            x_size = int(rng.integers(0, 3))
            call.load(memory, x_size)
            row = load(memory, sram_base=0, dram_base=call.base(memory), x_size=x_size)
            slow.create(LOAD if memory in (Buffer.INP, Buffer.WGT) else COMPUTE, row)
        elif choice < 10:
            x_size = int(rng.integers(0, 3))
            call.store(x_size)
            row = store(sram_base=0, dram_base=call.base(Buffer.OUT), x_size=x_size)
            slow.create(STORE, row)
        elif choice < 11:
            call.gemm()
            if not loaded:
                slow.create(COMPUTE, load(Buffer.UOP, sram_base=0, dram_base=0, x_size=1))
            loaded = True
            slow.create(COMPUTE, gemm(uops=(0, 1)))
        elif rng.integers(0, 8) == 0:
            runtime.synchronize()
            expected.append(slow.synchronize())
            loaded = False
    runtime.synchronize()
    expected.append(slow.synchronize())
    assert len(recorder.tables) == len(expected), f"seed {seed}"
    for table, want in zip(recorder.tables, expected, strict=True):
        is_uop_load = (table["buffer"] == Buffer.UOP) & (table["x_size"] > 0)
        table["dram_base"][is_uop_load] = 0  # where the image lies is the runtime's affair
        assert_records(table, want)


def test_force_serial_chains_neighbours_and_ends_with_a_handshake(runtime, recorder):
    call = Caller(runtime)
    runtime.set_debug_mode(DebugFlag.FORCE_SERIAL)
    call.load(Buffer.INP)
    call.load(Buffer.WGT)
    runtime.dep_pop(LOAD, COMPUTE)  # without a push: dropped like every flag of the program
    call.gemm()
    call.store()
    runtime.dep_push(STORE, COMPUTE)
    runtime.dep_pop(COMPUTE, LOAD)
    runtime.synchronize()
    table = recorder.tables[0]
    inp, wgt, out = (call.base(b) for b in (Buffer.INP, Buffer.WGT, Buffer.OUT))
    uops = int(table["dram_base"][2])
    assert_records(
        table,
        [
            load(Buffer.INP, sram_base=0, dram_base=inp, x_size=1),
            load(Buffer.WGT, sram_base=0, dram_base=wgt, x_size=1, push_next=True),
            load(Buffer.UOP, sram_base=0, dram_base=uops, x_size=1, pop_prev=True),
            gemm(uops=(0, 1), push_next=True),
            store(sram_base=0, dram_base=out, x_size=1, pop_prev=True, push_prev=True),
            noop(COMPUTE, pop_next=True),
            noop(COMPUTE, push_prev=True),
            noop(LOAD, pop_next=True),
            noop(LOAD, push_next=True),
            noop(COMPUTE, pop_prev=True),
            finish(),
        ],
    )


def test_force_serial_passes_the_token_between_load_and_store_through_compute(runtime, recorder):
    call = Caller(runtime)
    runtime.set_debug_mode(DebugFlag.FORCE_SERIAL)
    call.store()
    call.load(Buffer.INP)
    call.store()
    runtime.synchronize()
    out, inp = call.base(Buffer.OUT), call.base(Buffer.INP)
    assert_records(
        recorder.tables[0][:5],
        [
            store(sram_base=0, dram_base=out, x_size=1, push_prev=True),
            noop(COMPUTE, pop_next=True, push_prev=True),
            load(Buffer.INP, sram_base=0, dram_base=inp, x_size=1, pop_next=True, push_next=True),
            noop(COMPUTE, pop_prev=True, push_next=True),
            store(sram_base=0, dram_base=out, x_size=1, pop_prev=True, push_prev=True),
        ],
    )


@pytest.mark.parametrize("first", ["load", "gemm", "store", "nothing"])
def test_force_serial_streams_leave_no_token_behind(first, judge, tokens_left):
    call = Caller(judge)
    judge.set_debug_mode(DebugFlag.FORCE_SERIAL)
    if first == "load":
        call.load(Buffer.INP)
    elif first == "gemm":
        call.gemm()
    elif first == "store":
        call.store()
    judge.synchronize()
    assert tokens_left(judge) == (0, 0, 0, 0)


def test_serial_execution_overlaps_nothing(judge):
    judge.set_debug_mode(DebugFlag.FORCE_SERIAL)
    call = Caller(judge)
    for _ in range(3):
        call.load(Buffer.INP)
        call.gemm()
        call.store()
        call.load(Buffer.WGT)
    timeline = judge.synchronize().timeline
    table = decode_stream(judge.streams[0].words, judge.machine)
    works = (table["x_size"] > 0) | (table["opcode"] == Opcode.GEMM)
    assert (timeline.start[works][1:] > timeline.end[works][:-1]).all()


def test_alu_records_keep_their_settings(runtime, recorder):
    runtime.push_alu_op(
        0, lambda r: [r.uop_push(1, 0, i, i, 0, AluOp.SHR, 1, -8) for i in range(3)]
    )
    runtime.synchronize()
    assert_records(recorder.tables[0][1:2], [alu(AluOp.SHR, uops=(0, 3), imm=-8)])
