"""The register file behind AXI4-Lite against the table it is made from, under back-pressure."""

import cocotb
from axi_lite import OKAY, SLVERR, Host
from axi_lite_host import Model
from axi_lite_monitor import LiteMonitor
from cocotb.triggers import RisingEdge
from small_machines import machine_of
from support import drive, parameters, random_of, start

from vta_isa.registers import Access, Source, by_name, register_map

MACHINE = machine_of(parameters()["machine"])
REGISTERS = register_map(MACHINE)
NAMES = by_name(REGISTERS)
COUNTERS = [r for r in REGISTERS if r.fields[0].source is Source.COUNTER]


async def begun(dut, rng, pause: float):
    """A host, and the model with the values that hardware shows."""
    inputs = {
        register.signal(field): rng.getrandbits(field.width)
        for register in REGISTERS
        for field in register.fields
        if field.source in (Source.SIGNAL, Source.COUNTER)
    }
    ports = {name: value for name, value in inputs.items() if hasattr(dut, name)}
    events = [
        f"{register.signal(field)}_{what}"
        for register in REGISTERS
        for field in register.fields
        if field.access is Access.WRITE_ONE_TO_CLEAR
        for what in ("set", "clear")
    ]
    host = Host(dut, "bus__", dut.clk, rng, pause)
    quiet = dict.fromkeys(events, 0)
    await start(dut, counters__valid=0, counters__value=0, **ports, **quiet)
    host.start()
    cocotb.start_soon(LiteMonitor(dut, "bus__", dut.clk, dut.rst).run())
    cocotb.start_soon(count(dut, rng, [inputs[register.name] for register in COUNTERS]))
    return host, Model(REGISTERS, inputs)


async def count(dut, rng, values: list[int]) -> None:
    """The counters: each answers when its turn comes, and is seen in one cycle only."""
    while True:
        await RisingEdge(dut.clk)
        answered = int(dut.counters__valid.value)
        asked = int(dut.counters__request.value)
        if asked and not answered and rng.random() < 0.3:
            drive(dut, counters__valid=1, counters__value=values[int(dut.counters__index.value)])
        else:
            drive(dut, counters__valid=0, counters__value=0)


@cocotb.test()
async def every_word_has_its_reset_value(dut):
    host, model = await begun(dut, random_of("words"), 0.0)
    for register in REGISTERS:
        for word, offset in enumerate(register.offsets):
            assert await host.read(offset) == model.read(offset), f"word {word} of {register.name}"


@cocotb.test()
@cocotb.parametrize(pause=[0.0, 0.7])
async def any_access_does_what_the_table_says(dut, pause):
    rng = random_of(f"accesses {pause}")
    host, model = await begun(dut, rng, pause)
    words = list(model.words)
    for number in range(300):
        head = [offset for offset in words if offset < COUNTERS[0].offset]
        address = rng.choice([rng.choice(head), rng.choice(words), rng.randrange(1 << 12)])
        where = f"access {number} at {address:#x}"
        if rng.random() < 0.5:
            data, strobes = rng.getrandbits(32), rng.choice([0xF, 0xF, 0xF, rng.randrange(16)])
            wanted = model.write(address, data, strobes)
            assert await host.write(address, data, strobes) == wanted, where
        else:
            assert await host.read(address) == model.read(address), where
    if pause:
        assert min(host.stalled.values()) > 20


@cocotb.test()
async def events_are_kept_until_they_are_cleared(dut):
    host, _ = await begun(dut, random_of("events"), 0.3)
    for name in ("status", "interrupt_status"):
        for field in NAMES[name].fields:
            if field.access is not Access.WRITE_ONE_TO_CLEAR:
                continue
            place, signal = NAMES[name].offset, f"{name}_{field.name}"

            async def shown(place=place, field=field):
                data, response = await host.read(place)
                assert response == OKAY
                return data >> field.low & 1

            drive(dut, **{f"{signal}_set": 1})
            await RisingEdge(dut.clk)
            drive(dut, **{f"{signal}_set": 0})
            assert await shown() == 1
            assert await host.write(place, ~field.mask & 0xFFFF_FFFF) == OKAY
            assert await shown() == 1, "zeros leave it"
            assert await host.write(place, field.mask, 0b0111) == SLVERR
            assert await shown() == 1, "a refused write changes nothing"
            assert await host.write(place, field.mask) == OKAY
            assert await shown() == 0
            drive(dut, **{f"{signal}_set": 1, f"{signal}_clear": 1})
            await RisingEdge(dut.clk)
            drive(dut, **{f"{signal}_set": 0, f"{signal}_clear": 0})
            assert await shown() == 1, "an event is stronger than a clear"
            drive(dut, **{f"{signal}_clear": 1})
            await RisingEdge(dut.clk)
            drive(dut, **{f"{signal}_clear": 0})
            assert await shown() == 0
