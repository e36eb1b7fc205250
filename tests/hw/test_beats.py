"""The beats of a tile: lanes that are data, and where they belong."""

import random

import pytest
from bench import bench

from vta_hw.beats import BeatWalker


@pytest.mark.parametrize("lanes", [1, 2, 16])
def test_every_datum_is_in_one_lane(lanes):
    rng = random.Random(lanes)
    bits = 9
    dut = BeatWalker(bits, 4, 16)

    async def testbench(ctx):
        for _ in range(40):
            rows, size = rng.randrange(5), rng.randint(1, 40)
            first, pitch, base, stride = (rng.randrange(100) for _ in range(4))
            fields = {
                "rows": rows,
                "first": first,
                "pitch": pitch,
                "row_places": size,
                "skip": base % lanes,
                "skip_step": stride % 16,
                "lanes": lanes,
                "start": 1,
            }
            for name, value in fields.items():
                ctx.set(getattr(dut, name), value)
            await ctx.tick()
            for name in fields:
                if name != "lanes":
                    ctx.set(getattr(dut, name), 0)
            for row in range(rows):
                start = base + row * stride
                for beat in range(start // lanes, (start + size - 1) // lanes + 1):
                    while rng.random() < 0.2:  # stays until the step
                        ctx.set(dut.step, 0)
                        await ctx.tick()
                    ctx.set(dut.step, 1)
                    assert ctx.get(dut.valid)
                    places = [beat * lanes + lane - start for lane in range(lanes)]
                    used = [0 <= place < size for place in places]
                    where = (first + row * pitch + places[0]) % (1 << bits)
                    assert ctx.get(dut.place) == where, fields
                    seen = ctx.get(dut.used) & ((1 << lanes) - 1)
                    assert seen == sum(bit << lane for lane, bit in enumerate(used)), fields
                    last = (beat + 1) * lanes >= start + size
                    assert ctx.get(dut.last_of_row) == last, fields
                    assert ctx.get(dut.last) == (last and row == rows - 1), fields
                    await ctx.tick()
            assert not ctx.get(dut.valid)

    bench(dut, testbench)
