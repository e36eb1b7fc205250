"""A host on AXI4-Lite for tests in Amaranth's simulator: driver, monitor, and what registers mean.

The three know nothing of each other: the driver sends, the monitor watches the wires, the model
says what answers must be.
"""

from collections import deque
from random import Random

from vta_isa.registers import Access, Source

OKAY, SLVERR = 0, 2
CHANNELS = {
    "aw": ("awaddr",),
    "w": ("wdata", "wstrb"),
    "b": ("bresp",),
    "ar": ("araddr",),
    "r": ("rdata", "rresp"),
}


class Driver:
    """Sends what stands in its queues, every channel on its own, with random pauses.

    ``pause`` is the probability of a cycle without a new VALID, or without READY.
    """

    def __init__(self, bus, rng: Random, pause: float):
        self.bus, self.rng, self.pause = bus, rng, pause
        self.queues = {"aw": deque(), "w": deque(), "ar": deque()}
        self.answers = {"b": deque(), "r": deque()}

    def add_to(self, simulator) -> None:
        for channel in self.queues:
            simulator.add_testbench(self._sender(channel), background=True)
        for channel in self.answers:
            simulator.add_testbench(self._receiver(channel), background=True)

    def write(self, address: int, data: int, strobes: int = 0xF) -> None:
        self.queues["aw"].append((address,))
        self.queues["w"].append((data, strobes))

    def read(self, address: int) -> None:
        self.queues["ar"].append((address,))

    async def written(self, ctx, address: int, data: int, strobes: int = 0xF) -> int:
        """BRESP."""
        self.write(address, data, strobes)
        return (await self.answer(ctx, "b"))[0]

    async def value(self, ctx, address: int) -> tuple[int, int]:
        """RDATA and RRESP."""
        self.read(address)
        return await self.answer(ctx, "r")

    async def answer(self, ctx, channel: str, patience: int = 2000) -> tuple[int, ...]:
        for _ in range(patience):
            if self.answers[channel]:
                return self.answers[channel].popleft()
            await ctx.tick()
        raise AssertionError(f"no answer on {channel} in {patience} cycles")

    def _sender(self, channel: str):
        valid, ready = getattr(self.bus, f"{channel}valid"), getattr(self.bus, f"{channel}ready")
        payload = [getattr(self.bus, name) for name in CHANNELS[channel]]
        queue = self.queues[channel]

        async def send(ctx):
            while True:
                if not queue or self.rng.random() < self.pause:
                    await ctx.tick()
                    continue
                for signal, value in zip(payload, queue.popleft(), strict=True):
                    ctx.set(signal, value)
                ctx.set(valid, 1)
                await ctx.tick().until(ready)
                ctx.set(valid, 0)

        return send

    def _receiver(self, channel: str):
        valid, ready = getattr(self.bus, f"{channel}valid"), getattr(self.bus, f"{channel}ready")
        payload = [getattr(self.bus, name) for name in CHANNELS[channel]]

        async def receive(ctx):
            while True:
                ctx.set(ready, int(self.rng.random() >= self.pause))
                _, _, came, taken, *values = await ctx.tick().sample(valid, ready, *payload)
                if came and taken:
                    self.answers[channel].append(tuple(values))

        return receive


class Monitor:
    """Checks that no VALID is withdrawn and no payload changes before READY, on every channel."""

    def __init__(self, bus):
        self.bus = bus
        self.transfers = dict.fromkeys(CHANNELS, 0)

    def add_to(self, simulator) -> None:
        simulator.add_process(self._watch)

    async def _watch(self, ctx):
        signals = [
            getattr(self.bus, name)
            for channel, payload in CHANNELS.items()
            for name in (f"{channel}valid", f"{channel}ready", *payload)
        ]
        stalled = {}
        async for _, _, *values in ctx.tick().sample(*signals):
            left = iter(values)
            for channel, names in CHANNELS.items():
                valid, ready = next(left), next(left)
                payload = tuple(next(left) for _ in names)
                if channel in stalled:
                    assert valid, f"{channel}valid was withdrawn"
                    assert payload == stalled[channel], f"{channel} changed while it waited"
                    del stalled[channel]
                if valid and not ready:
                    stalled[channel] = payload
                self.transfers[channel] += valid and ready


class Model:
    """What reads and writes of a register map give, one after the other.

    ``inputs`` are the values of fields that come from hardware, by signal name.
    """

    def __init__(self, registers, inputs: dict[str, int]):
        self.words = {
            offset: (register, word)
            for register in registers
            for word, offset in enumerate(register.offsets)
        }
        self.inputs = inputs
        self.values = {
            (register.name, field.name): field.reset
            for register in registers
            for field in register.fields
        }

    def read(self, address: int) -> tuple[int, int]:
        if address not in self.words:
            return 0, SLVERR
        register, word = self.words[address]
        whole = 0
        for field in register.fields:
            if field.access is Access.SELF_CLEARING:
                continue
            if field.source is Source.CONSTANT:
                value = self.values[register.name, field.name]
            else:
                value = self.inputs[register.signal(field)]
            whole |= value << field.low
        return whole >> (32 * word) & 0xFFFF_FFFF, OKAY

    def write(self, address: int, data: int, strobes: int) -> int:
        if address not in self.words or strobes != 0xF:
            return SLVERR
        register, word = self.words[address]
        if all(field.access is Access.READ_ONLY for field in register.fields):
            return SLVERR
        moved, reach = data << (32 * word), 0xFFFF_FFFF << (32 * word)
        for field in register.fields:
            key = register.name, field.name
            new = (moved & field.mask) >> field.low
            touched = (reach & field.mask) >> field.low
            if field.access is Access.READ_WRITE:
                self.values[key] = self.values[key] & ~touched | new
            elif field.access is Access.WRITE_ONE_TO_CLEAR:
                self.values[key] &= ~new
        return OKAY
