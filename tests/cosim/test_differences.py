"""Records that differ: what is found first, and how it is described. Needs no RTL."""

from dataclasses import replace

import machines
import numpy as np
import pytest
from other_core import OtherCore
from programs import random_program

from vta import lockstep
from vta.lockstep import Lockstep
from vta_isa.counters import CAUSE_COUNTERS
from vta_isa.enums import Buffer, Stage
from vta_isa.errors import DeadlockError, StreamError
from vta_isa.insn import finish, noop, records
from vta_isa.launch import Places

SEED = 11


@pytest.fixture
def program():
    return random_program(np.random.default_rng(SEED), machines.machine("tiny"))


@pytest.fixture
def compare(monkeypatch, program):
    """Compares the program with what ``change`` makes of it."""

    def run(change):
        monkeypatch.setattr(lockstep, "make_core", lambda *how: OtherCore(*how, change=change))
        return Lockstep(program.machine).launch(program.stream, program.dram, 32)

    return run


def altered(launch, field, changes):
    array = getattr(launch.timeline, field).copy()
    for index, delta in changes.items():
        array[index] += delta
    return replace(launch, timeline=replace(launch.timeline, **{field: array}))


def altered_bursts(launch, field, index, delta):
    array = getattr(launch.timeline.bursts, field).copy()
    array[index] += delta
    bursts = replace(launch.timeline.bursts, **{field: array})
    return replace(launch, timeline=replace(launch.timeline, bursts=bursts))


def test_the_same_is_no_difference(compare, program):
    run = compare(lambda launch, dram: None)
    assert run.difference is None
    assert not run.deadlocked
    assert run.cycles > 0
    assert (
        run.bursts
        == run.simulator.counters["dram_read_bursts"]
        + (run.simulator.counters["dram_write_bursts"])
    )
    buffers = (Buffer.UOP, Buffer.INP, Buffer.WGT, Buffer.ACC, Buffer.OUT)
    machine = program.machine
    assert run.sram_bytes == sum(machine.depth(b) * machine.entry_bytes(b) for b in buffers)


@pytest.mark.parametrize("event", ["dispatch", "start", "end"])
@pytest.mark.parametrize("delta", [-1, 1])
def test_one_cycle_of_one_instruction(compare, event, delta):
    run = compare(lambda launch, dram: altered(launch, event, {7: delta}))
    assert run.difference.what == f"{event} of instruction 7"
    assert run.difference.rtl - run.difference.simulator == delta
    assert run.difference.insn == 7


def test_the_earliest_one_comes_first(compare):
    def change(launch, dram):
        return altered(altered(launch, "end", {3: 1}), "dispatch", {20: 1, 9: 1})

    run = compare(change)
    timeline = run.simulator.timeline
    order = {"end of instruction 3": timeline.end[3], "dispatch of instruction 9": None}
    order["dispatch of instruction 9"] = timeline.dispatch[9]
    assert run.difference.what == min(order, key=order.get)


def test_the_neighbours_are_shown(compare, program):
    run = compare(lambda launch, dram: altered(launch, "end", {0: 2, 7: 1}))
    lines = run.difference.around.splitlines()
    insn = run.difference.insn
    marked = [line for line in lines if line.startswith(">")]
    assert len(marked) == 1
    assert marked[0].split()[0].lstrip(">") in ("", str(insn))
    assert len(lines) == 1 + min(insn, 3) + 4
    for cycle in (run.difference.simulator, run.difference.rtl):
        assert str(cycle) in marked[0]


@pytest.mark.parametrize("field", ["request", "issue", "first", "last", "address", "beats", "insn"])
def test_one_field_of_a_read_burst(compare, field):
    run = compare(lambda launch, dram: altered_bursts(launch, field, 2, 1))
    assert run.difference.what.startswith(f"{field} of read burst 2, for ")


@pytest.mark.parametrize("column", [1, 8, 17])
def test_cycles_of_an_instruction_that_count_to_another_cause(compare, column):
    def change(launch, dram):
        causes = launch.timeline.places.causes.copy()
        causes[[4, 6], column] += 1
        return replace(launch, timeline=replace(launch.timeline, places=Places(causes)))

    run = compare(change)
    assert run.difference.what == f"cycles that instruction 4 is in {CAUSE_COUNTERS[column]}"
    assert run.difference.rtl - run.difference.simulator == 1
    assert run.difference.insn == 4


def test_a_write_burst(compare):
    def change(launch, dram):
        first = int(np.flatnonzero(launch.timeline.bursts.stage == Stage.STORE)[0])
        return altered_bursts(launch, "last", first, 1)

    run = compare(change)
    assert run.difference.what.startswith("last of write burst 0, for store, instruction ")


def test_a_burst_that_is_missing(compare):
    def change(launch, dram):
        bursts = launch.timeline.bursts
        kept = {name: array[:-1] for name, array in vars(bursts).items()}
        return replace(launch, timeline=replace(launch.timeline, bursts=replace(bursts, **kept)))

    run = compare(change)
    assert "write bursts in all" in run.difference.what
    assert run.difference.simulator == run.difference.rtl + 1


def test_cycles_and_counters(compare):
    run = compare(lambda launch, dram: replace(launch, cycles=launch.cycles + 1))
    assert run.difference.what == "cycles of the launch"
    counters = {"load_idle": -1, "new": 0}

    def change(launch, dram):
        return replace(launch, counters={**launch.counters, **counters})

    run = compare(change)
    assert str(run.difference).startswith("counter load_idle: simulator ")
    del counters["load_idle"]
    assert str(compare(change).difference) == "counter new: simulator none, RTL 0"


@pytest.mark.parametrize("place", [0, -1])
def test_a_byte_of_dram(compare, program, place):
    def change(launch, dram):
        dram[place] ^= 0x80

    run = compare(change)
    assert run.difference.what == f"DRAM byte {range(len(program.dram))[place]:#x}"
    assert run.difference.simulator ^ run.difference.rtl == 0x80


@pytest.mark.parametrize("buffer", [Buffer.UOP, Buffer.INP, Buffer.WGT, Buffer.ACC, Buffer.OUT])
def test_a_scalar_of_sram(monkeypatch, program, buffer):
    class Other(OtherCore):
        def sram(self, which):
            data = super().sram(which)
            if which == buffer:
                data.reshape(-1)[-1] ^= 1
            return data

    monkeypatch.setattr(lockstep, "make_core", Other)
    run = Lockstep(program.machine).launch(program.stream, program.dram)
    last = program.machine.depth(buffer) - 1
    assert run.difference.what.startswith(f"{buffer.name} memory, entry {last}")


def test_only_one_side_ends(compare):
    def change(launch, dram):
        raise DeadlockError("nothing happens", insn=5)

    run = compare(change)
    assert run.difference.what == "the launch"
    assert run.difference.simulator.startswith("ends after ")
    assert run.difference.rtl == "nothing happens"
    assert run.difference.insn == 5
    assert run.rtl is None
    assert not run.deadlocked


def test_what_the_rtl_alone_refuses_is_a_difference(compare):
    def change(launch, dram):
        raise AssertionError("AR changed while it waited")

    assert "AR changed" in str(compare(change).difference)


def test_both_sides_deadlock(compare, program, monkeypatch):
    monkeypatch.setattr(lockstep, "make_core", OtherCore)
    stuck = records([noop(Stage.LOAD, pop_next=True), finish(pop_prev=True)])
    from vta_isa.encoding import encode_stream

    stream = encode_stream(stuck, program.machine)
    run = Lockstep(program.machine).launch(stream, program.dram)
    assert run.deadlocked
    assert run.difference is None


def test_a_stream_that_may_not_run_is_an_error(monkeypatch, program):
    monkeypatch.setattr(lockstep, "make_core", OtherCore)
    with pytest.raises(StreamError):
        Lockstep(program.machine).launch(program.stream[:-1], program.dram)
