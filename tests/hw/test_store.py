"""STOREs: what is written to DRAM, in which order, and when."""

import machines
import numpy as np
import pytest
from bench import bench
from rtl_machines import machine

from vta_hw.scratchpad import Geometry
from vta_hw.store import Store
from vta_isa.enums import Buffer
from vta_isa.insn import MEM, store
from vta_isa.microarch import STORE_ADDRESS, STORE_DATA, STORE_RESPONSE, WRITE_AHEAD, burst_bytes


def tile(rng, depth):
    """A random STORE that fits OUT."""
    while True:
        y_size, x_size = int(rng.integers(1, 5)), int(rng.integers(1, 12))
        if y_size * x_size <= depth:
            return {
                "sram_base": int(rng.integers(depth - y_size * x_size + 1)),
                "dram_base": int(rng.integers(300)),
                "x_size": x_size,
                "y_size": y_size,
                "x_stride": int(rng.integers(30)),
            }


def bursts_of(m, fields):
    """(address, beats) of every burst, row by row."""
    unit, bus, found = m.entry_bytes(Buffer.OUT), m.bus_bytes, []
    for row in range(fields["y_size"]):
        start = (fields["dram_base"] + row * fields["x_stride"]) * unit
        beats = range(start // bus, (start + fields["x_size"] * unit - 1) // bus + 1)
        for beat in beats:
            if beat == beats[0] or beat * bus % burst_bytes(m) == 0:
                found.append([beat * bus, 0])
            found[-1][1] += 1
    return [tuple(burst) for burst in found]


@pytest.mark.parametrize("slow", [False, True], ids=["ready", "slow"])
@pytest.mark.parametrize("name", ["tiny", "odd", "int16-acc", "bus512"])
def test_rows_go_to_dram(name, slow):
    m = machine(name) if name in ("tiny", "odd") else machines.machine(name)
    geometry, unit, bus = Geometry.of(m, Buffer.OUT), m.entry_bytes(Buffer.OUT), m.bus_bytes
    dut = Store(m)
    rng = np.random.default_rng(4)
    entries = rng.integers(0, 256, (geometry.rows * geometry.banks, unit), dtype=np.uint8)
    words = [int.from_bytes(entry.tobytes(), "little") for entry in entries]

    async def memory(ctx):
        """OUT: addressed in a cycle, there in the next, unless it is stopped."""
        async for *_, read, rows in ctx.tick().sample(dut.read, dut.rows):
            if read:
                ctx.set(
                    dut.out,
                    [words[row * geometry.banks + bank] for bank, row in enumerate(rows)],
                )

    async def testbench(ctx):
        dram = np.zeros(1 << 14, dtype=np.uint8)
        for _ in range(8):
            fields = tile(rng, m.depth(Buffer.OUT))
            expected = dram.copy()
            for row in range(fields["y_size"]):
                start = (fields["dram_base"] + row * fields["x_stride"]) * unit
                first = fields["sram_base"] + row * fields["x_size"]
                data = entries[first : first + fields["x_size"]].reshape(-1)
                expected[start : start + len(data)] = data
            planned = bursts_of(m, fields)

            ctx.set(dut.insns.payload, MEM.encode(**store(**fields)))
            ctx.set(dut.insns.valid, 1)
            assert ctx.get(dut.start)
            await ctx.tick()
            ctx.set(dut.insns.valid, 0)
            ctx.set(dut.insns.payload, 0)
            seen, open_bursts, responses = [], [], []
            addresses, beats, cycle = [], [], 1  # cycles in which they were taken
            while True:
                ctx.set(dut.axi.awready, not slow or rng.random() < 0.6)
                ctx.set(dut.axi.wready, not slow or rng.random() < 0.6)
                answer = bool(responses) and responses[0] <= cycle
                ctx.set(dut.axi.bvalid, answer)
                if answer:
                    responses.pop(0)
                    last_answer = cycle
                if ctx.get(dut.axi.wvalid) and ctx.get(dut.axi.wready):
                    address, left = open_bursts[0]
                    data = ctx.get(dut.axi.wdata).to_bytes(bus, "little")
                    for lane in range(bus):
                        if ctx.get(dut.axi.wstrb) >> lane & 1:
                            dram[address + lane] = data[lane]
                    assert ctx.get(dut.axi.wlast) == (left == 1), fields
                    open_bursts[0] = (address + bus, left - 1)
                    beats.append(cycle)
                    if left == 1:
                        open_bursts.pop(0)
                        responses.append(cycle + 3)
                if ctx.get(dut.axi.awvalid) and ctx.get(dut.axi.awready):
                    seen.append((ctx.get(dut.axi.awaddr), ctx.get(dut.axi.awlen) + 1))
                    open_bursts.append(seen[-1])
                    assert len(open_bursts) <= WRITE_AHEAD
                    addresses.append(cycle)
                if ctx.get(dut.end):
                    break
                await ctx.tick()
                cycle += 1
                assert cycle < 3000, fields
            await ctx.tick()
            assert seen == planned, fields
            np.testing.assert_array_equal(dram, expected, err_msg=str(fields))
            assert cycle == last_answer + STORE_RESPONSE, fields
            if not slow:
                count = sum(length for _, length in planned)
                assert addresses[0] == STORE_ADDRESS
                assert beats == list(range(STORE_DATA, STORE_DATA + count)), fields

    bench(dut, testbench, memory)


@pytest.mark.parametrize("size", [{"x_size": 0, "y_size": 2}, {"x_size": 2, "y_size": 0}])
def test_nothing_to_store_takes_two_cycles(size):
    dut = Store(machine("tiny"))

    async def testbench(ctx):
        fields = store(sram_base=1, dram_base=1, **size)
        ctx.set(dut.insns.payload, MEM.encode(**fields))
        ctx.set(dut.insns.valid, 1)
        assert ctx.get(dut.start)
        await ctx.tick()
        ctx.set(dut.insns.valid, 0)
        assert ctx.get(dut.end)
        for _ in range(20):
            assert not ctx.get(dut.axi.awvalid)
            assert not ctx.get(dut.axi.wvalid)
            await ctx.tick()

    bench(dut, testbench)


@pytest.mark.parametrize("response", [1, 2, 3])
def test_an_error_response_is_reported(response):
    dut = Store(machine("tiny"))

    async def testbench(ctx):
        ctx.set(dut.axi.bvalid, 1)
        ctx.set(dut.axi.bresp, response)
        assert ctx.get(dut.failed)
        ctx.set(dut.axi.bresp, 0)
        assert not ctx.get(dut.failed)

    bench(dut, testbench)
