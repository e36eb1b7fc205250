"""The registers behind AXI4-Lite against a model of the table, under back-pressure."""

from random import Random

import pytest
from amaranth.hdl import Module
from amaranth.sim import Simulator
from axi_lite_host import OKAY, SLVERR, Driver, Model, Monitor

from vta_hw.csr import Csr, csr_signature
from vta_isa import load_machine
from vta_isa.registers import Access, Source, by_name, register_map

TINY = load_machine("tiny")
WIDE = TINY.replace(axi={"addr_bits": 40})
REGISTERS = register_map(TINY)
PLACES = {register.name: register.offset for register in REGISTERS}


class Bench:
    """A register file with a driver and a monitor, and a stand-in for the counters."""

    def __init__(self, machine=TINY, *, seed: int = 0, pause: float = 0.0):
        self.rng = Random(seed)
        self.registers = register_map(machine)
        self.csr = Csr(self.registers)
        self.driver = Driver(self.csr.bus, self.rng, pause)
        self.monitor = Monitor(self.csr.bus)
        counters = [r for r in self.registers if r.fields[0].source is Source.COUNTER]
        self.counters = [self.rng.getrandbits(64) for _ in counters]
        self.inputs = {
            register.signal(field): self.rng.getrandbits(field.width)
            for register in self.registers
            for field in register.fields
            if field.source is Source.SIGNAL
        } | {each.name: value for each, value in zip(counters, self.counters, strict=True)}
        self.model = Model(self.registers, self.inputs)

    def run(self, test, *watchers) -> None:
        # Simulated as a submodule: every output is then driven, as in the machine.
        m = Module()
        m.submodules.csr = self.csr
        simulator = Simulator(m)
        simulator.add_clock(1e-8)
        self.driver.add_to(simulator)
        self.monitor.add_to(simulator)
        for watcher in watchers:
            simulator.add_process(watcher)
        simulator.add_testbench(self._serve_counters, background=True)

        async def whole(ctx):
            for name, value in self.inputs.items():
                if hasattr(self.csr, name):
                    ctx.set(getattr(self.csr, name), value)
            await test(ctx)

        simulator.add_testbench(whole)
        simulator.run()

    async def _serve_counters(self, ctx):
        port = self.csr.counters
        while True:
            _, _, request, index = await ctx.tick().sample(port.request, port.index)
            ctx.set(port.valid, 0)
            if request and self.rng.random() < 0.3 and ctx.get(port.request):
                ctx.set(port.value, self.counters[index])
                ctx.set(port.valid, 1)


@pytest.mark.parametrize("machine", [TINY, WIDE], ids=["32 bits", "40 bits"])
def test_every_word_after_reset(machine) -> None:
    bench = Bench(machine)

    async def test(ctx):
        for register in bench.registers:
            for word, offset in enumerate(register.offsets):
                got = await bench.driver.value(ctx, offset)
                assert got == bench.model.read(offset), f"word {word} of {register.name}"

    bench.run(test)


@pytest.mark.parametrize("pause", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("seed", range(2))
def test_random_accesses(seed: int, pause: float) -> None:
    bench = Bench(WIDE, seed=seed, pause=pause)
    rng = Random(seed + 100)
    words = list(bench.model.words)

    def some_address() -> int:
        kind = rng.random()
        if kind < 0.7:
            return rng.choice([offset for offset in words if offset < 0x100])
        if kind < 0.8:
            return rng.choice(words)
        return rng.randrange(0x1000)  # holes and addresses inside words

    async def test(ctx):
        for number in range(120):
            address = some_address()
            where = f"seed {seed}, access {number} at {address:#x}"
            if rng.random() < 0.5:
                data = rng.getrandbits(32)
                strobes = 0xF if rng.random() < 0.8 else rng.randrange(16)
                expected = bench.model.write(address, data, strobes)
                assert await bench.driver.written(ctx, address, data, strobes) == expected, where
            else:
                assert await bench.driver.value(ctx, address) == bench.model.read(address), where

    bench.run(test)
    assert min(bench.monitor.transfers.values()) > 20


@pytest.mark.parametrize("pause", [0.0, 0.7])
def test_many_accesses_under_way(pause: float) -> None:
    """Answers come in order, one each, while the host is already sending the next ones."""
    bench = Bench(seed=5, pause=pause)
    values = [bench.rng.getrandbits(32) for _ in range(40)]

    async def test(ctx):
        for number, value in enumerate(values):
            bench.driver.write(PLACES["insn_count"] if number % 2 == 0 else 0xFF0, value)
            bench.driver.read(PLACES["magic"] if number % 3 else PLACES["cycles"])
        for number in range(len(values)):
            assert await bench.driver.answer(ctx, "b") == (SLVERR if number % 2 else OKAY,)
            expected = bench.model.read(PLACES["magic"] if number % 3 else PLACES["cycles"])
            assert await bench.driver.answer(ctx, "r") == expected
        assert (await bench.driver.value(ctx, PLACES["insn_count"])) == (values[-2], OKAY)

    bench.run(test)


@pytest.mark.parametrize("first", ["aw", "w"])
def test_address_and_data_of_a_write_come_in_any_order(first: str) -> None:
    bench = Bench()
    last = {"aw": "w", "w": "aw"}[first]
    halves = {"aw": (PLACES["insn_count"],), "w": (77, 0xF)}

    async def test(ctx):
        bench.driver.queues[first].append(halves[first])
        await ctx.tick().repeat(20)
        assert not bench.driver.answers["b"]
        assert ctx.get(bench.csr.insn_count) == 0
        bench.driver.queues[last].append(halves[last])
        assert await bench.driver.answer(ctx, "b") == (OKAY,)
        assert ctx.get(bench.csr.insn_count) == 77

    bench.run(test)


def test_a_self_clearing_bit_is_one_pulse_and_reads_zero() -> None:
    bench = Bench()
    pulses = {"start": 0, "reset": 0}

    async def count(ctx):
        signals = bench.csr.control_start, bench.csr.control_soft_reset
        async for _, _, start, reset in ctx.tick().sample(*signals):
            pulses["start"] += start
            pulses["reset"] += reset

    async def test(ctx):
        assert await bench.driver.written(ctx, PLACES["control"], 1) == OKAY
        await ctx.tick().repeat(5)
        assert pulses == {"start": 1, "reset": 0}
        assert await bench.driver.written(ctx, PLACES["control"], 0xFFFF_FFFE) == OKAY
        assert await bench.driver.value(ctx, PLACES["control"]) == (0, OKAY)
        assert await bench.driver.written(ctx, PLACES["control"], 3, 0b0011) == SLVERR
        assert await bench.driver.written(ctx, PLACES["control"], 0) == OKAY
        await ctx.tick().repeat(5)
        assert pulses == {"start": 1, "reset": 1}

    bench.run(test, count)


@pytest.mark.parametrize("register", ["status", "interrupt_status"])
def test_write_one_to_clear(register: str) -> None:
    bench = Bench()
    csr = bench.csr
    field = by_name(REGISTERS)[register].field("done")
    name = f"{register}_done"
    done, done_set, done_clear = (getattr(csr, f"{name}{end}") for end in ("", "_set", "_clear"))

    async def pulse(ctx, *signals):
        for signal in signals:
            ctx.set(signal, 1)
        await ctx.tick()
        for signal in signals:
            ctx.set(signal, 0)

    async def test(ctx):
        await pulse(ctx, done_set)
        assert ctx.get(done) == 1
        await bench.driver.written(ctx, PLACES[register], ~field.mask & 0xFFFF_FFFF)
        assert ctx.get(done) == 1, "zeros leave it"
        await bench.driver.written(ctx, PLACES[register], field.mask, 0b1110)
        assert ctx.get(done) == 1, "a refused write changes nothing"
        await bench.driver.written(ctx, PLACES[register], field.mask)
        assert ctx.get(done) == 0
        await pulse(ctx, done_set)
        await pulse(ctx, done_clear)
        assert ctx.get(done) == 0
        await pulse(ctx, done_set, done_clear)
        assert ctx.get(done) == 1, "an event is never lost"
        ctx.set(done_set, 1)
        await bench.driver.written(ctx, PLACES[register], field.mask)
        assert ctx.get(done) == 1, "an event is never lost, whoever clears"
        ctx.set(done_set, 0)

    bench.run(test)


def test_fields_hardware_sees_have_their_names() -> None:
    members = set(csr_signature(REGISTERS).members)
    for register in REGISTERS:
        for field in register.fields:
            seen = field.access is not Access.READ_ONLY or field.source is Source.SIGNAL
            assert (register.signal(field) in members) == seen, field
