"""The store stage against the reference's STORE, into a memory that takes beats as it likes."""

from random import Random

import cocotb
import numpy as np
from axi_memory import Memory, Mood
from axi_monitor import Monitor
from cocotb.triggers import ReadOnly, RisingEdge
from small_machines import machine_of
from support import drive, parameters, random_of, sample, start

from simulator import reference
from simulator.reference import ReferenceState
from vta_hw.scratchpad import Geometry
from vta_isa.encoding import encode_stream
from vta_isa.enums import Buffer
from vta_isa.insn import records, store
from vta_isa.microarch import burst_bytes
from vta_isa.tensors import pack_entries

MACHINE = machine_of(parameters()["machine"])
GEOMETRY = Geometry.of(MACHINE, Buffer.OUT)
DRAM_BYTES = 1 << 13
UNIT = MACHINE.entry_bytes(Buffer.OUT)


class OutMemory:
    """Answers ``rows`` one cycle later while ``read``, as the scratchpad does."""

    def __init__(self, dut, entries: bytes):
        self.dut, self.entries = dut, entries

    def step(self) -> None:
        """At the end of a cycle: data for the next one."""
        if not int(self.dut.read.value):
            return
        rows, data = int(self.dut.rows.value), 0
        for bank in range(GEOMETRY.banks):
            row = rows >> bank * GEOMETRY.row_bits & ((1 << GEOMETRY.row_bits) - 1)
            place = (row * GEOMETRY.banks + bank) * UNIT
            entry = self.entries[place : place + UNIT].ljust(UNIT, b"\xee")
            data |= int.from_bytes(entry, "little") << bank * GEOMETRY.entry_bits
        self.dut.out.value = data


def tile(rng: Random, depth: int) -> dict:
    x, y = rng.choice([0, 1, 2, 5, 17, depth]), rng.choice([0, 1, 1, 2, 4])
    while x * y > depth:
        x, y = -(-x // 2), -(-y // 2)
    stride = rng.choice([x, x + 1, 0, 1, rng.randrange(12)])
    last = DRAM_BYTES // UNIT - x - max(y - 1, 0) * stride
    return {
        "sram_base": rng.choice([0, depth - x * y, rng.randint(0, depth - x * y)]),
        "dram_base": rng.choice([0, last, rng.randint(0, last), rng.randint(0, last)]),
        "x_size": x,
        "y_size": y,
        "x_stride": stride,
    }


@cocotb.test()
@cocotb.parametrize(hurried=[True, False])
async def stores_as_the_reference_does(dut, hurried):
    rng = random_of(f"store {hurried}")
    state = ReferenceState(MACHINE)
    shape, dtype = state.acc.shape, state.acc.dtype
    state.acc[...] = np.frombuffer(rng.randbytes(state.acc.nbytes), dtype=dtype).reshape(shape)
    out = OutMemory(dut, pack_entries(state.out, Buffer.OUT, MACHINE).tobytes())
    image = rng.randbytes(DRAM_BYTES)
    memory = Memory(dut, "axi__", dut.clk, image, rng, Mood())
    monitor = Monitor(dut, "axi__", dut.clk, dut.rst, burst_bytes=burst_bytes(MACHINE), reads=0)
    names = (
        "insns__valid",
        "insns__payload",
        "from_compute__empty",
        "to_compute__full",
        "base",
        "out",
    )
    await start(dut, **dict.fromkeys(names, 0))
    cocotb.start_soon(memory.run())
    cocotb.start_soon(monitor.run())
    want = np.frombuffer(image, dtype=np.uint8).copy()
    pushed = 0
    for number in range(40):
        if not hurried:
            memory.mood = Mood.random(rng)
        fields = tile(rng, GEOMETRY.depth)
        table = records([store(**fields, push_prev=True, pop_prev=True)])
        if fields["x_size"]:
            reference.store(table[0], want, state)
        words = encode_stream(table, MACHINE)[0]
        drive(dut, insns__valid=1, insns__payload=int(words[0]) | int(words[1]) << 64)
        where = f"store {number}, {fields}"
        ended = False
        for _ in range(8000):
            empty, full = (0, 0) if hurried else (rng.random() < 0.5, rng.random() < 0.5)
            drive(dut, from_compute__empty=int(empty), to_compute__full=int(full))
            await RisingEdge(dut.clk)
            taken, pop, push, end = sample(
                dut, "insns__ready", "from_compute__pop", "to_compute__push", "end"
            )
            out.step()
            assert pop == int(taken), f"{where}: a token is popped with the start only"
            assert push == end, f"{where}: a token is pushed with the end only"
            assert not (pop and empty), f"{where}: popped from an empty queue"
            assert not (push and full), f"{where}: pushed to a full queue"
            if taken:
                drive(dut, insns__valid=0, insns__payload=(1 << 128) - 1)
            if end:
                pushed += 1
                ended = True
                assert memory.quiet, f"{where}: ends before DRAM has answered"
                break
        assert ended, f"{where}: does not end in 8000 cycles"
        got = np.frombuffer(bytes(memory.image), dtype=np.uint8)
        wrong = np.flatnonzero(got != want)[:4].tolist()
        assert not wrong, f"{where}: DRAM bytes {wrong} differ"
    await ReadOnly()
    assert pushed == 40
    assert monitor.quiet
