"""LOADs of every format: what is written, and when the loader is done."""

import machines
import numpy as np
import pytest
from bench import bench
from rtl_machines import machine

from vta_hw.loader import Loader
from vta_hw.scratchpad import Geometry
from vta_isa.enums import Buffer
from vta_isa.insn import MEM, load
from vta_isa.microarch import LOAD_WRITE, PAD_FIRST

LOADERS = {
    "load": ((Buffer.INP, Buffer.WGT), (Buffer.INP, Buffer.WGT)),
    "compute": ((Buffer.UOP, Buffer.ACC), (Buffer.UOP, Buffer.ACC, Buffer.ACC_8BIT)),
}


class Written:
    """The memories as the write ports leave them, entry by entry."""

    def __init__(self, geometries):
        self.geometries = geometries
        self.entries = {g.buffer: [0xAA] * g.depth for g in geometries}
        self.entries = {
            g.buffer: [(1 << g.entry_bits) - 1] * (g.rows * g.banks) for g in geometries
        }

    def note(self, ctx, dut):
        """Apply the writes of this cycle; whether there were any."""
        any_write = False
        for g in self.geometries:
            part_bits = g.entry_bits // g.parts
            mask = (1 << part_bits) - 1
            for bank, write in enumerate(ctx.get(getattr(dut, f"write_{g.buffer.name.lower()}"))):
                place = write.row * g.banks + bank
                for part in range(g.parts):
                    if write.en >> part & 1:
                        any_write = True
                        shift = part * part_bits
                        old = self.entries[g.buffer][place]
                        self.entries[g.buffer][place] = (
                            old & ~(mask << shift) | write.data & mask << shift
                        )
        return any_write


def widened(m, buffer, raw):
    """A DRAM entry as the memory holds it."""
    if buffer != Buffer.ACC_8BIT:
        return int.from_bytes(raw.tobytes(), "little")
    wide = raw.view(np.int8).astype(m.dtype(Buffer.ACC)).astype(f"<i{m.bits(Buffer.ACC) // 8}")
    return int.from_bytes(wide.tobytes(), "little")


def tile(rng, m, buffer):
    """A random LOAD that fits its buffer."""
    depth = m.depth(buffer)
    while True:
        y_size, x_size = int(rng.integers(0, 4)), int(rng.integers(1, 9))
        y_pad, x_pad = ((int(rng.integers(3)), int(rng.integers(3))) for _ in range(2))
        if rng.random() < 0.5:
            y_pad = x_pad = (0, 0)
        entries = (y_size + sum(y_pad)) * (x_size + sum(x_pad))
        if entries <= depth:
            return {
                "sram_base": int(rng.integers(depth - entries + 1)),
                "dram_base": int(rng.integers(200)),
                "x_size": x_size,
                "y_size": y_size,
                "x_stride": int(rng.integers(20)),
                "y_pad": y_pad,
                "x_pad": x_pad,
            }


@pytest.mark.parametrize("stage", LOADERS)
@pytest.mark.parametrize("name", ["tiny", "odd", "int16-acc", "bus512"])
def test_tiles_arrive_with_their_padding(name, stage):
    m = machine(name) if name in ("tiny", "odd") else machines.machine(name)
    memories, buffers = LOADERS[stage]
    geometries = tuple(Geometry.of(m, memory) for memory in memories)
    dut = Loader(m, geometries)
    rng = np.random.default_rng(2)
    dram = rng.integers(0, 256, 1 << 16, dtype=np.uint8)

    async def testbench(ctx):
        written = Written(geometries)
        for _ in range(6 * len(buffers)):
            buffer = buffers[rng.integers(len(buffers))]
            fields = tile(rng, m, buffer)
            memory = Buffer.ACC if buffer == Buffer.ACC_8BIT else buffer
            unit = m.entry_bytes(buffer)
            expected = list(written.entries[memory])
            columns = fields["x_size"] + sum(fields["x_pad"])
            pads = beats = 0
            for row in range(fields["y_size"] + sum(fields["y_pad"])):
                for column in range(columns):
                    y, x = row - fields["y_pad"][0], column - fields["x_pad"][0]
                    entry = fields["dram_base"] + y * fields["x_stride"] + x
                    inside = 0 <= y < fields["y_size"] and 0 <= x < fields["x_size"]
                    pads += not inside
                    expected[fields["sram_base"] + row * columns + column] = (
                        widened(m, buffer, dram[entry * unit : (entry + 1) * unit]) if inside else 0
                    )

            ctx.set(dut.insn, MEM.encode(**load(buffer, **fields)))
            ctx.set(dut.start, 1)
            await ctx.tick()
            ctx.set(dut.start, 0)
            ctx.set(dut.insn, 0)
            # Cycle s + 1. Bursts are taken at once; their beats come later, with gaps.
            ctx.set(dut.request.ready, 1)
            waiting, cycle, last_beat, last_write = [], 1, 0, 0
            while ctx.get(dut.running) or cycle == 1:
                if ctx.get(dut.request.valid):
                    burst = ctx.get(dut.request.payload)
                    waiting += [burst.address + i * m.bus_bytes for i in range(burst.len + 1)]
                beat = bool(waiting) and cycle > 3 and rng.random() < 0.7
                ctx.set(dut.valid, beat)
                if beat:
                    address = waiting.pop(0)
                    raw = dram[address : address + m.bus_bytes].tobytes()
                    ctx.set(dut.data, int.from_bytes(raw, "little"))
                    beats += 1
                    last_beat = cycle
                if written.note(ctx, dut):
                    assert ctx.get(dut.writing)
                    last_write = cycle
                await ctx.tick()
                cycle += 1
                assert cycle < 2000, fields
            ctx.set(dut.valid, 0)
            if written.note(ctx, dut):
                last_write = cycle
            assert written.entries[memory] == expected, (buffer, fields)
            assert not waiting
            if pads or beats:
                # `data` holds a beat one cycle after it was on the bus.
                done = last_beat - 1 + LOAD_WRITE if beats else 0
                if pads:
                    done = max(done, PAD_FIRST + pads + beats - 1)
                assert cycle == last_write == done, fields
            await ctx.tick()
            assert not written.note(ctx, dut)

    bench(dut, testbench)
