"""The board's top as the outside sees it: an oscillator, a button, and a serial line.

The host is the one that users run on a real board.
"""

import cocotb
import numpy as np
import pytest
from cocotb.clock import Clock
from cocotb.task import bridge
from cocotb.triggers import ClockCycles
from programs import random_program
from serial_line import SerialPort
from support import parameters

from simulator.reference import ReferenceState, run
from vta_hw.boards.host import Board, BoardError
from vta_isa.encoding import as_words, decode_stream, encode_stream, encode_uops
from vta_isa.enums import AluOp, Buffer
from vta_isa.errors import DeadlockError, StreamError
from vta_isa.insn import alu, finish, load, noop, records, store
from vta_isa.machine import load_machine
from vta_isa.tensors import pack_entries, unpack_entries

MACHINE = load_machine(parameters()["machine"])
MEMORY_BYTES = parameters()["memory_bytes"]
CLOCK_NS = parameters()["clock_ns"]
DIVIDER = parameters()["divider"]  # clock cycles per bit
STREAM = MEMORY_BYTES // 2  # where streams lie; data before


async def powered(dut) -> SerialPort:
    """The board after it was configured, and the port it hangs on."""
    dut.fire1.value = 0
    Clock(dut.clk_25mhz, CLOCK_NS, unit="ns").start()
    bit = CLOCK_NS * DIVIDER
    port = SerialPort(dut.ftdi_txd, dut.ftdi_rxd, bit, timeout_ns=200 * bit)
    await ClockCycles(dut.clk_25mhz, 64)
    assert int(dut.led.value) & 1, "the board is still in reset"
    return port


def launch(board: Board, program) -> None:
    """Run a list of instructions."""
    stream = as_words(encode_stream(records(program), MACHINE))
    board.write(STREAM, stream.view(np.uint8).reshape(-1))
    board.run(STREAM, len(stream))


def expected(program, image: np.ndarray) -> np.ndarray:
    stream = encode_stream(records(program), MACHINE)
    dram = image.copy()
    run(decode_stream(stream, MACHINE), dram, ReferenceState(MACHINE))
    return dram


def place(buffer: Buffer, address: int) -> int:
    """``dram_base`` of a byte address."""
    return address // MACHINE.entry_bytes(buffer)


@cocotb.test()
async def random_programs(dut):
    """Every kind of instruction; all data afterwards is as the reference computes it. Comes first,
    when the memories on the chip are still zero."""
    port = await powered(dut)

    def host():
        board = Board(port, MACHINE, memory_bytes=MEMORY_BYTES)
        state = ReferenceState(MACHINE)  # of zeros, as after configuration
        for seed in range(2):
            program = random_program(
                np.random.default_rng([seed, 11]), MACHINE, size=20, data_bytes=1024
            )
            assert len(program.dram) <= STREAM
            board.write(0, program.dram)
            board.write(STREAM, program.stream.view(np.uint8).reshape(-1))
            launched = board.run(STREAM, len(program.stream))
            assert launched.cycles == launched.counters["cycles"] > 0
            want = program.dram.copy()
            run(program.table, want, state)
            np.testing.assert_array_equal(board.read(0, len(want)), want, f"seed {seed}")

    await bridge(host)()


@cocotb.test()
async def vector_add(dut):
    """Two vectors of 32-bit numbers come in, their sum goes out as 8-bit numbers."""
    entries = 8
    rng = np.random.default_rng(5)
    shape = (entries, *MACHINE.entry_shape(Buffer.ACC))
    x, y = (rng.integers(-60, 60, shape) for _ in range(2))
    add = [
        load(Buffer.UOP, sram_base=0, dram_base=place(Buffer.UOP, 0), x_size=1),
        load(Buffer.ACC, sram_base=0, dram_base=place(Buffer.ACC, 0x100), x_size=2 * entries),
        alu(AluOp.ADD, uops=(0, 1), iters=(1, entries), dst=(0, 1), src=(0, 1), push_next=True),
        store(
            sram_base=0,
            dram_base=place(Buffer.OUT, 0x400),
            x_size=entries,
            pop_prev=True,
            push_prev=True,
        ),
        finish(pop_next=True),
    ]
    image = np.zeros(0x800, dtype=np.uint8)
    image[:4] = encode_uops(np.array([[0, entries, 0]]), MACHINE).view(np.uint8)
    operands = pack_entries(np.concatenate([x, y]), Buffer.ACC, MACHINE).reshape(-1)
    image[0x100 : 0x100 + len(operands)] = operands
    port = await powered(dut)

    def host():
        board = Board(port, MACHINE)
        assert board.memory_bytes == MEMORY_BYTES
        board.write(0, image)
        launch(board, add)
        after = board.read(0, len(image))
        size = entries * MACHINE.entry_bytes(Buffer.OUT)
        sums = unpack_entries(after[0x400 : 0x400 + size], Buffer.OUT, MACHINE)
        np.testing.assert_array_equal(sums, x + y)
        np.testing.assert_array_equal(after, expected(add, image))

    await bridge(host)()


@cocotb.test()
async def trouble_is_told_and_survived(dut):
    """Faults, a stream that waits for itself, addresses without memory, the button."""
    port = await powered(dut)
    nothing = [finish()]

    def host():
        board = Board(port, MACHINE, memory_bytes=MEMORY_BYTES)
        undefined = as_words(encode_stream(records([noop(2), finish()]), MACHINE)).copy()
        undefined[1, 0] |= 7  # opcode of the second one
        board.write(STREAM, undefined.view(np.uint8).reshape(-1))
        with pytest.raises(StreamError, match="insn 1: the opcode"):
            board.run(STREAM, 2)
        launch(board, nothing)

        gone = [load(Buffer.UOP, sram_base=0, dram_base=MEMORY_BYTES // 4, x_size=1), finish()]
        with pytest.raises(StreamError, match="answered a read with an error"):
            launch(board, gone)
        launch(board, nothing)

        board.patience = 0
        with pytest.raises(DeadlockError, match="has not ended within 0 s"):
            launch(board, [finish(pop_prev=True)])
        launch(board, nothing)

        with pytest.raises(BoardError, match="are not all in memory"):
            board.read(MEMORY_BYTES - 2, 4)
        board.memory_bytes *= 2  # what a host that knows better meets
        with pytest.raises(BoardError, match="not all there"):
            board.read(MEMORY_BYTES - 4, 8)
        other = MACHINE.replace(sram={"inp": 2 * MACHINE.sram.inp})
        with pytest.raises(BoardError, match="has the hash"):
            Board(port, other)

        board.write(0, np.zeros(16, dtype=np.uint8))
        board.write(5, np.arange(1, 8, dtype=np.uint8))  # words shared at both ends
        np.testing.assert_array_equal(board.read(3, 10), [0, 0, *range(1, 8), 0])

    board_before = bridge(host)
    await board_before()

    dut.fire1.value = 1
    await ClockCycles(dut.clk_25mhz, 100)
    assert not int(dut.led.value) & 1
    dut.fire1.value = 0
    await ClockCycles(dut.clk_25mhz, 100)

    def after():
        board = Board(port, MACHINE, memory_bytes=MEMORY_BYTES)
        np.testing.assert_array_equal(board.read(5, 7), range(1, 8))
        assert board.read_register("status") == 0
        launch(board, nothing)

    await bridge(after)()


@cocotb.test()
async def silence(dut):
    """A line that nobody answers on."""
    dut.fire1.value = 1  # held in reset
    Clock(dut.clk_25mhz, CLOCK_NS, unit="ns").start()
    bit = CLOCK_NS * DIVIDER
    port = SerialPort(dut.ftdi_txd, dut.ftdi_rxd, bit, timeout_ns=200 * bit)

    def host():
        with pytest.raises(BoardError, match="0 of 5 bytes came"):
            Board(port, MACHINE)

    await bridge(host)()
