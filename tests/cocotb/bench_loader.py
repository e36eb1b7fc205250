"""The loader against the reference's LOAD: any tile, any padding, data whenever it comes."""

from collections import deque
from random import Random

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge
from packed import unpack
from small_machines import machine_of
from support import drive, parameters, random_of, start

from simulator import reference
from simulator.reference import ReferenceState
from vta_hw.bursts import burst_layout
from vta_hw.scratchpad import Geometry
from vta_isa.encoding import encode_stream
from vta_isa.enums import Buffer
from vta_isa.insn import load, records
from vta_isa.tensors import unpack_entries

MACHINE = machine_of(parameters()["machine"])
MEMORIES = [Geometry.of(MACHINE, Buffer[name]) for name in parameters()["memories"]]
FORMATS = [(memory, form.buffer) for memory in MEMORIES for form in memory.formats]
BURST = burst_layout(MACHINE)
DRAM_BYTES = 1 << 14


class Written:
    """Monitor: what the write ports of a memory have put into it."""

    def __init__(self, dut, geometry: Geometry):
        self.wire = getattr(dut, f"write_{geometry.buffer.name.lower()}")
        self.geometry = geometry
        self.banks = [[0] * geometry.rows for _ in range(geometry.banks)]
        element = geometry.write_layout.elem_shape
        self.bits = element.size
        self.places = {name: (f.offset, (1 << f.width) - 1) for name, f in element}

    def step(self) -> int:
        """Take over what is written in this cycle; the number of banks that are."""
        word, count = int(self.wire.value), 0
        geometry = self.geometry
        part_bits = geometry.entry_bits // geometry.parts
        for bank, rows in enumerate(self.banks):
            one = word >> bank * self.bits
            row, en, data = (one >> low & mask for low, mask in self.places.values())
            count += en != 0
            for part in range(geometry.parts):
                if en >> part & 1:
                    mask = ((1 << part_bits) - 1) << part * part_bits
                    rows[row] = rows[row] & ~mask | data & mask
        return count

    def contents(self):
        geometry = self.geometry
        size = geometry.entry_bits // 8
        raw = b"".join(
            self.banks[i % geometry.banks][i // geometry.banks].to_bytes(size, "little")
            for i in range(geometry.depth)
        )
        if geometry.buffer == Buffer.UOP:
            return np.frombuffer(raw, dtype="<u4")
        return unpack_entries(np.frombuffer(raw, dtype=np.uint8), geometry.buffer, MACHINE)


class Supply:
    """Driver: grants requests and brings their data, with pauses."""

    def __init__(self, dut, dram: bytes, rng: Random, pause: float):
        self.dut, self.dram, self.rng, self.pause = dut, dram, rng, pause
        self.granted = []  # byte addresses of this cycle's burst: AR is on the bus in the next one
        self.beats = deque()  # byte addresses to come
        self.ready = 0

    def drive(self) -> None:
        self.ready = int(self.rng.random() >= self.pause)
        drive(self.dut, request__ready=self.ready, valid=0, data=self.rng.getrandbits(32))
        if self.beats and self.rng.random() >= self.pause:
            place, size = self.beats.popleft(), MACHINE.bus_bytes
            data = self.dram[place : place + size].ljust(size, b"\0")
            drive(self.dut, valid=1, data=int.from_bytes(data, "little"))

    def sample(self) -> None:
        self.beats += self.granted
        self.granted = []
        if self.ready and int(self.dut.request__valid.value):
            burst = unpack(BURST, int(self.dut.request__payload.value))
            for number in range(burst["len"] + 1):
                self.granted.append(burst["address"] + number * MACHINE.bus_bytes)


def tile(rng: Random, buffer: Buffer, depth: int) -> dict:
    """A LOAD that fits."""
    pads = [rng.choice([0, 0, 0, 1, 2, 15]) for _ in range(4)]
    x, y = rng.choice([0, 1, 2, 3, 7, depth]), rng.choice([0, 1, 1, 2, 4])
    while (pads[0] + y + pads[1]) * (pads[2] + x + pads[3]) > depth:
        pads, x, y = [p // 2 for p in pads], -(-x // 2), -(-y // 2)
    room = depth - (pads[0] + y + pads[1]) * (pads[2] + x + pads[3])
    stride = rng.choice([x, x + 1, 0, 1, rng.randrange(12)])
    entries = DRAM_BYTES // MACHINE.entry_bytes(buffer)
    last = entries - x - max(y - 1, 0) * stride
    return {
        "sram_base": rng.choice([0, room, rng.randint(0, room)]),
        "dram_base": rng.choice([0, last, rng.randint(0, last)]),
        "x_size": x,
        "y_size": y,
        "x_stride": stride,
        "y_pad": (pads[0], pads[1]),
        "x_pad": (pads[2], pads[3]),
    }


@cocotb.test()
@cocotb.parametrize(pause=[0.0, 0.6])
async def fills_memories_as_the_reference_does(dut, pause):
    rng = random_of(f"loader {pause}")
    dram = np.frombuffer(rng.randbytes(DRAM_BYTES), dtype=np.uint8)
    state = ReferenceState(MACHINE)
    bases = {f"base_{memory.buffer.name.lower()}": 0 for memory in MEMORIES}
    await start(dut, start=0, insn=0, request__ready=0, data=0, valid=0, **bases)
    supply = Supply(dut, dram.tobytes(), rng, pause)
    written = [Written(dut, memory) for memory in MEMORIES]
    for number in range(60):
        memory, buffer = FORMATS[number % len(FORMATS)]
        fields = tile(rng, buffer, memory.depth)
        table = records([load(buffer, **fields)])
        if fields["x_size"]:
            reference.load(table[0], dram, state)
        words = encode_stream(table, MACHINE)[0]
        drive(dut, start=1, insn=int(words[0]) | int(words[1]) << 64)
        where = f"load {number}, {buffer.name} {fields}"
        quiet = 0
        for cycle in range(4000):
            supply.drive()
            await RisingEdge(dut.clk)
            supply.sample()
            banks = sum(one.step() for one in written)
            assert not banks or int(dut.writing.value), f"{where}: a write that is not told"
            # One cycle after `running` falls, the last write is done.
            quiet = 0 if int(dut.running.value) or not cycle else quiet + 1
            drive(dut, start=0, insn=(1 << 128) - 1)  # it matters only with start
            if quiet == 2:
                break
            assert quiet < 2 or not banks, f"{where}: writes after its end"
        assert quiet == 2, f"{where}: does not end"
        assert not supply.beats, f"{where}: ends before its data is there"
        for one in written:
            got, want = one.contents(), state.sram(one.geometry.buffer)
            wrong = np.argwhere(got != want)[:1].tolist()
            assert not wrong, f"{where}: {one.geometry.buffer.name} {wrong} differs"
