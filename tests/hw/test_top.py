"""The accelerator as a host sees it: registers, interrupt, errors, reset, and its memory."""

from random import Random
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.sim import Simulator
from axi_lite_host import OKAY, Driver, Monitor
from axi_memory import AxiMemory
from programs import random_program

from simulator.reference import ReferenceState
from simulator.reference import run as run_reference
from simulator.timing import simulate
from vta_hw.top import Accelerator
from vta_isa import load_machine
from vta_isa.counters import CAUSES, COUNTERS
from vta_isa.encoding import encode_stream
from vta_isa.enums import AluOp, Buffer, LowKind
from vta_isa.faults import Fault
from vta_isa.insn import alu, finish, gemm, load, noop, records, requantize, store
from vta_isa.machine import Machine
from vta_isa.registers import BASED, by_name, register_map

TINY = load_machine("tiny")
PLACES = by_name(register_map(TINY))
START, SOFT_RESET = 1, 2
BUSY, DONE, ERROR = 1, 2, 4


class Bench:
    """A machine, its memory of ``size`` bytes, and a host. Streams are put at ``stream_at``."""

    def __init__(
        self, size: int = 1 << 16, *, machine: Machine = TINY, seed: int = 0, pause: float = 0.0
    ):
        self.machine = machine
        self.rng = Random(seed)
        self.top = Accelerator(machine)
        self.data = bytearray(size)
        self.stream_at = size - 0x2000
        self.memory = AxiMemory(
            self.top.read, self.top.write, machine, self.data, rng=Random(seed + 1), pause=pause
        )
        self.host = Driver(self.top.control, Random(seed + 2), pause)

    def run(self, test) -> None:
        m = Module()
        m.submodules.top = self.top
        simulator = Simulator(m)
        simulator.add_clock(1e-8)
        self.host.add_to(simulator)
        Monitor(self.top.control).add_to(simulator)
        simulator.add_testbench(self.memory.serve, background=True)
        simulator.add_testbench(test)
        simulator.run()

    # ---- what a driver does ---------------------------------------------------------------------

    async def write(self, ctx, name: str, value: int) -> None:
        register = PLACES[name]
        for word, offset in enumerate(register.offsets):
            part = value >> (32 * word) & 0xFFFF_FFFF
            assert await self.host.written(ctx, offset, part) == OKAY, name

    async def read(self, ctx, name: str) -> int:
        value = 0
        for word, offset in enumerate(PLACES[name].offsets):
            part, response = await self.host.value(ctx, offset)
            assert response == OKAY, name
            value |= part << (32 * word)
        return value

    async def start(self, ctx, stream, at: int | None = None) -> None:
        at = self.stream_at if at is None else at
        raw = stream.astype("<u8").tobytes()
        self.data[at : at + len(raw)] = raw
        await self.write(ctx, "insn_address", at)
        await self.write(ctx, "insn_count", len(stream))
        await self.write(ctx, "control", START)

    async def wait(self, ctx, patience: int = 300) -> int:
        """Poll until the machine is idle; the status then."""
        for _ in range(patience):
            status = await self.read(ctx, "status")
            if not status & BUSY:
                return status
            await ctx.tick().repeat(50)
        raise AssertionError("the machine stays busy")

    async def counters(self, ctx) -> dict[str, int]:
        return {each.name: await self.read(ctx, each.name) for each in COUNTERS}

    async def still_works(self, ctx) -> None:
        """A launch that needs every stage and both directions of tokens gives what it must."""
        for base in BASED:
            await self.write(ctx, f"{base.name.lower()}_base", 0)
        self.data[0x400:0x500] = bytes(256)
        self.data[0x100:0x140] = self.rng.randbytes(64)
        await self.start(ctx, encode_stream(records(COPY), self.machine))
        status = await self.wait(ctx)
        assert status == DONE, f"{status:#b}, error {await self.read(ctx, 'error_cause')}"
        assert self.data[0x400:0x410] == self.data[0x100:0x140:4]


# Four accumulator entries through the machine: their lowest bytes come out.
COPY = [
    load(Buffer.INP, sram_base=0, dram_base=0x200 // 4, x_size=4, push_next=True),
    load(Buffer.ACC, sram_base=0, dram_base=0x100 // 16, x_size=4, pop_prev=True, push_next=True),
    store(sram_base=0, dram_base=0x400 // 4, x_size=4, pop_prev=True, push_prev=True),
    finish(pop_next=True),
]


@pytest.mark.parametrize("seed", range(2))
def test_a_launch_is_the_simulators_to_the_cycle(seed: int) -> None:
    """Twice: memories and tokens stay, counters begin again."""
    program = random_program(np.random.default_rng(seed), TINY, size=16, iterations=16)
    state = ReferenceState(TINY)
    bench = Bench(seed=seed)
    at = bench.stream_at + 16 * seed
    timing = simulate(program.table, TINY, insn_address=at)

    async def test(ctx):
        for _ in range(2):
            want = program.dram.copy()
            run_reference(program.table, want, state)
            bench.data[: len(program.dram)] = program.dram.tobytes()
            await bench.start(ctx, program.stream, at)
            assert await bench.wait(ctx) == DONE
            got = np.frombuffer(bytes(bench.data[: len(want)]), dtype=np.uint8)
            np.testing.assert_array_equal(got, want, err_msg=f"seed {seed}")
            assert await bench.counters(ctx) == timing.counters, f"seed {seed}"
            assert await bench.read(ctx, "error_cause") == Fault.NONE

    bench.run(test)


@pytest.mark.parametrize("seed", [0])
def test_any_memory_gives_the_same_results(seed: int) -> None:
    program = random_program(np.random.default_rng(seed + 10), TINY, size=16, iterations=16)
    want = program.dram.copy()
    run_reference(program.table, want, ReferenceState(TINY))
    bench = Bench(seed=seed, pause=0.4)

    async def test(ctx):
        bench.data[: len(program.dram)] = program.dram.tobytes()
        await bench.start(ctx, program.stream)
        assert await bench.wait(ctx) == DONE
        got = np.frombuffer(bytes(bench.data[: len(want)]), dtype=np.uint8)
        np.testing.assert_array_equal(got, want, err_msg=f"seed {seed}")
        counters = await bench.counters(ctx)
        for stage, causes in CAUSES.items():
            spent = sum(counters[f"{stage}_{cause}"] for cause in causes)
            assert spent == counters["cycles"], f"{stage}, seed {seed}"

    bench.run(test)


def test_bases_move_every_buffer() -> None:
    program = random_program(np.random.default_rng(3), TINY, size=16, iterations=16)
    want = program.dram.copy()
    run_reference(program.table, want, ReferenceState(TINY))
    bench = Bench(1 << 17)
    moved = 0x5000

    async def test(ctx):
        bench.data[moved : moved + len(program.dram)] = program.dram.tobytes()
        for buffer in BASED:
            await bench.write(ctx, f"{buffer.name.lower()}_base", moved + 0xABC)
            assert await bench.read(ctx, f"{buffer.name.lower()}_base") == moved
        await bench.start(ctx, program.stream)
        assert await bench.wait(ctx) == DONE
        got = np.frombuffer(bytes(bench.data[moved : moved + len(want)]), dtype=np.uint8)
        np.testing.assert_array_equal(got, want)
        assert not any(bench.data[:moved])
        await bench.still_works(ctx)

    bench.run(test)


def test_interrupt() -> None:
    bench = Bench()

    async def test(ctx):
        await bench.still_works(ctx)
        assert await bench.read(ctx, "interrupt_status") == 1
        assert ctx.get(bench.top.interrupt) == 0, "not enabled"
        await bench.write(ctx, "interrupt_enable", 1)
        await ctx.tick().repeat(2)
        assert ctx.get(bench.top.interrupt) == 1
        await bench.write(ctx, "interrupt_status", 2)
        assert ctx.get(bench.top.interrupt) == 1, "the other reason was cleared"
        await bench.write(ctx, "interrupt_status", 1)
        await ctx.tick().repeat(2)
        assert ctx.get(bench.top.interrupt) == 0
        await bench.start(ctx, encode_stream(records(COPY), TINY))
        await ctx.tick().until(bench.top.interrupt)
        assert await bench.read(ctx, "status") == DONE
        await bench.write(ctx, "interrupt_status", 3)
        await bench.start(ctx, encode_stream(records([{"opcode": 7}]), TINY))
        assert await bench.wait(ctx) == ERROR
        assert ctx.get(bench.top.interrupt) == 0, "errors are not enabled"
        assert await bench.read(ctx, "interrupt_status") == 2
        await bench.write(ctx, "interrupt_enable", 2)
        await ctx.tick().repeat(2)
        assert ctx.get(bench.top.interrupt) == 1

    bench.run(test)


def test_status_bits_are_cleared_by_the_host_and_by_a_start() -> None:
    bench = Bench()

    async def test(ctx):
        await bench.still_works(ctx)
        await bench.write(ctx, "status", BUSY | ERROR)
        assert await bench.read(ctx, "status") == DONE
        await bench.write(ctx, "status", DONE)
        assert await bench.read(ctx, "status") == 0
        await bench.still_works(ctx)
        await bench.start(ctx, encode_stream(records(COPY), TINY))
        assert await bench.read(ctx, "status") == BUSY
        await bench.write(ctx, "insn_count", 1)
        await bench.write(ctx, "control", START)  # ignored
        assert await bench.wait(ctx) == DONE
        assert await bench.read(ctx, "load_instructions") == 1
        assert await bench.read(ctx, "compute_instructions") == 2

    bench.run(test)


DEPTH = {buffer: TINY.depth(buffer) for buffer in Buffer}
ONE_UOP = {"uops": (0, 1), "iters": (1, 1), "dst": (0, 0), "src": (0, 0)}
FAULTS = {
    "opcode 5": ({"opcode": 5}, Fault.UNDEFINED_OPCODE),
    "opcode 7": ({"opcode": 7}, Fault.UNDEFINED_OPCODE),
    "load of OUT": (
        load(Buffer.OUT, sram_base=0, dram_base=0, x_size=1),
        Fault.UNDEFINED_BUFFER,
    ),
    "load of 7": (
        {**load(Buffer.INP, sram_base=0, dram_base=0, x_size=1), "buffer": 7},
        Fault.UNDEFINED_BUFFER,
    ),
    "store of INP": (
        {**store(sram_base=0, dram_base=0, x_size=1), "buffer": Buffer.INP},
        Fault.UNDEFINED_BUFFER,
    ),
    "padded store": (
        {**store(sram_base=0, dram_base=0, x_size=1), "x_pad_after": 1},
        Fault.STORE_PADDING,
    ),
    "alu_op 5": ({**alu(AluOp.MIN, imm=0, **ONE_UOP), "alu_op": 5}, Fault.UNDEFINED_ALU_OP),
    "uops": (
        gemm(uops=(0, DEPTH[Buffer.UOP] + 1), iters=(1, 1), dst=(0, 0), src=(0, 0), wgt=(0, 0)),
        Fault.SRAM_RANGE,
    ),
    **{
        f"{buffer.name} by one": (
            load(buffer, sram_base=1, dram_base=0, x_size=DEPTH[buffer]),
            Fault.SRAM_RANGE,
        )
        for buffer in (Buffer.UOP, Buffer.WGT, Buffer.INP, Buffer.ACC, Buffer.ACC_8BIT)
    },
    "OUT by far": (
        store(sram_base=0, dram_base=0, x_size=0xFFFF, y_size=0xFFFF),
        Fault.SRAM_RANGE,
    ),
    "padding": (
        load(
            Buffer.INP, sram_base=0, dram_base=0, x_size=8, y_size=8, y_pad=(15, 0), x_pad=(0, 15)
        ),
        Fault.SRAM_RANGE,
    ),
    "gemm dst": (
        gemm(**{**ONE_UOP, "iters": (2, 1), "dst": (DEPTH[Buffer.ACC] - 1, 0)}, wgt=(0, 0)),
        None,
    ),
    "gemm dst past": (
        gemm(**{**ONE_UOP, "iters": (3, 1), "dst": (DEPTH[Buffer.ACC] - 1, 0)}, wgt=(0, 0)),
        Fault.INDEX_RANGE,
    ),
    "gemm src past": (
        gemm(**{**ONE_UOP, "iters": (1, 3), "src": (0, DEPTH[Buffer.INP] // 2)}, wgt=(0, 0)),
        Fault.INDEX_RANGE,
    ),
    "gemm wgt past": (
        gemm(**{**ONE_UOP, "iters": (2, 2)}, wgt=(DEPTH[Buffer.WGT] - 1, 1)),
        Fault.INDEX_RANGE,
    ),
    "reset reads nothing": (
        gemm(**{**ONE_UOP, "iters": (2, 2)}, wgt=(DEPTH[Buffer.WGT] - 1, 1), reset=True),
        None,
    ),
    "alu src past": (
        alu(AluOp.ADD, **{**ONE_UOP, "iters": (3, 1), "src": (DEPTH[Buffer.ACC] - 1, 0)}),
        Fault.INDEX_RANGE,
    ),
    "immediate reads no src": (
        alu(AluOp.ADD, imm=1, **{**ONE_UOP, "iters": (3, 1), "src": (DEPTH[Buffer.ACC] - 1, 0)}),
        None,
    ),
    "nothing to store": ({**store(sram_base=0, dram_base=0, x_size=0), "buffer": 7}, None),
}


EXTENDED = TINY.replace(extensions={"alu_requantize": True})


def fused(iters: tuple[int, int], **more: Any) -> dict[str, int]:
    return requantize(uops=(0, 1), iters=iters, low=LowKind.ZERO, high=7, **more)


PAST_ACC = DEPTH[Buffer.ACC] // 2
FUSED_FAULTS = {
    "entry read at once": (fused((1, 2)), Fault.TOO_CLOSE),
    "entry read 5 later": (fused((2, 5), dst=(0, 1)), Fault.TOO_CLOSE),
    "entry read 6 later": (fused((2, 6), dst=(0, 1)), None),
    "bias read 5 later": (fused((2, 5), dst=(9, 1), bias=0), Fault.TOO_CLOSE),
    "bias read 6 later": (fused((2, 6), dst=(9, 1), bias=0), None),
    "bias past": (fused((3, 1), dst=(1, 0), bias=PAST_ACC), Fault.INDEX_RANGE),
    "no bias to be past": (
        {**fused((3, 1), dst=(7, 0)), "src_factor_out": PAST_ACC, "dst_factor_out": 20},
        None,
    ),
    "dst past": (fused((1, 3), dst=(0, PAST_ACC), bias=0), Fault.INDEX_RANGE),
    "low kind": ({**fused((1, 1)), "low_kind": 3}, Fault.UNDEFINED_ALU_OP),
    "operation 6": ({**alu(AluOp.ADD, **ONE_UOP, imm=1), "alu_op": 6}, Fault.UNDEFINED_ALU_OP),
}


@pytest.mark.parametrize(
    ("machine", "faults", "pause"), [(TINY, FAULTS, 0.3), (EXTENDED, FUSED_FAULTS, 0.0)]
)
def test_illegal_instructions_stop_the_run(machine, faults, pause: float) -> None:
    """One after the other on the same machine, each behind some that are legal."""
    bench = Bench(machine=machine, pause=pause)

    async def test(ctx):
        for place, (name, (bad, fault)) in enumerate(faults.items()):
            uop = load(Buffer.UOP, sram_base=0, dram_base=0, x_size=1)  # zeros
            before = [uop, *[noop(stage) for stage in (1, 2, 3)] * (place % 3)]
            stream = encode_stream(records([*before, bad, finish()]), machine)
            bench.data[:4] = bytes(4)
            await bench.start(ctx, stream)
            status = await bench.wait(ctx)
            cause = Fault(await bench.read(ctx, "error_cause"))
            if fault is None:
                assert (status, cause) == (DONE, Fault.NONE), name
                continue
            assert (status, cause) == (ERROR, fault), name
            assert await bench.read(ctx, "error_insn") == len(before), name
            assert bench.memory.quiet, name
            await bench.still_works(ctx)

    bench.run(test)


@pytest.mark.parametrize(
    ("broken", "fault", "insn"),
    [
        (range(0x100, 0x110), Fault.READ_RESPONSE, None),
        (range(0x40C, 0x40D), Fault.WRITE_RESPONSE, len(COPY) - 1),
        (range(0xE000, 0xE001), Fault.READ_RESPONSE, 0xFFFF_FFFF),
    ],
    ids=["read", "write", "instructions"],
)
def test_errors_of_the_memory_stop_the_run(broken, fault: Fault, insn: int | None) -> None:
    bench = Bench()

    async def test(ctx):
        bench.memory.broken = broken
        await bench.start(ctx, encode_stream(records(COPY), TINY))
        assert await bench.wait(ctx) == ERROR
        assert await bench.read(ctx, "error_cause") == fault
        if insn is not None:
            assert await bench.read(ctx, "error_insn") == insn
        bench.memory.broken = range(0)
        await bench.still_works(ctx)

    bench.run(test)


def test_streams_that_are_nothing() -> None:
    bench = Bench()

    async def test(ctx):
        await bench.start(ctx, encode_stream(records([]), TINY))
        assert await bench.wait(ctx) == DONE
        assert await bench.read(ctx, "cycles") == 1
        await bench.start(ctx, encode_stream(records(COPY), TINY), bench.stream_at + 8)
        assert await bench.wait(ctx) == ERROR
        assert await bench.read(ctx, "error_cause") == Fault.INSN_ADDRESS
        await bench.still_works(ctx)

    bench.run(test)


def test_a_deadlock_is_ended_by_a_soft_reset() -> None:
    bench = Bench()
    stuck = [noop(2, push_prev=True), noop(2, pop_next=True), finish()]

    async def test(ctx):
        await bench.start(ctx, encode_stream(records(stuck), TINY))
        await ctx.tick().repeat(500)
        assert await bench.read(ctx, "status") == BUSY
        await bench.write(ctx, "control", SOFT_RESET)
        assert await bench.wait(ctx) == 0, "neither done nor an error"
        assert await bench.read(ctx, "interrupt_status") == 0
        # The token that the first instruction pushed is gone: this would take it.
        await bench.start(ctx, encode_stream(records([noop(1, pop_next=True), finish()]), TINY))
        await ctx.tick().repeat(500)
        assert await bench.read(ctx, "status") == BUSY
        await bench.write(ctx, "control", SOFT_RESET | START)  # the reset counts
        assert await bench.wait(ctx) == 0
        await bench.write(ctx, "control", SOFT_RESET)  # of an idle machine
        assert await bench.wait(ctx) == 0
        await bench.still_works(ctx)

    bench.run(test)


@pytest.mark.parametrize(("seed", "pause"), [(0, 0.0), (1, 0.6)])
def test_a_soft_reset_at_any_time_keeps_axi_whole(seed: int, pause: float) -> None:
    program = random_program(np.random.default_rng(seed + 20), TINY, size=15, iterations=8)
    bench = Bench(seed=seed, pause=pause)

    async def test(ctx):
        for number in range(8):
            bench.data[: len(program.dram)] = program.dram.tobytes()
            await bench.start(ctx, program.stream)
            await ctx.tick().repeat(bench.rng.randrange(1, 900))
            await bench.write(ctx, "control", SOFT_RESET)
            status = await bench.wait(ctx)
            assert status in (0, DONE), f"seed {seed}, reset {number}"
            assert bench.memory.quiet
            if number % 4 == 3:
                await bench.still_works(ctx)

    bench.run(test)
