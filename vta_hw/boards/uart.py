"""A serial line: 8 data bits, no parity, 1 stop bit; idle high, low bit first."""

from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out

LEAST_DIVIDER = 4  # a bit must be longer than the doubt about where it begins


class UartReceiver(wiring.Component):
    """``valid`` for a cycle brings a byte, ``broken`` for a cycle says that its stop bit was low.

    ``divider`` is clock cycles per bit. Bits are taken in their middle. After a broken byte the
    line must be high once before the next one begins, so a line held low breaks one byte only.
    """

    def __init__(self, divider: int):
        assert divider >= LEAST_DIVIDER, "bits are too short"
        self.divider = divider
        super().__init__({"line": In(1, init=1), "valid": Out(1), "byte": Out(8), "broken": Out(1)})

    def elaborate(self, platform):
        m = Module()
        line = Signal(init=1)
        m.submodules.synchronizer = FFSynchronizer(self.line, line, init=1)
        wait = Signal(range(self.divider))
        bit = Signal(range(10))  # start bit, 8 data bits, stop bit
        m.d.sync += [self.valid.eq(0), self.broken.eq(0)]
        with m.FSM():
            with m.State("idle"), m.If(~line):
                m.d.sync += [wait.eq(self.divider // 2 - 1), bit.eq(0)]
                m.next = "bits"
            with m.State("bits"):
                m.d.sync += wait.eq(wait - 1)
                with m.If(wait == 0):
                    m.d.sync += [wait.eq(self.divider - 1), bit.eq(bit + 1)]
                    with m.If(bit == 0):
                        with m.If(line):  # a glitch, no start bit
                            m.next = "idle"
                    with m.Elif(bit == 9):
                        m.d.sync += [self.valid.eq(line), self.broken.eq(~line)]
                        m.next = "ended"
                    with m.Else():
                        m.d.sync += self.byte.eq(Cat(self.byte[1:], line))
            with m.State("ended"), m.If(line):
                m.next = "idle"
        return m


class UartTransmitter(wiring.Component):
    """Sends the bytes of a stream without pause, each in 10 bits of ``divider`` clock cycles."""

    def __init__(self, divider: int):
        assert divider >= LEAST_DIVIDER, "bits are too short"
        self.divider = divider
        super().__init__({"bytes": In(stream.Signature(8)), "line": Out(1, init=1)})

    def elaborate(self, platform):
        m = Module()
        bits = Signal(9)  # to come, the stop bit last
        left = Signal(range(11))  # the one on the line included
        wait = Signal(range(self.divider))
        m.d.comb += self.bytes.ready.eq((left == 0) | ((left == 1) & (wait == 0)))
        with m.If(self.bytes.valid & self.bytes.ready):
            m.d.sync += [
                wait.eq(self.divider - 1),
                left.eq(10),
                self.line.eq(0),
                bits.eq(Cat(self.bytes.payload, Const(1, 1))),
            ]
        with m.Elif(left != 0):
            m.d.sync += wait.eq(wait - 1)
            with m.If(wait == 0):
                m.d.sync += [
                    wait.eq(self.divider - 1),
                    left.eq(left - 1),
                    Cat(self.line, bits).eq(Cat(bits, Const(1, 1))),
                ]
        return m
