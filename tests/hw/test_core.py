"""The whole core: bits as the reference computes them, cycles as the simulator says.

These machines are compiled in every test run; every_machine.py has the others.
"""

import numpy as np
import pytest
import vector_files
from programs import random_program
from rtl_checks import check, check_results, needs_compiler
from rtl_machines import machine
from vector_files import machine_of_vector, vector

from vta_hw.verilated import VerilatedCore, run_rtl
from vta_isa.counters import CAUSE_COUNTERS
from vta_isa.encoding import encode_stream
from vta_isa.enums import Buffer, Stage
from vta_isa.errors import DeadlockError, StreamError
from vta_isa.insn import finish, load, noop, records, store

pytestmark = needs_compiler


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("name", ["tiny", "odd"])
def test_random_programs(name, seed):
    rng = np.random.default_rng([seed, 3])
    program = random_program(rng, machine(name))
    check(VerilatedCore(machine(name)), program, 16 * int(rng.integers(64)))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_random_programs_on_the_default_machine(seed):
    rng = np.random.default_rng([seed, 4])
    program = random_program(rng, machine("default"))
    check(VerilatedCore(machine("default")), program, 16 * int(rng.integers(64)))


OF_THE_DEFAULT_MACHINE = [
    name for name in vector_files.NAMES if machine_of_vector(name).hash == machine("default").hash
]


@pytest.mark.slow
@pytest.mark.parametrize("name", OF_THE_DEFAULT_MACHINE)
def test_vectors(name):
    program, after = vector(name).program, vector(name).after
    check(VerilatedCore(program.machine), program)
    dram, _ = run_rtl(program.stream, program.dram, program.machine)
    np.testing.assert_array_equal(dram, after)


def test_most_vectors_are_for_the_default_machine():
    assert len(OF_THE_DEFAULT_MACHINE) == 9


@pytest.mark.parametrize("jitter", range(6))
def test_late_memory_changes_cycles_as_predicted(jitter):
    # The memory is no part of the RTL: one library serves every latency.
    late = machine("tiny").replace(
        memory={"read_latency": 1 + 9 * jitter, "write_latency": 1 + jitter, "jitter": jitter}
    )
    program = random_program(np.random.default_rng([jitter, 5]), late)
    check(VerilatedCore(late), program, 48)


@pytest.mark.parametrize("pressure", range(1, 9))
@pytest.mark.parametrize("name", ["tiny", "odd"])
def test_back_pressure_changes_no_result(name, pressure):
    program = random_program(np.random.default_rng([pressure, 7]), machine(name))
    check_results(VerilatedCore(machine(name)), program, pressure=pressure)


def test_sram_and_tokens_stay_from_launch_to_launch():
    tiny = machine("tiny")
    core = VerilatedCore(tiny)
    unit, out = tiny.entry_bytes(Buffer.ACC), tiny.entry_bytes(Buffer.OUT)
    dram = np.arange(16 * unit, dtype=np.uint8)
    first = [load(Buffer.ACC, sram_base=3, dram_base=2, x_size=4, push_next=True), finish()]
    second = [store(sram_base=3, dram_base=0, x_size=4, pop_prev=True, push_prev=True)]
    second += [finish(pop_next=True)]
    expected = dram.copy()
    core.launch(encode_stream(records(first), tiny), dram)
    np.testing.assert_array_equal(dram, expected)
    core.launch(encode_stream(records(second), tiny), dram)
    accumulators = expected[2 * unit : 6 * unit].view("<i4")
    expected[: 4 * out] = accumulators.astype(np.int8).view(np.uint8)
    np.testing.assert_array_equal(dram, expected)


def test_a_stream_that_waits_for_ever_is_a_deadlock():
    tiny = machine("tiny")
    core = VerilatedCore(tiny)
    stuck = encode_stream(records([noop(Stage.LOAD, pop_next=True), finish(pop_prev=True)]), tiny)
    with pytest.raises(DeadlockError, match="insn 0 has not ended"):
        core.launch(stuck, np.zeros(64, dtype=np.uint8))
    core.reset()
    idle = encode_stream(records([finish()]), tiny)
    assert core.launch(idle, np.zeros(64, dtype=np.uint8)).cycles > 0


def test_an_access_outside_dram_is_reported():
    tiny = machine("tiny")
    insns = [load(Buffer.INP, sram_base=0, dram_base=100, x_size=1, push_next=True)]
    stream = encode_stream(records([*insns, finish(pop_prev=True)]), tiny)
    with pytest.raises(StreamError, match=r"outside DRAM, the first at byte 0x190"):
        run_rtl(stream, np.zeros(64, dtype=np.uint8), tiny)


def test_a_misplaced_stream_is_refused():
    stream = encode_stream(records([finish()]), machine("tiny"))
    with pytest.raises(StreamError, match="aligned to 16"):
        run_rtl(stream, np.zeros(64, dtype=np.uint8), machine("tiny"), insn_address=8)


def of_stage(stage: str, *without: str) -> list[int]:
    """Columns of the causes of a stage, but for those that end in one of ``without``."""
    names = enumerate(CAUSE_COUNTERS)
    return [i for i, name in names if name.startswith(f"{stage}_") and not name.endswith(without)]


@pytest.mark.parametrize("pressure", [0, 7])
@pytest.mark.parametrize("name", ["tiny", "odd"])
def test_every_cycle_of_a_stage_belongs_to_an_instruction(name, pressure):
    program = random_program(np.random.default_rng([pressure, 12]), machine(name))
    how = {"pressure": pressure, "record_places": True}
    launch = VerilatedCore(machine(name)).launch(program.stream, program.dram, **how)
    timeline, causes = launch.timeline, launch.timeline.places.causes
    for column, counter in enumerate(CAUSE_COUNTERS):
        if not counter.endswith("idle"):  # nobody's before the first and behind the last
            assert causes[:, column].sum() == launch.counters[counter], counter
    for stage in Stage:
        here = timeline.stage == stage
        runs = of_stage(stage.name.lower(), "idle", "wait_load", "wait_compute", "wait_store")
        cycles = (timeline.end - timeline.start + 1)[here]
        np.testing.assert_array_equal(causes[here][:, runs].sum(axis=1), cycles)
        for other in Stage:
            if other != stage:
                assert not causes[here][:, of_stage(other.name.lower())].any()
    stalled = launch.timeline.places.stalled
    assert stalled[:, 0].any() == bool(pressure)  # only then AR waits
