"""Memory and registers of a board, from a serial line."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from vta_isa.registers import WORD_BITS, WORD_BYTES

from .protocol import Command, Status
from .uart import UartReceiver, UartTransmitter
from .word_access import WordAccess


class UartBridge(wiring.Component):
    """Executes the commands of ``protocol`` that come on ``rx`` and answers them on ``tx``.

    ``divider`` is clock cycles per bit. A word must be written within the time of a byte.
    Bytes that come while an answer is sent are lost: the host waits for the status. A byte without
    a stop bit, such as a break, ends a command that has not come as a whole, without an answer;
    the next one may follow.
    """

    def __init__(self, divider: int):
        self.divider = divider
        super().__init__(
            {
                "rx": In(1, init=1),
                "tx": Out(1, init=1),
                "memory": Out(WordAccess()),
                "registers": Out(WordAccess()),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.receiver = receiver = UartReceiver(self.divider)
        m.submodules.transmitter = transmitter = UartTransmitter(self.divider)
        m.d.comb += [receiver.line.eq(self.rx), self.tx.eq(transmitter.line)]

        writes, to_registers = Signal(), Signal()
        address, left = Signal(32), Signal(8)  # left: words after this one
        word = Signal(WORD_BITS)
        place = Signal(range(5))  # of the byte within the head or the word
        failed = Signal()

        request, done = Signal(), Signal()
        for port, chosen in ((self.memory, ~to_registers), (self.registers, to_registers)):
            m.d.comb += [
                port.request.eq(request & chosen),
                port.write.eq(writes),
                port.address.eq(address),
                port.data.eq(word),
            ]
        m.d.comb += done.eq(Mux(to_registers, self.registers.done, self.memory.done))
        value = Mux(to_registers, self.registers.value, self.memory.value)
        refused = Mux(to_registers, self.registers.failed, self.memory.failed)
        out = transmitter.bytes

        with m.FSM():
            with m.State("command"):
                m.d.sync += [place.eq(0), failed.eq(0)]
                with m.If(receiver.valid):
                    with m.Switch(receiver.byte):
                        for command in Command:
                            with m.Case(command):
                                m.d.sync += [
                                    writes.eq(command.writes),
                                    to_registers.eq(
                                        command in (Command.READ_REGISTERS, Command.WRITE_REGISTERS)
                                    ),
                                ]
                                m.next = "head"
            with m.State("head"):
                with m.If(receiver.valid):
                    m.d.sync += [
                        Cat(address, left).eq(Cat(address[8:], left, receiver.byte)),
                        place.eq(place + 1),
                    ]
                    with m.If(place == WORD_BYTES):
                        m.d.sync += place.eq(0)
                        m.next = "access"
                        with m.If(writes):
                            m.next = "receive"
                with m.If(receiver.broken):
                    m.next = "command"
            with m.State("receive"):
                with m.If(receiver.valid):
                    m.d.sync += [word.eq(Cat(word[8:], receiver.byte)), place.eq(place + 1)]
                    with m.If(place == WORD_BYTES - 1):
                        m.d.sync += place.eq(0)
                        m.next = "access"
                with m.If(receiver.broken):
                    m.next = "command"
            with m.State("access"):
                m.d.comb += request.eq(1)
                with m.If(done):
                    m.d.sync += [failed.eq(failed | refused), address.eq(address + WORD_BYTES)]
                    with m.If(writes):
                        m.d.sync += left.eq(left - 1)
                        m.next = "receive"
                        with m.If(left == 0):
                            m.next = "status"
                    with m.Else():
                        m.d.sync += word.eq(value)
                        m.next = "send"
            with m.State("send"):
                m.d.comb += [out.valid.eq(1), out.payload.eq(word[:8])]
                with m.If(out.ready):
                    m.d.sync += [word.eq(word >> 8), place.eq(place + 1)]
                    with m.If(place == WORD_BYTES - 1):
                        m.d.sync += [place.eq(0), left.eq(left - 1)]
                        m.next = "access"
                        with m.If(left == 0):
                            m.next = "status"
            with m.State("status"):
                m.d.comb += [
                    out.valid.eq(1),
                    out.payload.eq(Mux(failed, Status.FAILED, Status.DONE)),
                ]
                with m.If(out.ready):
                    m.next = "command"
        return m
