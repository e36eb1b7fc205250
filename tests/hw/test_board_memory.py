"""Block RAM behind AXI4 and a host's port, against a dictionary of bytes."""

from random import Random

import pytest
from amaranth.hdl import Module
from amaranth.sim import Simulator
from axi_memory_host import Burst, Master

from vta_hw.boards.bram_memory import BramMemory
from vta_isa import load_machine

OKAY, SLVERR = 0, 2
SIZE = 8192
TINY = load_machine("tiny")


class Bench:
    """A memory, an AXI master, the host's port, and what every byte should be."""

    def __init__(self, data_bits: int, *, seed: int = 0, pause: float = 0.0):
        self.rng = Random(seed)
        machine = TINY.replace(axi={"data_bits": data_bits})
        self.bus_bytes = data_bits // 8
        self.memory = BramMemory(machine, SIZE)
        self.master = Master(self.memory.read, self.memory.write, self.bus_bytes, self.rng, pause)
        self.model = dict.fromkeys(range(SIZE), 0)

    def run(self, test) -> None:
        m = Module()  # as a submodule: every output is then driven, as in the machine
        m.submodules.memory = self.memory
        simulator = Simulator(m)
        simulator.add_clock(1e-8)
        self.master.add_to(simulator)
        simulator.add_testbench(test)
        simulator.run()

    def random_write(self, start: int, beats: int) -> Burst:
        data = [
            (self.rng.getrandbits(8 * self.bus_bytes), self.rng.getrandbits(self.bus_bytes))
            for _ in range(beats)
        ]
        return Burst(start, beats, tuple(data))

    def written(self, burst: Burst) -> None:
        """Changes the model as the burst changes memory."""
        assert burst.beats is not None
        for number, (data, strobes) in enumerate(burst.beats):
            place = burst.address // self.bus_bytes * self.bus_bytes + number * self.bus_bytes
            for i in range(self.bus_bytes):
                if strobes >> i & 1:
                    self.model[place + i] = data >> 8 * i & 0xFF

    def expected(self, address: int, beats: int) -> list[tuple[int, int]]:
        first = address // self.bus_bytes * self.bus_bytes
        return [(self.word(first + i * self.bus_bytes, self.bus_bytes), OKAY) for i in range(beats)]

    def word(self, address: int, size: int = 4) -> int:
        return int.from_bytes(bytes(self.model[address + i] for i in range(size)), "little")

    async def host(self, ctx, address: int, data: int | None = None) -> tuple[int, int]:
        """One access of the host; its value, and whether it failed."""
        port = self.memory.host
        ctx.set(port.address, address)
        ctx.set(port.write, data is not None)
        ctx.set(port.data, data or 0)
        ctx.set(port.request, 1)
        value, failed = await ctx.tick().sample(port.value, port.failed).until(port.done)
        ctx.set(port.request, 0)
        return value, failed

    def random_place(self) -> tuple[int, int]:
        """Address and beats of a burst that does not cross a page."""
        beats = self.rng.choice((1, 1, 2, 3, 16, 64))
        span = beats * self.bus_bytes
        page = self.rng.randrange(SIZE // 4096) * 4096
        return page + self.rng.randrange(
            (4096 - span) // self.bus_bytes + 1
        ) * self.bus_bytes, beats


@pytest.mark.parametrize("pause", [0.0, 0.5])
@pytest.mark.parametrize("data_bits", [32, 64, 256])
def test_bursts_strobes_and_the_host_under_back_pressure(data_bits, pause) -> None:
    seed = 17
    bench = Bench(data_bits, seed=seed, pause=pause)

    async def test(ctx):
        reads = writes = 0
        for turn in range(40):
            place, beats = bench.random_place()
            burst = bench.random_write(place, beats)
            bench.master.send(burst)
            writes += 1
            # Beside the burst, the host reads and writes elsewhere.
            elsewhere = (place + 4096) % SIZE & ~0xFFF
            for _ in range(bench.rng.randrange(4)):
                word = elsewhere + 4 * bench.rng.randrange(1024)
                data = bench.rng.getrandbits(32)
                assert (await bench.host(ctx, word, data))[1] == 0
                for i in range(4):
                    bench.model[word + i] = data >> 8 * i & 0xFF
                assert await bench.host(ctx, word) == (data, 0), f"seed {seed}, turn {turn}"
            await bench.master.finish(ctx, reads, writes)
            bench.written(burst)

            # What was written, and something else, while the host reads.
            places = [(place, beats), bench.random_place(), bench.random_place()]
            for address, length in places:
                bench.master.send(Burst(address, length))
                reads += 1
            for _ in range(bench.rng.randrange(4)):
                word = 4 * bench.rng.randrange(SIZE // 4)
                assert await bench.host(ctx, word) == (bench.word(word), 0), f"seed {seed}"
            await bench.master.finish(ctx, reads, writes)
            for answer, (address, length) in zip(
                bench.master.read_answers[-3:], places, strict=True
            ):
                assert answer == bench.expected(address, length), f"seed {seed}, turn {turn}"
        assert set(bench.master.write_answers) == {OKAY}

    bench.run(test)


def test_a_beat_per_cycle() -> None:
    bench = Bench(32)
    beats = 256

    async def test(ctx):
        bench.master.send(bench.random_write(0, beats))
        bench.master.send(Burst(4096, beats))
        cycles = 0
        while not (bench.master.read_answers and bench.master.write_answers):
            await ctx.tick()
            cycles += 1
        assert cycles <= beats + 8

    bench.run(test)


@pytest.mark.parametrize(
    "wrong",
    [
        {"address": SIZE},
        {"address": 2**32 - 4096},
        {"size": 1},
        {"kind": 0},
        {"kind": 2},
    ],
    ids=str,
)
def test_bursts_that_cannot_be_executed_change_nothing(wrong) -> None:
    bench = Bench(32)

    async def test(ctx):
        for word in range(8):
            await bench.host(ctx, 4 * word, word + 1)
        bench.master.send(Burst(**{"address": 0, "length": 4, "beats": ((99, 15),) * 4, **wrong}))
        bench.master.send(Burst(**{"address": 0, "length": 4, **wrong}))
        await bench.master.finish(ctx, 1, 1)
        assert bench.master.write_answers == [SLVERR]
        assert [response for _, response in bench.master.read_answers[0]] == [SLVERR] * 4
        for word in range(8):
            assert await bench.host(ctx, 4 * word) == (word + 1, 0)
        # The next ones are executed.
        bench.master.send(Burst(0, 1, ((7, 15),)))
        await bench.master.finish(ctx, 1, 2)
        bench.master.send(Burst(0, 2))
        await bench.master.finish(ctx, 2, 2)
        assert bench.master.read_answers[1] == [(7, OKAY), (2, OKAY)]

    bench.run(test)


def test_the_host_is_told_where_memory_ends() -> None:
    bench = Bench(64)

    async def test(ctx):
        assert (await bench.host(ctx, SIZE - 4, 0x12345678))[1] == 0
        assert await bench.host(ctx, SIZE - 4) == (0x12345678, 0)
        for address in (SIZE, 2**32 - 4):
            assert (await bench.host(ctx, address, 5))[1] == 1
            assert (await bench.host(ctx, address))[1] == 1
        assert await bench.host(ctx, SIZE - 4) == (0x12345678, 0)
        assert await bench.host(ctx, SIZE - 8) == (0, 0)

    bench.run(test)
