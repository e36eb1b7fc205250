"""Scratchpads: where entries lie, and when they can be read."""

import random

import machines
import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator
from bench import bench
from rtl_machines import machine

from vta_hw.scratchpad import EntryRead, Geometry, Scratchpad, lanes_to_banks, write_entry
from vta_isa.enums import Buffer

BUFFERS = (Buffer.UOP, Buffer.INP, Buffer.WGT, Buffer.ACC, Buffer.OUT)


@pytest.mark.parametrize("name", machines.NAMES)
def test_every_memory_holds_its_buffer_and_takes_a_beat_per_cycle(name):
    m = machine(name)
    for buffer in BUFFERS:
        geometry = Geometry.of(m, buffer)
        assert geometry.rows * geometry.banks >= m.depth(buffer)
        assert geometry.entry_bits == m.entry_bits(buffer)
        assert geometry.entry_bits % geometry.parts == 0
        for form in geometry.formats:
            assert form.entries_per_beat <= geometry.banks
            assert geometry.parts % form.beats_per_entry == 0
            beat = m.entry_bytes(form.buffer) * form.entries_per_beat // form.beats_per_entry
            assert beat == m.bus_bytes


class Whole(wiring.Component):
    """A memory that is written and read one entry at a time."""

    def __init__(self, geometry):
        self.geometry = geometry
        super().__init__(
            {
                "index": In(geometry.index_bits),
                "value": In(geometry.entry_bits),
                "en": In(1),
                "wanted": In(geometry.index_bits),
                "entry": Out(geometry.entry_bits),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = memory = Scratchpad(self.geometry)
        m.submodules.read = read = EntryRead(self.geometry)
        m.d.comb += [
            *write_entry(self.geometry, memory.write, self.index, self.value, self.en),
            memory.reads[0].en.eq(1),
            memory.reads[0].rows.eq(read.rows),
            read.data.eq(memory.reads[0].data),
            read.index.eq(self.wanted),
            self.entry.eq(read.entry),
        ]
        return m


@pytest.mark.parametrize("buffer", BUFFERS)
@pytest.mark.parametrize("name", ["tiny", "odd", "bus512"])
def test_an_entry_is_there_two_cycles_after_its_index(name, buffer):
    geometry = Geometry.of(machine(name), buffer)
    dut = Whole(geometry)
    rng = random.Random(6)

    async def testbench(ctx):
        held = {}
        ctx.set(dut.en, 1)
        for index in rng.sample(range(geometry.depth), min(geometry.depth, 40)):
            held[index] = rng.getrandbits(geometry.entry_bits)
            ctx.set(dut.index, index)
            ctx.set(dut.value, held[index])
            await ctx.tick()
        ctx.set(dut.en, 0)
        wanted = [rng.choice(list(held)) for _ in range(40)]
        for cycle, index in enumerate(wanted):
            ctx.set(dut.wanted, index)
            if cycle >= 2:
                assert ctx.get(dut.entry) == held[wanted[cycle - 2]]
            await ctx.tick()

    bench(dut, testbench)


@pytest.mark.parametrize("name", ["tiny", "odd", "bus512", "smallest"])
def test_consecutive_entries_find_their_banks(name):
    geometry = Geometry.of(machine(name), Buffer.OUT)
    first = Signal(geometry.index_bits)
    for entries in {1, geometry.banks}:
        places = list(lanes_to_banks(geometry, first, entries))
        outputs = [Signal(16, name=f"output{i}") for i in range(3 * len(places))]
        m = Module()
        m.d.comb += [
            signal.eq(value)
            for signal, value in zip(outputs, (v for p in places for v in p), strict=True)
        ]

        async def testbench(ctx, entries=entries, outputs=outputs):
            for start in range(min(geometry.depth - entries + 1, 64)):
                ctx.set(first, start)
                found = {}
                for bank in range(geometry.banks):
                    lane, inside, row = (ctx.get(s) for s in outputs[3 * bank : 3 * bank + 3])
                    if inside:
                        found[lane] = row * geometry.banks + bank
                assert found == {lane: start + lane for lane in range(entries)}

        simulator = Simulator(m)
        simulator.add_testbench(testbench)
        simulator.run()
