"""The machine as a whole: timing and function together, launch after launch."""

import json
from pathlib import Path

import numpy as np
import pytest
from machines import machine
from programs import Program, random_program

from simulator.machine import DEVICES, Simulator, execute
from vta_isa import counters
from vta_isa.encoding import encode_stream
from vta_isa.enums import Buffer, Stage
from vta_isa.errors import DeadlockError, StreamError, VtaError
from vta_isa.insn import Insn, finish, load, noop, records, store
from vta_isa.machine import Machine, load_machine

VECTORS = sorted((Path(__file__).parents[1] / "vectors").iterdir())
DEFAULT = load_machine("default")
ENGINES = ["native", "numpy", "reference"]


def stream_of(*insns: Insn, of: Machine = DEFAULT) -> np.ndarray:
    return encode_stream(records(insns), of)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("folder", VECTORS, ids=lambda folder: folder.name)
def test_every_device_passes_the_vectors(folder: Path, device: str) -> None:
    config = json.loads((folder / "meta.json").read_text())["config"]
    before = np.fromfile(folder / "dram.bin", dtype=np.uint8)
    kept = before.copy()
    result = execute((folder / "insn.bin").read_bytes(), before, config, device=device)
    np.testing.assert_array_equal(result.dram, np.fromfile(folder / "dram_out.bin", np.uint8))
    np.testing.assert_array_equal(before, kept)
    assert result.cycles == result.counters["cycles"] == result.timeline.end.max() + 1
    for causes in counters.attribution(result.counters).values():
        assert sum(causes.values()) == result.cycles


@pytest.mark.parametrize("name", ["default", "tiny", "int4", "short-queues"])
def test_the_devices_agree_on_everything(name: str) -> None:
    program = random_program(np.random.default_rng(3), machine(name), size=30)
    got = [execute(program.stream, program.dram, program.machine, device=d) for d in DEVICES]
    np.testing.assert_array_equal(got[0].dram, got[1].dram)
    assert got[0].counters == got[1].counters
    for field in ("stage", "dispatch", "start", "end"):
        a, b = (getattr(result.timeline, field) for result in got)
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("engine", ENGINES)
def test_either_half_runs_alone_with_the_same_result(engine: str) -> None:
    program = random_program(np.random.default_rng(4), DEFAULT, size=20)
    images = [program.dram.copy() for _ in range(3)]
    both, timing, function = (
        Simulator(DEFAULT, engine=engine, timing=t, function=f).launch(program.stream, image)
        for (t, f), image in zip([(1, 1), (1, 0), (0, 1)], images, strict=True)
    )
    assert both.counters == timing.counters
    assert (function.cycles, function.counters, len(function.timeline.end)) == (0, {}, 0)
    np.testing.assert_array_equal(images[0], images[2])
    np.testing.assert_array_equal(images[1], program.dram)
    assert (images[0] != images[1]).any()


@pytest.mark.parametrize("engine", ENGINES)
def test_memories_and_tokens_persist_from_launch_to_launch(engine: str) -> None:
    simulator = Simulator(DEFAULT, engine=engine)
    dram = np.arange(4096, dtype=np.uint16).astype(np.uint8)
    loading = stream_of(
        load(Buffer.ACC, sram_base=3, dram_base=1, x_size=1, push_next=True), finish()
    )
    storing = stream_of(
        store(sram_base=3, dram_base=0, x_size=1, pop_prev=True, push_prev=True),
        finish(pop_next=True),
    )
    with pytest.raises(DeadlockError, match=r"store: insn 0 .* waits for a token"):
        simulator.launch(storing, dram)
    simulator.launch(loading, dram)
    expected = dram.copy()
    expected[:16] = dram[64:128:4]
    simulator.launch(storing, dram)
    np.testing.assert_array_equal(dram, expected)
    np.testing.assert_array_equal(simulator.sram(Buffer.OUT)[3, 0], expected[:16].view(np.int8))
    with pytest.raises(DeadlockError):  # the token is gone
        simulator.launch(storing, dram)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_launch_that_fails_changes_nothing(engine: str) -> None:
    simulator = Simulator(DEFAULT, engine=engine)
    dram = np.zeros(4096, dtype=np.uint8)
    wrong = stream_of(
        noop(Stage.LOAD, push_next=True),
        store(sram_base=0, dram_base=4096, x_size=1),
        finish(pop_prev=True),
    )
    with pytest.raises(StreamError, match=r"insn 1 \(STORE OUT\): dram_base = 4096"):
        simulator.launch(wrong, dram)
    with pytest.raises(DeadlockError):  # the no-op left no token
        simulator.launch(stream_of(finish(pop_prev=True)), dram)


@pytest.mark.parametrize("function", [True, False])
def test_an_illegal_instruction_is_reported_before_a_deadlock(function: bool) -> None:
    stream = stream_of(load(Buffer.OUT, sram_base=0, dram_base=0, x_size=1), finish(pop_prev=True))
    with pytest.raises(StreamError, match=r"insn 0 \(LOAD\): buffer = 4") as caught:
        Simulator(DEFAULT, function=function).launch(stream, np.zeros(64, np.uint8))
    assert not isinstance(caught.value, DeadlockError)


def test_an_unknown_device_is_answered_with_the_known_ones() -> None:
    with pytest.raises(VtaError, match="unknown device 'simulater'; did you mean 'simulator'"):
        execute(stream_of(finish()), np.zeros(0, np.uint8), "default", device="simulater")


def test_the_address_of_the_stream_only_matters_to_fetch() -> None:
    program: Program = random_program(np.random.default_rng(8), DEFAULT, size=20)
    cycles = set()
    for address in (0, 16, 240):
        result = execute(program.stream, program.dram, DEFAULT, insn_address=address)
        cycles.add(result.cycles)
        np.testing.assert_array_equal(
            result.dram, execute(program.stream, program.dram, DEFAULT).dram
        )
    assert len(cycles) > 1


def test_bursts_are_recorded_when_asked_for() -> None:
    simulator = Simulator(DEFAULT, function=False, record_bursts=True)
    launch = simulator.launch(stream_of(finish()), np.zeros(0, np.uint8))
    assert launch.timeline.bursts is not None
    assert launch.timeline.bursts.beats.tolist() == [2]
    assert (
        Simulator(DEFAULT).launch(stream_of(finish()), np.zeros(0, np.uint8)).timeline.bursts
        is None
    )


def test_memories_need_function() -> None:
    with pytest.raises(VtaError, match="leave function on"):
        Simulator(DEFAULT, function=False).sram(Buffer.INP)
