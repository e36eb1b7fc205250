"""Machine, memory and bridge together, in Amaranth's simulator: a vector addition over the wire.

``test_board.py`` does more, in Verilog; this one needs no compiler.
"""

from collections import deque

import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.sim import Simulator

from simulator.reference import ReferenceState, run
from vta_hw.boards.host import Board
from vta_hw.boards.system import System
from vta_isa import load_machine
from vta_isa.encoding import encode_stream, encode_uops
from vta_isa.enums import AluOp, Buffer
from vta_isa.insn import alu, finish, load, records, store
from vta_isa.tensors import pack_entries

TINY = load_machine("tiny")
DIVIDER = 4
PERIOD = 1e-6
MEMORY_BYTES = 4096
STREAM, UOPS, OPERANDS, SUMS = 0x800, 0x10, 0x40, 0x100
ENTRIES = 2


class SimulatedPort:
    """A serial port whose reads let the simulation run until enough has come."""

    def __init__(self, system: System, patience: int):
        self.system, self.patience = system, patience
        self.waiting, self.received = deque(), deque()
        m = Module()
        m.submodules.system = system
        self.simulator = Simulator(m)
        self.simulator.add_clock(PERIOD)
        self.simulator.add_testbench(self._send, background=True)
        self.simulator.add_testbench(self._listen, background=True)
        self.cycles = 0

    def write(self, data: bytes) -> None:
        self.waiting.extend(data)

    def read(self, size: int) -> bytes:
        idle = 0
        while len(self.received) < size and idle < self.patience:
            before = len(self.received), len(self.waiting)
            self.cycles += 10 * DIVIDER
            self.simulator.run_until(self.cycles * PERIOD)
            idle = idle + 1 if before == (len(self.received), len(self.waiting)) else 0
        return bytes(self.received.popleft() for _ in range(min(size, len(self.received))))

    async def _send(self, ctx) -> None:
        ctx.set(self.system.rx, 1)
        while True:
            await ctx.tick()
            while self.waiting:
                frame = self.waiting.popleft() << 1 | 0x200
                for i in range(10):
                    ctx.set(self.system.rx, frame >> i & 1)
                    for _ in range(DIVIDER):
                        await ctx.tick()

    async def _listen(self, ctx) -> None:
        while True:
            await ctx.tick()
            if ctx.get(self.system.tx):
                continue
            bits = []
            for i in range(10):
                for _ in range(DIVIDER // 2 if i == 0 else DIVIDER):
                    await ctx.tick()
                bits.append(ctx.get(self.system.tx))
            assert (bits[0], bits[9]) == (0, 1), "start or stop bit is wrong"
            self.received.append(sum(bit << i for i, bit in enumerate(bits[1:9])))


@pytest.mark.slow
def test_a_vector_addition() -> None:
    rng = np.random.default_rng(5)
    operands = rng.integers(-60, 60, (2 * ENTRIES, *TINY.entry_shape(Buffer.ACC)))
    table = records(
        [
            load(Buffer.UOP, sram_base=0, dram_base=UOPS // 4, x_size=1),
            load(Buffer.ACC, sram_base=0, dram_base=OPERANDS // 16, x_size=2 * ENTRIES),
            alu(
                AluOp.ADD,
                uops=(0, 1),
                iters=(1, ENTRIES),
                dst=(0, 1),
                src=(0, 1),
                push_next=True,
            ),
            store(sram_base=0, dram_base=SUMS // 4, x_size=ENTRIES, pop_prev=True, push_prev=True),
            finish(pop_next=True),
        ]
    )
    image = np.zeros(SUMS + 4 * ENTRIES, dtype=np.uint8)
    image[UOPS : UOPS + 4] = encode_uops(np.array([[0, ENTRIES, 0]]), TINY).view(np.uint8)
    packed = pack_entries(operands, Buffer.ACC, TINY).reshape(-1)
    image[OPERANDS : OPERANDS + len(packed)] = packed
    want = image.copy()
    run(table, want, ReferenceState(TINY))

    system = System(TINY, MEMORY_BYTES, DIVIDER)
    board = Board(SimulatedPort(system, patience=20), TINY, memory_bytes=MEMORY_BYTES)
    board.write(UOPS, image[UOPS : OPERANDS + len(packed)])
    stream = encode_stream(table, TINY).view(np.uint8).reshape(-1)
    board.write(STREAM, stream)
    launch = board.run(STREAM, len(table))
    assert launch.cycles > 0
    sums = board.read(SUMS, 4 * ENTRIES)
    np.testing.assert_array_equal(sums, want[SUMS:])
    np.testing.assert_array_equal(
        sums.view(np.int8).reshape(ENTRIES, -1), (operands[:ENTRIES] + operands[ENTRIES:])[:, 0]
    )
