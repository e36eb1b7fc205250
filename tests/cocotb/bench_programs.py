"""Streams on the core, or on the whole accelerator, in a memory that answers as it likes.

Whatever the memory does, DRAM, every SRAM and every counter of events are those of the reference.
"""

from random import Random

import cocotb
import hand_written
import numpy as np
import vector_files
from axi_memory import Mood
from functional_coverage import Coverage
from hosts import CoreHost, TopHost, check_counters
from programs import Program, random_program
from rtl_checks import save
from small_machines import machine_of
from sram import BUFFERS, contents
from support import parameters, random_of

from simulator.reference import ReferenceState, run
from simulator.timing import simulate
from vta_isa.counters import CAUSE_COUNTERS
from vta_isa.encoding import encode_stream
from vta_isa.enums import Buffer
from vta_isa.insn import INSN_BYTES, finish, load, records

MACHINE = machine_of(parameters()["machine"])
HOST = TopHost if parameters()["host"] == "top" else CoreHost
SEEDS = range(*parameters().get("seeds", (0, 0)))
STREAMS = parameters().get("streams", list(hand_written.STREAMS))
VECTORS = parameters().get("vectors", [])
COVERAGE = Coverage()
LAUNCHES = parameters().get("launches", 4)


async def check(host, program, place: int) -> None:
    """Launch with the stream ``place`` instructions behind the data; compare everything."""
    machine = program.machine
    state = ReferenceState(machine)
    for buffer in (Buffer.UOP, Buffer.INP, Buffer.WGT, Buffer.ACC):  # what launches before left
        state.sram(buffer)[...] = contents(host.core, buffer, machine)
    want = program.dram.copy()
    run(program.table, want, state)

    address = -(-len(want) // INSN_BYTES) * INSN_BYTES + place * INSN_BYTES
    stream = program.stream.astype("<u8").tobytes()
    host.memory.forget()
    host.memory.image = bytearray(program.dram.tobytes().ljust(address, b"\0") + stream)
    counters = await host.launch(address, len(program.table))

    got = np.frombuffer(bytes(host.memory.image), dtype=np.uint8)
    wrong = [f"DRAM byte {i:#x}" for i in np.flatnonzero(got[: len(want)] != want)[:4]]
    if host.memory.image[address:] != stream:
        wrong.append("the stream itself")
    for buffer in BUFFERS:
        differs = contents(host.core, buffer, machine) != state.sram(buffer)
        wrong += [f"{buffer.name} {place.tolist()}" for place in np.argwhere(differs)[:1]]
    assert not wrong, f"{'; '.join(wrong)} differ; the program is {save(program)}"
    assert host.memory.quiet, "the launch ended before DRAM had answered"
    assert host.monitor.quiet, "the launch ended before DRAM had answered"
    assert not host.memory.outside, f"bursts outside DRAM: {host.memory.outside[:4]}"
    timing = simulate(program.table, machine, insn_address=address)
    check_counters(counters, timing.counters)
    if host.places is not None:
        for name, cycles in zip(CAUSE_COUNTERS, host.places.causes.sum(axis=0), strict=True):
            if not name.endswith("_idle"):  # nobody's before the first and behind the last
                assert cycles == counters[name], f"{name}: {cycles} of {counters[name]} are known"
        COVERAGE.observe(program.table, host.places)
        COVERAGE.save()


async def forget_uops(host) -> None:
    """Random programs take micro-ops that they have not loaded for zeros, as after power-on."""
    depth = MACHINE.depth(Buffer.UOP)
    table = records([load(Buffer.UOP, sram_base=0, dram_base=0, x_size=depth), finish()])
    zeros = np.zeros(4 * depth, dtype=np.uint8)
    await check(host, Program(encode_stream(table, MACHINE), zeros, MACHINE, table), 0)


async def begun(dut, rng: Random):
    host = HOST(dut, MACHINE, rng)
    await host.begin()
    return host


@cocotb.test(skip=not STREAMS)
@cocotb.parametrize(name=STREAMS or [""])
async def hand_written_stream(dut, name):
    rng = random_of(name)
    host = await begun(dut, rng)
    program = hand_written.written(name, MACHINE)
    await check(host, program, 0)
    host.memory.mood = Mood.random(rng)
    await check(host, program, rng.randrange(16))


@cocotb.test(skip=not VECTORS)
@cocotb.parametrize(name=VECTORS or [""])
async def conformance_vector(dut, name):
    """Once in a memory that is always ready, once in a moody one; DRAM is as published."""
    rng = random_of(name)
    host = await begun(dut, rng)
    vector = vector_files.vector(name)
    for mood in (Mood(), Mood.random(rng)):
        host.memory.mood = mood
        await check(host, vector.program, rng.randrange(16))
        got = np.frombuffer(bytes(host.memory.image[: len(vector.after)]), dtype=np.uint8)
        np.testing.assert_array_equal(got, vector.after)


@cocotb.test(skip=not SEEDS)
@cocotb.parametrize(seed=list(SEEDS) or [0])
async def random_program_in_a_moody_memory(dut, seed):
    rng = random_of(f"program {seed}")
    host = await begun(dut, rng)
    host.memory.mood = Mood.random(rng)
    await forget_uops(host)
    program = random_program(np.random.default_rng([seed, 11]), MACHINE, size=25)
    await check(host, program, rng.randrange(64))


@cocotb.test(skip=not LAUNCHES)
async def launches_follow_each_other_at_once(dut):
    """Tokens, SRAM and counters of one launch are where the next one begins."""
    rng = random_of("launches")
    host = await begun(dut, rng)
    for seed in range(LAUNCHES):
        host.memory.mood = Mood.random(rng)
        await forget_uops(host)
        program = random_program(np.random.default_rng([seed, 12]), MACHINE, size=8)
        await check(host, program, seed)
