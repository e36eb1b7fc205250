"""The serial line, and the bridge behind it, bit by bit."""

from random import Random

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.sim import Simulator
from bench import bench

from vta_hw.boards.protocol import (
    MOST_WORDS,
    Command,
    Status,
    read_request,
    write_request,
)
from vta_hw.boards.uart import UartReceiver, UartTransmitter
from vta_hw.boards.uart_bridge import UartBridge

DIVIDER = 4


async def send(ctx, line, data: bytes, divider: int = DIVIDER, stop: int = 1) -> None:
    for byte in data:
        for bit in (0, *(byte >> i & 1 for i in range(8)), stop):
            ctx.set(line, bit)
            await ctx.tick().repeat(divider)
        ctx.set(line, 1)


async def receive(ctx, line, count: int, divider: int = DIVIDER, patience: int = 5000) -> bytes:
    got = bytearray()
    for _ in range(count):
        for _ in range(patience):
            if not ctx.get(line):
                break
            await ctx.tick()
        else:
            raise AssertionError(f"{len(got)} of {count} bytes came")
        await ctx.tick().repeat(divider // 2)
        assert not ctx.get(line), "the start bit is too short"
        byte = 0
        for i in range(8):
            await ctx.tick().repeat(divider)
            byte |= ctx.get(line) << i
        await ctx.tick().repeat(divider)
        assert ctx.get(line), "there is no stop bit"
        got.append(byte)
    return bytes(got)


@pytest.mark.parametrize("divider", [4, 5, 16])
def test_every_byte_comes_back(divider) -> None:
    class Echo(wiring.Component):
        rx: wiring.In(1, init=1)
        tx: wiring.Out(1, init=1)

        def elaborate(self, platform):
            m = Module()
            m.submodules.receiver = receiver = UartReceiver(divider)
            m.submodules.transmitter = transmitter = UartTransmitter(divider)
            m.d.comb += [
                receiver.line.eq(self.rx),
                self.tx.eq(transmitter.line),
                transmitter.bytes.valid.eq(receiver.valid),
                transmitter.bytes.payload.eq(receiver.byte),
            ]
            return m

    echo = Echo()
    data = bytes([0x00, 0xFF, 0x55, 0xAA, 0x01, 0x80, 0x7E, *range(10, 20)])
    came = []

    async def host(ctx):
        await send(ctx, echo.rx, data, divider)
        await ctx.tick().repeat(12 * divider)
        assert came == [data]

    async def listen(ctx):
        came.append(await receive(ctx, echo.tx, len(data), divider))

    bench(echo, host, listen)


def test_a_glitch_is_no_byte_and_a_low_stop_bit_is_told_once() -> None:
    receiver = UartReceiver(8)
    told = {"valid": 0, "broken": 0}

    async def host(ctx):
        ctx.set(receiver.line, 0)
        await ctx.tick().repeat(2)
        ctx.set(receiver.line, 1)
        await ctx.tick().repeat(100)
        assert told == {"valid": 0, "broken": 0}
        ctx.set(receiver.line, 0)  # a break: low for several bytes
        await ctx.tick().repeat(300)
        ctx.set(receiver.line, 1)
        await ctx.tick().repeat(20)
        assert told == {"valid": 0, "broken": 1}
        await send(ctx, receiver.line, b"a", 8)
        await ctx.tick().repeat(10)
        assert told == {"valid": 1, "broken": 1}

    async def watch(ctx):
        async for _, _, valid, broken in ctx.tick().sample(receiver.valid, receiver.broken):
            told["valid"] += valid
            told["broken"] += broken

    bench(receiver, host, watch)


class Places:
    """Memory or registers behind the bridge: words at some addresses, answers after a while."""

    def __init__(self, port, rng: Random):
        self.port, self.rng = port, rng
        self.words = {}

    async def serve(self, ctx):
        port = self.port
        while True:
            if not ctx.get(port.request):
                await ctx.tick()
                continue
            for _ in range(self.rng.randrange(1, 8)):
                await ctx.tick()
            assert ctx.get(port.request), "a request was withdrawn"
            address = ctx.get(port.address)
            known = address in self.words
            if known and ctx.get(port.write):
                self.words[address] = ctx.get(port.data)
            ctx.set(port.value, self.words.get(address, 0))
            ctx.set(port.failed, not known)
            ctx.set(port.done, 1)
            await ctx.tick()
            ctx.set(port.done, 0)


def run(test) -> None:
    """``test(ctx, exchange, memory, registers, bridge)`` with words at 0 .. 16 and 2**32 - 4."""
    bridge = UartBridge(DIVIDER)
    m = Module()
    m.submodules.bridge = bridge
    simulator = Simulator(m)
    simulator.add_clock(1e-6)
    places = [Places(port, Random(3)) for port in (bridge.memory, bridge.registers)]
    for place in places:
        place.words = dict.fromkeys([*range(0, 20, 4), 2**32 - 4], 0)
        simulator.add_testbench(place.serve, background=True)

    async def exchange(ctx, request):
        await send(ctx, bridge.rx, request.data)
        return await receive(ctx, bridge.tx, request.answer_bytes)

    async def whole(ctx):
        ctx.set(bridge.rx, 1)
        await ctx.tick().repeat(4)
        await test(ctx, exchange, *places, bridge)

    simulator.add_testbench(whole)
    simulator.run()


def test_words_reach_the_place_they_are_for() -> None:
    async def test(ctx, exchange, memory, registers, bridge):
        values = [0x04030201, 0xFFFFFFFF, 0, 0x80000000, 0x52577277]
        put = write_request(Command.WRITE_MEMORY, 0, values)
        assert await exchange(ctx, put) == bytes([Status.DONE])
        assert [memory.words[4 * i] for i in range(5)] == values
        assert set(registers.words.values()) == {0}
        put = write_request(Command.WRITE_REGISTERS, 8, [7])
        assert await exchange(ctx, put) == bytes([Status.DONE])
        assert registers.words[8] == 7
        assert memory.words[8] == 0

        answer = await exchange(ctx, read_request(Command.READ_MEMORY, 0, 5))
        body = b"".join(value.to_bytes(4, "little") for value in values)
        assert answer == body + bytes([Status.DONE])
        answer = await exchange(ctx, read_request(Command.READ_REGISTERS, 8, 1))
        assert answer == bytes([7, 0, 0, 0, Status.DONE])
        put = write_request(Command.WRITE_MEMORY, 2**32 - 4, [9])
        assert await exchange(ctx, put) == bytes([Status.DONE])
        assert memory.words[2**32 - 4] == 9

    run(test)


def test_one_missing_word_fails_the_command() -> None:
    async def test(ctx, exchange, memory, registers, bridge):
        for command in (Command.WRITE_MEMORY, Command.WRITE_REGISTERS):
            answer = await exchange(ctx, write_request(command, 12, [1, 2, 3, 4]))
            assert answer == bytes([Status.FAILED])
            answer = await exchange(ctx, write_request(command, 12, [1, 2]))
            assert answer == bytes([Status.DONE])
        answer = await exchange(ctx, read_request(Command.READ_MEMORY, 16, 2))
        assert answer == bytes([2, 0, 0, 0, 0, 0, 0, 0, Status.FAILED])

    run(test)


def test_as_many_words_as_a_command_can_have() -> None:
    async def test(ctx, exchange, memory, registers, bridge):
        memory.words = {4 * i: i for i in range(MOST_WORDS)}
        answer = await exchange(ctx, read_request(Command.READ_MEMORY, 0, MOST_WORDS))
        words = [int.from_bytes(answer[4 * i : 4 * i + 4], "little") for i in range(MOST_WORDS)]
        assert words == list(range(MOST_WORDS))
        assert answer[-1] == Status.DONE

    run(test)


def test_bytes_that_are_no_command_are_ignored() -> None:
    async def test(ctx, exchange, memory, registers, bridge):
        await send(ctx, bridge.rx, bytes(set(range(256)) - set(Command)))
        await ctx.tick().repeat(50 * DIVIDER)
        assert ctx.get(bridge.tx) == 1
        answer = await exchange(ctx, read_request(Command.READ_MEMORY, 0, 1))
        assert answer == bytes([0, 0, 0, 0, Status.DONE])

    run(test)


@pytest.mark.parametrize("length", [1, 4, 6, 9])
def test_a_break_ends_a_command_that_is_not_whole(length) -> None:
    async def test(ctx, exchange, memory, registers, bridge):
        put = write_request(Command.WRITE_MEMORY, 0, [1, 2])
        await send(ctx, bridge.rx, put.data[:length])
        await send(ctx, bridge.rx, b"\0", stop=0)
        await ctx.tick().repeat(20)
        assert memory.words[0] == 0
        assert await exchange(ctx, put) == bytes([Status.DONE])
        assert (memory.words[0], memory.words[4]) == (1, 2)

    run(test)
