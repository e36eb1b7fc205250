"""The registers behind AXI4-Lite, built from the table in vta_isa.registers."""

from collections.abc import Sequence

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from vta_isa.registers import (
    ADDRESS_BITS,
    WORD_BITS,
    WORD_BYTES,
    Access,
    BitField,
    Register,
    Source,
)

from .axi_lite import OKAY, SLVERR, AxiLite
from .counter_bank import CounterRead

INDEX_BITS = exact_log2(WORD_BYTES)  # bits of an address that lie inside a word


def csr_signature(registers: Sequence[Register]) -> wiring.Signature:
    """``bus``, and one member per field that hardware sees; counters share one port."""
    members = {"bus": In(AxiLite(ADDRESS_BITS))}
    if counted := _counted(registers):
        places = [counted[0].offset + 2 * WORD_BYTES * place for place in range(len(counted))]
        assert [each.offset for each in counted] == places, "an index is a difference of offsets"
        members["counters"] = Out(CounterRead(len(counted)))
    for register in registers:
        for field in register.fields:
            name = register.signal(field)
            match field.access:
                case Access.READ_WRITE | Access.SELF_CLEARING:
                    members[name] = Out(field.width, init=field.reset)
                case Access.WRITE_ONE_TO_CLEAR:
                    members[name] = Out(field.width, init=field.reset)
                    members[f"{name}_set"] = In(field.width)
                    members[f"{name}_clear"] = In(field.width)
                case Access.READ_ONLY if field.source is Source.SIGNAL:
                    members[name] = In(field.width)
    return wiring.Signature(members)


def _counted(registers: Sequence[Register]) -> tuple[Register, ...]:
    return tuple(register for register in registers if _is_counter(register))


class Csr(wiring.Component):
    """Registers of a host on AXI4-Lite; what hardware sees of a field has the field's name.

    rw: the value. w1c: the value; ``x_set`` and ``x_clear`` change it in the next cycle, and
    setting is stronger than clearing. sc: high in the cycle after the write. ro: an input;
    counters come through ``counters`` instead. Constants have no signal.

    Writes take effect in the cycle after both address and data are there, which may come in any
    order. A write is done and answered whole or, with SLVERR, not at all: not four strobes, no
    register, nothing to write in it. A read is answered in the second cycle after its address, or
    when the counter's turn has come; from a place without a register it is 0 with SLVERR. One write
    and one read are taken while the ones before are answered.
    """

    def __init__(self, registers: Sequence[Register]):
        self.registers = tuple(registers)
        self.counted = _counted(registers)
        super().__init__(csr_signature(registers))

    def elaborate(self, platform):
        m = Module()
        self._write(m)
        self._read(m)
        return m

    # ---- writes ---------------------------------------------------------------------------------

    def _write(self, m: Module) -> None:
        bus = self.bus
        address, data = Signal(ADDRESS_BITS), Signal(WORD_BITS)
        whole = Signal()  # all strobes are set
        address_full, data_full = Signal(), Signal()
        taken = Signal()  # the write is done in this cycle
        legal = Signal()
        m.d.comb += [
            bus.awready.eq(~address_full),
            bus.wready.eq(~data_full),
            taken.eq(address_full & data_full & (~bus.bvalid | bus.bready)),
        ]
        with m.If(taken):
            m.d.sync += [address_full.eq(0), data_full.eq(0)]
        with m.If(bus.awvalid & bus.awready):
            m.d.sync += [address_full.eq(1), address.eq(bus.awaddr)]
        with m.If(bus.wvalid & bus.wready):
            m.d.sync += [data_full.eq(1), data.eq(bus.wdata), whole.eq(bus.wstrb.all())]

        with m.If(taken):
            m.d.sync += [bus.bvalid.eq(1), bus.bresp.eq(Mux(legal, OKAY, SLVERR))]
        with m.Elif(bus.bready):
            m.d.sync += bus.bvalid.eq(0)

        cleared = {  # bits the host clears in this cycle
            register.signal(field): Signal(field.width, name=f"{register.signal(field)}_cleared")
            for register in self.registers
            for field in register.fields
            if field.access is Access.WRITE_ONE_TO_CLEAR
        }
        for register in self.registers:
            for word, offset in enumerate(register.offsets):
                fields = [field for field in register.fields if _writable(field)]
                if not fields:
                    continue
                here = Signal(name=f"write_{register.name}_{word}")
                m.d.comb += here.eq(taken & whole & (address == offset))
                with m.If(address == offset):
                    m.d.comb += legal.eq(whole)
                for field in fields:
                    name = register.signal(field)
                    in_field, in_word, width = _overlap(field, word)
                    if not width:
                        continue
                    where = slice(in_field, in_field + width)
                    written = data[in_word : in_word + width]
                    match field.access:
                        case Access.READ_WRITE:
                            with m.If(here):
                                m.d.sync += getattr(self, name)[where].eq(written)
                        case Access.SELF_CLEARING:
                            m.d.sync += getattr(self, name)[where].eq(Mux(here, written, 0))
                        case Access.WRITE_ONE_TO_CLEAR:
                            m.d.comb += cleared[name][where].eq(Mux(here, written, 0))
        for name, by_host in cleared.items():
            value, gone = getattr(self, name), by_host | getattr(self, f"{name}_clear")
            m.d.sync += value.eq((value & ~gone) | getattr(self, f"{name}_set"))

    # ---- reads ----------------------------------------------------------------------------------

    def _read(self, m: Module) -> None:
        bus = self.bus
        address = Signal(ADDRESS_BITS)
        full = Signal()  # a read is to be answered
        room, answered = Signal(), Signal()
        known = Signal()  # there is such a register
        value = Signal(WORD_BITS)
        m.d.comb += [
            bus.arready.eq(~full),
            room.eq(~bus.rvalid | bus.rready),
            answered.eq(full & room),
        ]
        with m.If(bus.arvalid & bus.arready):
            m.d.sync += [full.eq(1), address.eq(bus.araddr)]

        with m.Switch(address):
            for register in self.registers:
                if _is_counter(register):
                    continue
                whole = self._value(register)
                for word, offset in enumerate(register.offsets):
                    with m.Case(offset):
                        m.d.comb += [known.eq(1), value.eq(whole.word_select(word, WORD_BITS))]
        if self.counted:
            self._read_counter(m, address, full & room, known, value, answered)

        with m.If(answered):
            m.d.sync += [
                full.eq(0),
                bus.rvalid.eq(1),
                bus.rdata.eq(value),
                bus.rresp.eq(Mux(known, OKAY, SLVERR)),
            ]
        with m.Elif(bus.rready):
            m.d.sync += bus.rvalid.eq(0)

    def _read_counter(self, m: Module, address, due, known, value, answered) -> None:
        port = self.counters
        first, past = self.counted[0].offset, self.counted[-1].offset + 2 * WORD_BYTES
        inside = (address >= first) & (address < past) & (address[:INDEX_BITS] == 0)
        place = address - first
        m.d.comb += port.index.eq(place >> (INDEX_BITS + 1))
        with m.If(inside):
            m.d.comb += [
                known.eq(1),
                port.request.eq(due),
                answered.eq(due & port.valid),
                value.eq(port.value.word_select(address[INDEX_BITS], WORD_BITS)),
            ]

    def _value(self, register: Register):
        """What a read of all words of the register gives."""
        pieces, filled = [], 0
        for field in sorted(register.fields, key=lambda each: each.low):
            pieces.append(Const(0, field.low - filled))
            if field.access is Access.SELF_CLEARING:
                pieces.append(Const(0, field.width))
            elif field.access is Access.READ_ONLY and field.source is Source.CONSTANT:
                pieces.append(Const(field.reset, field.width))
            else:
                pieces.append(getattr(self, register.signal(field)))
            filled = field.low + field.width
        return Cat(*pieces, Const(0, register.bits - filled))


def _is_counter(register: Register) -> bool:
    return any(field.source is Source.COUNTER for field in register.fields)


def _writable(field: BitField) -> bool:
    return field.access is not Access.READ_ONLY


def _overlap(field: BitField, word: int) -> tuple[int, int, int]:
    """First bit in the field, first bit in the word, and how many bits they share."""
    low, high = word * WORD_BITS, (word + 1) * WORD_BITS
    begin, end = max(low, field.low), min(high, field.low + field.width)
    return begin - field.low, begin - low, max(end - begin, 0)
