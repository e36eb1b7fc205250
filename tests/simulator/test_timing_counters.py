"""Attribution and event counters, on programs that also compute."""

import numpy as np
import pytest
from machines import NAMES, machine
from programs import random_program
from timing_judge import Judge

from simulator.timing import simulate
from vta_isa import counters
from vta_isa.enums import Buffer, Opcode, Stage
from vta_isa.insn import stages


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", NAMES)
def test_every_cycle_of_every_stage_has_one_cause(name: str, seed: int) -> None:
    program = random_program(np.random.default_rng(seed), machine(name), size=60)
    timing = simulate(program.table, program.machine)
    assert list(timing.counters) == [counter.name for counter in counters.COUNTERS]
    for stage, causes in counters.attribution(timing.counters).items():
        assert sum(causes.values()) == timing.cycles, stage
        assert min(causes.values()) >= 0
    assert timing.tokens == (0, 0, 0, 0)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_every_cycle_of_an_instruction_has_one_cause(name: str, compiled: bool) -> None:
    program = random_program(np.random.default_rng(4), machine(name), size=40)
    timing = simulate(program.table, program.machine, compiled=compiled, record_places=True)
    timeline, places = timing.timeline, timing.timeline.places
    assert places is not None
    assert places.stalled is None
    assert places.causes.min() >= 0
    for column, counter in enumerate(counters.CAUSE_COUNTERS):
        found = places.causes[:, column].sum()
        assert found == (0 if counter.endswith("idle") else timing.counters[counter]), counter
    columns = np.array([counter.split("_")[0] for counter in counters.CAUSE_COUNTERS])
    for stage in Stage:
        mine = places.causes[timeline.stage == stage]
        assert not mine[:, (columns != "fetch") & (columns != stage.name.lower())].any()
    fetched = places.causes[:, columns == "fetch"].sum(axis=1)
    np.testing.assert_array_equal(fetched, np.diff(timeline.dispatch, prepend=-1))


@pytest.mark.parametrize("name", NAMES)
def test_events_are_those_of_the_instructions(name: str) -> None:
    program = random_program(np.random.default_rng(5), machine(name), size=60)
    table, m = program.table, program.machine
    timing = simulate(table, m, record_bursts=True)
    got, bursts = timing.counters, timing.timeline.bursts
    assert bursts is not None

    stage = stages(table)
    for which in Stage:
        assert got[f"{which.name.lower()}_instructions"] == (stage == which).sum()
    ops, size = dict.fromkeys(("gemm", "reset", "alu"), 0), dict.fromkeys(Buffer, 0)
    for insn in table:
        repeats = max(int(insn["uop_end"]) - int(insn["uop_begin"]), 0)
        repeats *= int(insn["iter_out"]) * int(insn["iter_in"])
        area = int(insn["x_size"]) * int(insn["y_size"])
        if insn["opcode"] == Opcode.ALU:
            ops["alu"] += repeats
        elif insn["opcode"] == Opcode.GEMM:
            ops["reset" if insn["reset"] else "gemm"] += repeats
        elif area:
            buffer = Buffer(int(insn["buffer"]))
            size[buffer] += area * m.entry_bytes(buffer)
    assert ops == {kind: got[f"{kind}_ops"] for kind in ops}
    for buffer in (Buffer.UOP, Buffer.INP, Buffer.WGT, Buffer.OUT):
        assert got[f"{buffer.name.lower()}_bytes"] == size[buffer]
    assert got["acc_bytes"] == size[Buffer.ACC] + size[Buffer.ACC_8BIT]
    assert got["insn_bytes"] == 16 * len(table)
    assert got["dram_write_bytes"] == size[Buffer.OUT]
    assert got["dram_read_bytes"] == sum(size.values()) - size[Buffer.OUT] + 16 * len(table)

    writes = bursts.stage == Stage.STORE
    assert got["dram_read_bursts"] == (~writes).sum()
    assert got["dram_write_bursts"] == writes.sum()
    assert got["dram_read_beats"] == bursts.beats[~writes].sum()
    assert got["dram_write_beats"] == bursts.beats[writes].sum()
    first_byte, last_byte = bursts.address, bursts.address + bursts.beats * m.bus_bytes - 1
    assert (first_byte // 4096 == last_byte // 4096).all()
    assert bursts.beats.max() <= m.axi.burst_beats


@pytest.mark.parametrize("name", ["default", "bus32", "bus512", "short-queues", "many-inputs"])
def test_the_judge_agrees_on_programs_that_compute(name: str) -> None:
    program = random_program(np.random.default_rng(11), machine(name), size=12, iterations=24)
    judge = Judge(program.table, program.machine).run()
    timing = simulate(program.table, program.machine)
    assert timing.cycles == judge.cycles
    np.testing.assert_array_equal(timing.timeline.end, [insn.end for insn in judge.insns])


def test_every_counter_has_a_unit_and_a_sentence() -> None:
    assert len({counter.name for counter in counters.COUNTERS}) == len(counters.COUNTERS)
    for counter in counters.COUNTERS:
        assert counter.unit
        assert counter.sentence
        assert counters.BY_NAME[counter.name] is counter
