"""The words of the instruction set as Amaranth layouts, straight from the tables of vta_isa."""

from amaranth.hdl import Const, Value, signed, unsigned
from amaranth.lib import data

from vta_isa.enums import Buffer, Opcode
from vta_isa.insn import Layouts
from vta_isa.layout import Layout


def struct(layout: Layout) -> data.Layout:
    """Every field at its bits; reserved bits are in no field."""
    fields = {
        name: data.Field((signed if slot.field.signed else unsigned)(slot.field.width), slot.start)
        for name, slot in layout.slots.items()
    }
    return data.FlexibleLayout(layout.bits, fields)


class Views:
    """One 128-bit instruction word, read as each kind of instruction at once."""

    def __init__(self, layouts: Layouts, word: Value):
        self.mem = data.View(struct(layouts.mem), word)
        self.gemm = data.View(struct(layouts.gemm), word)
        self.alu = data.View(struct(layouts.alu), word)
        self.requantize = (
            data.View(struct(layouts.requantize), word) if layouts.requantize else None
        )
        self.opcode = self.mem.opcode

    def is_(self, opcode: Opcode) -> Value:
        return self.opcode == Const(opcode, 3)

    def buffer_is(self, *buffers: Buffer) -> Value:
        return self.mem.buffer.matches(*(int(buffer) for buffer in buffers))
