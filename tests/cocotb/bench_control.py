"""What a host may do to the accelerator besides launching legal streams; and legal ones after it.

Whatever happens, the machine answers on its registers, becomes idle, keeps the rules of AXI, and
executes the next stream as if nothing had been: but for its memories, which a program fills itself.
"""

from random import Random

import cocotb
import numpy as np
from axi_lite import SLVERR
from axi_memory import Mood
from cocotb.triggers import ClockCycles, RisingEdge
from hosts import TopHost, check_counters
from programs import Program, random_program
from small_machines import machine_of
from support import parameters, random_of

from simulator.reference import ReferenceState, run
from simulator.timing import simulate
from vta_isa.encoding import encode_stream
from vta_isa.enums import AluOp, Buffer, Opcode, Stage
from vta_isa.faults import Fault
from vta_isa.insn import INSN_BYTES, alu, finish, gemm, load, noop, records, store
from vta_isa.registers import BASED

MACHINE = machine_of(parameters()["machine"])
PLACE = 1 << 16  # of streams


async def begun(dut, name: str, pause: float = 0.0) -> TopHost:
    host = TopHost(dut, MACHINE, random_of(name), pause)
    await host.begin()
    return host


def lay(host: TopHost, dram: np.ndarray, stream: np.ndarray) -> None:
    """Data at 0, the stream at PLACE; nothing that was under way is forgotten."""
    host.memory.image = bytearray(dram.tobytes().ljust(PLACE, b"\0") + stream.tobytes())


async def good_run(host: TopHost, seed: int = 1) -> None:
    """A program that reads no memory it has not filled, with the results of a fresh machine."""
    program = self_contained(seed)
    want = program.dram.copy()
    run(program.table, want, ReferenceState(MACHINE))
    lay(host, program.dram, program.stream)
    counters = await host.launch(PLACE, len(program.table))
    got = np.frombuffer(bytes(host.memory.image[: len(want)]), dtype=np.uint8)
    wrong = np.flatnonzero(got != want)[:4].tolist()
    assert not wrong, f"DRAM bytes {wrong} differ in the run afterwards"
    timing = simulate(program.table, MACHINE, insn_address=PLACE)
    check_counters(counters, timing.counters)
    assert host.monitor.quiet


def self_contained(seed: int) -> Program:
    """Fills every memory, then multiplies, combines and stores; tokens in both directions."""
    rng = np.random.default_rng(seed)
    dram = rng.integers(0, 256, 1 << 14, dtype=np.uint8)
    dram[:64] = 0  # micro-ops of zero indices
    insns = [load(Buffer.UOP, sram_base=0, dram_base=0, x_size=16)]
    insns += [
        load(buffer, sram_base=0, dram_base=seed + 20, x_size=min(MACHINE.depth(buffer), 64))
        for buffer in (Buffer.INP, Buffer.WGT, Buffer.ACC)
    ]
    insns[2]["push_next"] = 1  # the last of the load stage
    out = 8192 // MACHINE.entry_bytes(Buffer.OUT)
    insns += [
        gemm(uops=(0, 2), iters=(2, 9), dst=(3, 1), src=(1, 1), wgt=(0, 1), pop_prev=True),
        alu(AluOp.SHR, uops=(0, 1), iters=(1, 30), dst=(0, 1), imm=3, push_next=True),
        store(sram_base=0, dram_base=out + seed, x_size=33, pop_prev=True, push_prev=True),
        finish(pop_next=True),
    ]
    table = records(insns)
    return Program(encode_stream(table, MACHINE), dram, MACHINE, table)


async def stopped(host: TopHost, fault: Fault, insn: int | None) -> None:
    """The launch has ended with this fault; status, interrupt and registers say so."""
    await host.idle(2000)
    assert await host.field("status", "error") == 1
    assert await host.field("status", "done") == 0
    cause = Fault(await host.get("error_cause"))
    assert cause == fault, f"{cause.name} instead of {fault.name}"
    if insn is not None:
        assert await host.get("error_insn") == insn
    assert await host.get("interrupt_status") == 0b10
    assert not int(host.dut.interrupt.value), "the interrupt is not enabled"
    await host.flag("interrupt_enable", "error")
    await ClockCycles(host.clk, 3)
    assert int(host.dut.interrupt.value)
    await host.flag("interrupt_status", "error")
    await ClockCycles(host.clk, 3)
    assert not int(host.dut.interrupt.value)
    await host.set("interrupt_enable", 0)
    assert host.monitor.quiet, "idle before DRAM has answered everything"


def fields(opcode: int, **values: int) -> dict[str, int]:
    return {"opcode": opcode, **values}


UOPS_LOADED = load(Buffer.UOP, sram_base=0, dram_base=0, x_size=16)
LAST = {
    buffer: MACHINE.depth(buffer) - 1 for buffer in (Buffer.UOP, Buffer.ACC, Buffer.INP, Buffer.WGT)
}
MOVES = {"sram_base": 0, "dram_base": 0, "x_size": 1, "y_size": 1, "x_stride": 1}
FAULTY: dict[str, tuple[Fault, dict[str, int]]] = {
    "opcode 5": (Fault.UNDEFINED_OPCODE, fields(5)),
    "opcode 7": (Fault.UNDEFINED_OPCODE, fields(7)),
    "load of OUT": (Fault.UNDEFINED_BUFFER, fields(Opcode.LOAD, buffer=int(Buffer.OUT), **MOVES)),
    "load of buffer 7": (Fault.UNDEFINED_BUFFER, fields(Opcode.LOAD, buffer=7, **MOVES)),
    "store of INP": (Fault.UNDEFINED_BUFFER, fields(Opcode.STORE, buffer=int(Buffer.INP), **MOVES)),
    "store with a pad": (
        Fault.STORE_PADDING,
        fields(Opcode.STORE, buffer=int(Buffer.OUT), x_pad_after=1, **MOVES),
    ),
    "ALU operation 5": (
        Fault.UNDEFINED_ALU_OP,
        alu(AluOp.ADD, uops=(0, 1), imm=1) | {"alu_op": 5},
    ),
    "INP past its end": (
        Fault.SRAM_RANGE,
        load(Buffer.INP, sram_base=LAST[Buffer.INP], dram_base=0, x_size=2),
    ),
    "pad past the end": (
        Fault.SRAM_RANGE,
        load(Buffer.ACC, sram_base=LAST[Buffer.ACC], dram_base=0, x_size=1, x_pad=(1, 0)),
    ),
    "store past the end": (
        Fault.SRAM_RANGE,
        store(sram_base=LAST[Buffer.ACC], dram_base=0, x_size=1, y_size=2),
    ),
    "the widest load": (
        Fault.SRAM_RANGE,
        load(Buffer.WGT, sram_base=0, dram_base=0, x_size=0xFFFF, y_size=0xFFFF),
    ),
    "uops past the end": (
        Fault.SRAM_RANGE,
        gemm(uops=(0, MACHINE.depth(Buffer.UOP) + 1), reset=True),
    ),
    "dst past the end": (
        Fault.INDEX_RANGE,
        gemm(uops=(0, 1), iters=(2, 2), dst=(LAST[Buffer.ACC], 1), reset=True),
    ),
    "src past the end": (
        Fault.INDEX_RANGE,
        gemm(uops=(0, 1), iters=(1, 3), src=(0, LAST[Buffer.INP])),
    ),
    "wgt past the end": (
        Fault.INDEX_RANGE,
        gemm(uops=(0, 1), iters=(1, 3), wgt=(0, LAST[Buffer.WGT])),
    ),
    "second operand past the end": (
        Fault.INDEX_RANGE,
        alu(AluOp.ADD, uops=(0, 1), iters=(1, 3), src=(0, LAST[Buffer.ACC])),
    ),
}


@cocotb.test()
@cocotb.parametrize(what=list(FAULTY))
async def an_illegal_instruction_stops_the_launch(dut, what):
    fault, insn = FAULTY[what]
    host = await begun(dut, what)
    host.memory.mood = Mood.random(host.rng)
    ahead = [UOPS_LOADED, *(noop(Stage(1 + i % 3)) for i in range(host.rng.randrange(6)))]
    behind = [store(sram_base=0, dram_base=3000, x_size=8), finish()]
    table = records([*ahead, insn, *behind])
    dram = np.zeros(1 << 14, dtype=np.uint8)
    lay(host, dram, encode_stream(table, MACHINE))
    await host.order(PLACE, len(table))
    await stopped(host, fault, len(ahead))
    if insn["opcode"] == Opcode.STORE:
        touched = np.flatnonzero(np.frombuffer(bytes(host.memory.image[: 1 << 12]), np.uint8))
        assert not len(touched), "a STORE that is refused writes nothing"
    await good_run(host)


@cocotb.test()
@cocotb.parametrize(burst=[0, 1, 2, 5, 9])
async def a_failing_read_stops_the_launch(dut, burst):
    host = await begun(dut, f"read {burst}")
    host.memory.mood = Mood.random(host.rng)
    host.memory.read_fails = lambda number, address: number == burst
    program = self_contained(2)
    lay(host, program.dram, program.stream)
    await host.order(PLACE, len(program.table))
    await stopped(host, Fault.READ_RESPONSE, None)
    last = await host.get("error_insn")
    assert last == 0xFFFF_FFFF if burst == 0 else last < len(program.table) or last == 0xFFFF_FFFF
    host.memory.read_fails = lambda number, address: False
    await good_run(host)


@cocotb.test()
@cocotb.parametrize(burst=[0, 1, 2])
async def a_failing_write_stops_the_launch(dut, burst):
    host = await begun(dut, f"write {burst}")
    host.memory.mood = Mood.random(host.rng)
    host.memory.write_fails = lambda number, address: number == burst
    program = self_contained(3)
    lay(host, program.dram, program.stream)
    await host.order(PLACE, len(program.table))
    await stopped(host, Fault.WRITE_RESPONSE, None)
    host.memory.write_fails = lambda number, address: False
    await good_run(host)


@cocotb.test()
@cocotb.parametrize(seed=list(range(parameters()["resets"])))
async def a_soft_reset_at_any_time_makes_it_usable_again(dut, seed):
    rng = Random(seed)
    host = await begun(dut, f"reset {seed}", rng.choice([0.0, 0.4]))
    host.memory.mood = Mood.random(rng)
    program = random_program(np.random.default_rng([seed, 21]), MACHINE, size=20)
    lay(host, program.dram, program.stream)
    await host.order(PLACE, len(program.table))
    await ClockCycles(host.clk, rng.choice([1, 2, 3, rng.randrange(1, 60), rng.randrange(1, 1500)]))
    await host.flag("control", "soft_reset")
    await host.idle(2000)
    assert await host.field("status", "error") == 0, "the host's own wish is no error"
    assert host.monitor.quiet, "idle before DRAM has answered everything"
    await good_run(host, seed)


@cocotb.test()
async def soft_reset_frees_a_stream_that_waits_for_ever(dut):
    host = await begun(dut, "stuck")
    for stuck in (
        [noop(Stage.LOAD, pop_next=True), finish(pop_prev=True)],
        [noop(Stage.COMPUTE, pop_prev=True)] * (MACHINE.queues.command + 3) + [finish()],
        [noop(Stage.LOAD, push_next=True)] * (MACHINE.queues.token + 3) + [finish()],
    ):
        table = records(stuck)
        lay(host, np.zeros(64, dtype=np.uint8), encode_stream(table, MACHINE))
        await host.order(PLACE, len(table))
        await ClockCycles(host.clk, 600)
        await host.flag("control", "soft_reset")
        await host.idle(200)
        await good_run(host)


@cocotb.test()
async def done_is_kept_raises_the_interrupt_and_is_cleared(dut):
    host = await begun(dut, "done", 0.3)
    await host.flag("interrupt_enable", "done")
    program = self_contained(4)
    lay(host, program.dram, program.stream)
    for clear in ("interrupt_status", "status"):
        await host.order(PLACE, len(program.table))
        for _ in range(20_000):
            await RisingEdge(host.clk)
            if int(dut.interrupt.value):
                break
        else:
            raise AssertionError("no interrupt")
        assert host.monitor.quiet
        assert await host.get("status") == 0b010
        assert await host.get("interrupt_status") == 0b01
        await host.set("interrupt_status", 0)
        assert int(dut.interrupt.value)
        await host.flag("interrupt_status", "done")
        await ClockCycles(host.clk, 3)
        assert not int(dut.interrupt.value)
        assert await host.get("status") == 0b010, "the two are cleared apart"
        if clear == "status":
            await host.flag("status", "done")
            assert await host.get("status") == 0


@cocotb.test()
async def a_start_while_busy_changes_nothing(dut):
    host = await begun(dut, "start")
    host.memory.mood = Mood(read_latency=(30, 30))
    program = self_contained(5)
    want = program.dram.copy()
    run(program.table, want, ReferenceState(MACHINE))
    lay(host, program.dram, program.stream)
    await host.order(PLACE, len(program.table))
    for _ in range(3):
        assert await host.field("status", "busy")
        await host.flag("control", "start")
    await host.idle()
    assert await host.get("status") == 0b010
    got = np.frombuffer(bytes(host.memory.image[: len(want)]), dtype=np.uint8)
    np.testing.assert_array_equal(got, want)
    assert await host.get("compute_instructions") == 5


@cocotb.test()
async def a_stream_that_is_misplaced_is_refused(dut):
    host = await begun(dut, "misplaced")
    for offset in (1, 8, 15):
        await host.order(PLACE + offset, 3)
        await stopped(host, Fault.INSN_ADDRESS, None)
        assert host.monitor.bursts["ar"] == 0
    await good_run(host)


@cocotb.test()
async def a_stream_of_no_instructions_ends_at_once(dut):
    host = await begun(dut, "none")
    await host.order(PLACE, 0)
    await host.idle(20)
    assert await host.get("status") == 0b010
    await good_run(host)


@cocotb.test()
async def bases_move_every_access(dut):
    """The same program with its data elsewhere, each buffer by its own distance."""
    host = await begun(dut, "bases")
    program = self_contained(6)
    want = program.dram.copy()
    run(program.table, want, ReferenceState(MACHINE))
    page, room = 4096, len(program.dram)
    stream_at = (len(BASED) + 1) * room + page
    image = bytearray(stream_at) + program.stream.tobytes()
    places = {buffer: room * number for number, buffer in enumerate(BASED, start=1)}
    for buffer, place in places.items():
        await host.set(f"{buffer.name.lower()}_base", place)
        assert await host.get(f"{buffer.name.lower()}_base") == place
        image[place : place + room] = program.dram.tobytes()
    host.memory.image = image
    before = bytes(image)
    await host.launch(stream_at, len(program.table))
    out = places[Buffer.OUT]
    assert want.tobytes() != program.dram.tobytes()
    assert bytes(host.memory.image[out : out + room]) == want.tobytes()
    assert bytes(host.memory.image[:out]) == before[:out]
    assert bytes(host.memory.image[out + room :]) == before[out + room :]


@cocotb.test()
async def registers_answer_while_it_works(dut):
    """Counters, status and holes under back-pressure; none of it disturbs the launch."""
    host = await begun(dut, "answers", 0.4)
    host.memory.mood = Mood(read_latency=(60, 60), r=0.5)
    program = self_contained(7)
    want = program.dram.copy()
    run(program.table, want, ReferenceState(MACHINE))
    lay(host, program.dram, program.stream)
    await host.order(PLACE, len(program.table))
    before = 0
    while await host.field("status", "busy"):
        cycles = await host.get("cycles")
        assert cycles > before
        before = cycles
        assert await host.bus.read(0xFFC) == (0, SLVERR)
        assert await host.bus.write(0xFFC, 1) == SLVERR
        assert await host.bus.write(0, 1) == SLVERR, "a register that is read-only"
    got = np.frombuffer(bytes(host.memory.image[: len(want)]), dtype=np.uint8)
    np.testing.assert_array_equal(got, want)
    assert len(program.stream) * INSN_BYTES == await host.get("insn_bytes")
