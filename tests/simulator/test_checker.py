"""The checker: against its slow judge, against the timing engine, and by hand."""

import json
from pathlib import Path

import machines
import numpy as np
import pytest
from images import Image
from mutants import delete_flag, delete_token, move_flag
from programs import random_program

from simulator.checker import Checker, CheckError, Code, Severity, check, checker, errors
from simulator.hazards import find_hazards
from simulator.timing import simulate
from vta.checked_device import CheckedDevice, checked
from vta_isa.encoding import encode_stream
from vta_isa.enums import AluOp, Buffer, Stage
from vta_isa.errors import DeadlockError, StreamError
from vta_isa.insn import alu, finish, gemm, load, noop, records, store
from vta_isa.machine import load_machine
from vta_runtime import MappedDevice, Runtime, SimulatorDevice

VECTORS = sorted((Path(__file__).parents[1] / "vectors").iterdir())
BLOCK8 = machines.machine("block8")
RACES = (Code.RACE, Code.UOP_IMAGE)
SOUND = (Code.NEVER_WRITTEN, Code.UOP_NEVER_LOADED, Code.LOAD_UNFINISHED)


def found_in(machine, insns, dram=None, **options):
    table = records(insns)
    options = {"fresh": False, **options}
    return Checker(machine, **options).check(encode_stream(table, machine), dram)


def codes(found):
    return [finding.code for finding in found]


# -- judges -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["smallest", "int4", "batch4-wide-out", "bus32", "tiny", "extended", "extended-tiny"]
)
@pytest.mark.parametrize("seed", range(3))
def test_races_are_those_that_the_slow_judge_finds(name, seed):
    rng = np.random.default_rng([seed, 61])
    program = random_program(rng, machines.machine(name), size=40, data_bytes=4096)
    assert set(codes(check(program.stream, program.machine, program.dram))) <= set(SOUND)
    racy = 0
    for _ in range(12):
        mutant = program.table.copy()
        for _ in range(int(rng.integers(1, 5))):
            delete_token(mutant, rng)
        want = find_hazards(mutant, program.machine, program.dram)
        words = encode_stream(mutant, program.machine)
        found = Checker(program.machine, limit=10**6).check(words, program.dram)
        assert {(h.kind.name, h.first, h.second, h.memory, h.low, h.high) for h in want} == {
            (f.kind, f.other, f.insn, f.memory, f.low, f.high) for f in found if f.code in RACES
        }, seed
        racy += bool(want)
    assert racy, seed


@pytest.mark.parametrize("name", ["short-queues", "smallest", "tiny"])
@pytest.mark.parametrize("seed", range(4))
def test_deadlocks_are_those_in_which_the_timing_engine_ends(name, seed):
    """Fetch and full queues included; the engine runs one timing, the checker speaks for all."""
    rng = np.random.default_rng([seed, 62])
    program = random_program(rng, machines.machine(name), size=30, data_bytes=4096)
    ends = []
    for _ in range(25):
        mutant = program.table.copy()
        (delete_flag, move_flag)[int(rng.integers(2))](mutant, rng)
        words = encode_stream(mutant, program.machine)
        got = set(codes(Checker(program.machine).check(words, program.dram)))
        try:
            left = simulate(mutant, program.machine).tokens
        except DeadlockError:
            assert got & {Code.DEADLOCK, Code.POP_WITHOUT_PUSH}, seed
            ends.append("deadlock")
        else:
            assert not got & {Code.DEADLOCK, Code.POP_WITHOUT_PUSH}, seed
            assert (Code.TOKEN_LEFT in got) == any(left), seed
            ends.append("tokens" if any(left) else "done")
    assert {"deadlock", "tokens"} <= set(ends), seed


@pytest.mark.parametrize("seed", range(2))
def test_compiled_passes_find_what_their_source_does(seed, monkeypatch):
    rng = np.random.default_rng([seed, 63])
    program = random_program(rng, machines.machine("smallest"), size=20, data_bytes=2048)
    streams = [program.stream]
    for _ in range(6):
        mutant = program.table.copy()
        (delete_flag, move_flag, delete_token)[int(rng.integers(3))](mutant, rng)
        streams.append(encode_stream(mutant, program.machine))
    fast = [check(words, program.machine, program.dram) for words in streams]
    monkeypatch.setattr(checker, "compiled", lambda run: run)
    assert [check(words, program.machine, program.dram) for words in streams] == fast, seed


@pytest.mark.parametrize("folder", VECTORS, ids=lambda folder: folder.name)
def test_vectors_are_sound(folder):
    machine = load_machine(json.loads((folder / "meta.json").read_text())["config"])
    stream, dram = (folder / "insn.bin").read_bytes(), (folder / "dram.bin").read_bytes()
    assert check(stream, machine, dram, fresh=True) == []
    assert set(codes(check(stream, machine))) <= {Code.UOPS_UNKNOWN}


def test_a_long_stream_of_many_footprints():
    """More footprints, intervals and micro-ops than there is room for at first."""
    machine = machines.machine("default")
    program = random_program(np.random.default_rng(65), machine, size=600, iterations=128)
    assert set(codes(check(program.stream, machine, program.dram))) <= set(SOUND)


# -- tokens -------------------------------------------------------------------------------------


def test_fetch_that_cannot_reach_the_push():
    """Load's third instruction waits for a token; compute's, which pushes it, lies behind."""
    waiting = [noop(Stage.LOAD, pop_next=True)] * 3
    pushing = [noop(Stage.COMPUTE, push_prev=True)] * 3
    program = [*waiting, *pushing, finish()]
    short = BLOCK8.replace(queues={"command": 2})
    assert found_in(BLOCK8, program) == []
    (finding,) = found_in(short, program)
    assert finding.code == Code.DEADLOCK
    assert "fetch: insn 2 has no room in its command queue (2)" in finding.detail


def test_more_tokens_than_a_queue_holds():
    program = [*[noop(Stage.LOAD, push_next=True)] * 3, finish()]
    pops = [noop(Stage.COMPUTE, pop_prev=True)] * 3
    for capacity, expected in ((3, [Code.TOKEN_LEFT]), (2, [Code.DEADLOCK])):
        machine = BLOCK8.replace(queues={"token": capacity})
        assert codes(found_in(machine, program)) == expected
        assert found_in(machine, [*program[:-1], *pops, finish()]) == []


def test_tokens_are_pushed_together():
    """While compute cannot push to load it has not pushed to store either."""
    machine = BLOCK8.replace(queues={"token": 1, "command": 1})
    program = [
        noop(Stage.COMPUTE, push_prev=True),
        noop(Stage.COMPUTE, push_prev=True, push_next=True),
        noop(Stage.STORE, pop_prev=True),
        noop(Stage.STORE),
        noop(Stage.STORE),
        noop(Stage.LOAD, pop_next=True),
        noop(Stage.LOAD, pop_next=True),
        finish(),
    ]
    table = records(program)
    with pytest.raises(DeadlockError):
        simulate(table, machine)
    assert codes(found_in(machine, program)) == [Code.DEADLOCK]
    assert found_in(machine.replace(queues={"token": 2, "command": 1}), program) == []


def test_the_first_pop_without_a_token_is_named():
    program = [
        noop(Stage.LOAD, push_next=True),
        *[noop(Stage.COMPUTE, pop_prev=True)] * 3,
        finish(),
    ]
    (finding,) = found_in(BLOCK8, program)
    assert (finding.code, finding.insn) == (Code.POP_WITHOUT_PUSH, 2)


# -- launches in sequence -----------------------------------------------------------------------


def image_with_uops(machine):
    image = Image(machine)
    base = image.place_uops([(n, n, n) for n in range(8)])
    image.reserve(Buffer.ACC, 8)
    return image.dram(), base


def test_a_launch_finds_what_the_one_before_left():
    dram, base = image_with_uops(BLOCK8)
    fill = [
        load(Buffer.UOP, sram_base=0, dram_base=base, x_size=8),
        load(Buffer.ACC, sram_base=0, dram_base=1, x_size=8),
        finish(),
    ]
    use = [alu(AluOp.ADD, uops=(0, 8), imm=1), finish()]
    both = Checker(BLOCK8)
    assert both.check(encode_stream(records(fill), BLOCK8), dram) == []
    assert both.check(encode_stream(records(use), BLOCK8), dram) == []
    assert codes(found_in(BLOCK8, use, dram, fresh=True)) == [
        Code.UOP_NEVER_LOADED, Code.NEVER_WRITTEN,
    ]  # fmt: skip
    (warned,) = found_in(BLOCK8, use, dram)
    assert (warned.code, warned.severity) == (Code.UOP_NEVER_LOADED, Severity.WARNING)
    assert (warned.low, warned.high) == (0, 7)


def test_tokens_stay_for_the_next_launch():
    first = encode_stream(records([noop(Stage.LOAD, push_next=True), finish()]), BLOCK8)
    second = encode_stream(records([finish(pop_prev=True)]), BLOCK8)
    sequence = Checker(BLOCK8)
    assert codes(sequence.check(first)) == [Code.TOKEN_LEFT]
    assert sequence.check(second) == []
    assert codes(sequence.check(second)) == [Code.POP_WITHOUT_PUSH]


def test_tokens_of_an_earlier_launch_order_nothing():
    dram, _ = image_with_uops(BLOCK8)
    program = [
        load(Buffer.ACC, sram_base=0, dram_base=0, x_size=1, push_next=True),
        store(sram_base=0, dram_base=0, x_size=1, pop_prev=True, push_prev=True),
        finish(pop_next=True),
    ]
    sequence = Checker(BLOCK8)
    sequence.check(encode_stream(records([noop(Stage.COMPUTE, push_next=True), finish()]), BLOCK8))
    found = sequence.check(encode_stream(records(program), BLOCK8), dram)
    assert {Code.RACE, Code.TOKEN_LEFT} <= set(codes(found))


# -- single findings ----------------------------------------------------------------------------


def test_a_race_says_what_where_and_which_token_would_help():
    dram, base = image_with_uops(BLOCK8)
    found = found_in(
        BLOCK8,
        [
            load(Buffer.UOP, sram_base=0, dram_base=base, x_size=8),
            load(Buffer.INP, sram_base=2, dram_base=0, x_size=4),
            gemm(uops=(0, 8), reset=True),
            gemm(uops=(0, 8)),
            finish(),
        ],
        dram,
    )
    (race,) = (finding for finding in found if finding.code == Code.RACE)
    assert (race.kind, race.memory, race.low, race.high) == ("RAW", "INP", 2, 5)
    assert (race.other, race.insn) == (1, 3)
    assert race.detail[0].startswith("insn 1: load.inp sram_base=2")
    assert race.detail[1].startswith("insn 3: gemm uop_end=8")
    assert "push_next on insn 1 or a later one of load" in race.detail[2]
    assert json.loads(json.dumps(race.as_json()))["code"] == "race"


def test_a_race_between_load_and_store_needs_two_tokens():
    dram, _ = image_with_uops(BLOCK8)
    found = found_in(
        BLOCK8,
        [
            load(Buffer.ACC, sram_base=0, dram_base=0, x_size=1, push_next=True),
            store(sram_base=0, dram_base=1, x_size=1, pop_prev=True, push_prev=True),
            load(Buffer.INP, sram_base=0, dram_base=1, x_size=1, push_next=True),
            finish(pop_prev=True, pop_next=True),
        ],
        dram,
    )
    (race,) = found
    assert (race.memory, race.low, race.high, race.kind) == ("DRAM", 8, 15, "RAW")
    assert race.detail[2].startswith("two tokens would order them: store -> compute")


def test_only_so_many_findings_of_a_code_are_listed():
    bad = [load(Buffer.OUT, sram_base=0, dram_base=0, x_size=1)] * 5
    found = found_in(BLOCK8, [*bad, finish()], limit=2)
    assert [finding.more for finding in found] == [0, 3]
    assert str(found[1]).endswith("\n    and 3 more of the kind")


def test_every_entry_that_nothing_wrote_is_reported_once():
    program = [
        store(sram_base=0, dram_base=0, x_size=2),
        store(sram_base=0, dram_base=0, x_size=4, push_prev=True),
        finish(pop_next=True),
    ]
    found = found_in(BLOCK8, program, np.zeros(64, np.uint8))
    assert [(f.insn, f.low, f.high) for f in found] == [(0, 0, 1), (1, 2, 3)]


@pytest.mark.parametrize("stream", [b"", b"\0" * 15])
def test_streams_that_are_none(stream):
    if not stream:
        assert codes(check(stream, "tiny")) == [Code.NO_FINISH]
    else:
        with pytest.raises(StreamError):
            check(stream, "tiny")


def test_an_image_is_bytes():
    stream = encode_stream(records([finish()]), BLOCK8)
    with pytest.raises(StreamError, match="it must be uint8 bytes"):
        check(stream, BLOCK8, np.zeros(4, dtype=np.int32))
    image = np.zeros(7, dtype=np.uint8)  # not a whole number of micro-ops
    image.flags.writeable = False
    assert check(stream, BLOCK8, image) == []


def test_the_order_of_findings_is_that_of_the_stream():
    program = random_program(np.random.default_rng(66), machines.machine("tiny"), size=40)
    table = program.table.copy()
    table["pop_prev"] = table["push_next"] = 0
    found = check(encode_stream(table, program.machine), program.machine, program.dram)
    numbers = [-1 if finding.insn is None else finding.insn for finding in found]
    assert numbers == sorted(numbers)


# -- in front of a device -----------------------------------------------------------------------


def test_a_checked_device_runs_nothing_that_fails():
    runtime = Runtime(checked(SimulatorDevice(BLOCK8, memory_bytes=1 << 20)))
    buffer = runtime.upload(np.zeros(64, dtype=np.uint8))
    runtime.load_buffer_2d(buffer, 0, 1, 1, 1, 0, 0, 0, 0, 0, int(Buffer.ACC))
    runtime.store_buffer_2d(0, int(Buffer.OUT), buffer, 1, 1, 1, 1)
    with pytest.raises(
        CheckError, match="race: insn 1 reads ACC entry 0 that insn 0 writes"
    ) as got:
        runtime.synchronize()
    assert errors(got.value.findings) == list(got.value.findings)
    assert not runtime.launches


def test_a_checked_device_is_the_device_it_checks():
    device = SimulatorDevice(BLOCK8, memory_bytes=1 << 20)
    mapped = checked(device)
    assert isinstance(mapped, MappedDevice)
    assert mapped.host_address(4096) == device.host_address(4096)
    assert not isinstance(CheckedDevice(device), MappedDevice)
    assert (mapped.machine, mapped.memory_bytes) == (BLOCK8, 1 << 20)
    runtime = Runtime(mapped)
    runtime.synchronize()
    (launch,) = runtime.launches
    assert launch.cycles > 0
