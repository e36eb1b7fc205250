"""Fetch: every instruction once, in order, to its queue; chunks as the page says."""

import random

import pytest
from bench import bench
from rtl_machines import machine

from vta_hw.fetch import Fetch, Lane
from vta_isa.encoding import encode_stream
from vta_isa.enums import AluOp, Buffer, Stage
from vta_isa.insn import alu, finish, gemm, load, noop, records, store

CHUNK = 256
LANE = {Stage.LOAD: Lane.LOAD, Stage.COMPUTE: Lane.COMPUTE, Stage.STORE: Lane.STORE}


def kinds(m):
    """(instruction, where it belongs), every kind."""
    place = {"sram_base": 1, "dram_base": 2, "x_size": 3}
    buffers = [Buffer.UOP, Buffer.ACC, Buffer.ACC_8BIT]
    insns = [(load(buffer, **place), Stage.COMPUTE) for buffer in buffers]
    insns += [(load(buffer, **place), Stage.LOAD) for buffer in (Buffer.INP, Buffer.WGT)]
    insns += [(store(**place), Stage.STORE), (gemm(uops=(0, 1)), Stage.COMPUTE)]
    insns += [(alu(op, uops=(0, 1), imm=-1), Stage.COMPUTE) for op in AluOp]
    insns += [(noop(stage, push_next=True), stage) for stage in Stage]
    return insns


@pytest.mark.parametrize("count", [1, 2, 15, 16, 17, 33, 100])
@pytest.mark.parametrize("name", ["tiny", "default", "odd", "bus512"])
def test_instructions_arrive_in_order(name, count):
    m = machine(name)
    rng = random.Random(count)
    insns = [rng.choice(kinds(m)) for _ in range(count - 1)] + [(finish(), Stage.COMPUTE)]
    words = encode_stream(records(insn for insn, _ in insns), m)
    start = 16 * rng.randrange(40)
    memory = bytes(start) + words.astype("<u8").tobytes() + bytes(4096)
    dut = Fetch(m)

    async def testbench(ctx):
        for launch in range(2):  # nothing of the first is left in the second
            ctx.set(dut.start, 1)
            ctx.set(dut.insn_address, start)
            ctx.set(dut.insn_count, count)
            await ctx.tick()
            ctx.set(dut.start, 0)
            ctx.set(dut.insn_address, 0)
            assert ctx.get(dut.request.valid), "cycle 1"
            number, cycle = 0, 1
            requested = start - start % m.bus_bytes  # bytes below this were asked for
            answers = []
            while number < count:
                assert ctx.get(dut.busy)
                grant = rng.random() < 0.5
                ctx.set(dut.request.ready, grant)
                beat = bool(answers) and rng.random() < (0.9 if launch else 0.4)
                ctx.set(dut.valid, beat)
                if beat:
                    address = answers.pop(0)
                    raw = memory[address : address + m.bus_bytes]
                    ctx.set(dut.data, int.from_bytes(raw, "little"))
                taken = []
                for lane in Lane:
                    ctx.set(dut.insns[lane].ready, rng.random() < (0.5 if launch else 0.95))
                    if ctx.get(dut.insns[lane].valid) and ctx.get(dut.insns[lane].ready):
                        taken.append((lane, ctx.get(dut.insns[lane].payload)))
                if grant and ctx.get(dut.request.valid):
                    burst = ctx.get(dut.request.payload)
                    assert burst.address == requested
                    requested += (burst.len + 1) * m.bus_bytes
                    answers += range(burst.address, requested, m.bus_bytes)
                    # Two chunks are held at most.
                    assert requested <= (start + 16 * number) // CHUNK * CHUNK + 2 * CHUNK
                for lane, payload in taken:
                    assert lane == LANE[insns[number][1]], f"{number=}"
                    low, high = words[number].tolist()
                    assert payload == low | high << 64, f"{number=}"
                    number += 1
                await ctx.tick()
                cycle += 1
                assert cycle < 200 * count + 500
            assert not ctx.get(dut.busy)
            assert not any(ctx.get(dut.insns[lane].valid) for lane in Lane)
            end = start + 16 * count
            assert requested == end + -end % m.bus_bytes

    bench(dut, testbench)
