"""Finds instructions that cannot be executed, as they are dispatched."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from vta_isa.enums import Buffer, FusedOp, LowKind, Opcode
from vta_isa.faults import Fault
from vta_isa.insn import INSN_BITS, alu_operations, layouts
from vta_isa.machine import Machine

from .layouts import Views
from .shift_add import Terms

NUMBER_BITS = 32  # of an instruction's place in its stream
LOADABLE = (Buffer.UOP, Buffer.WGT, Buffer.INP, Buffer.ACC, Buffer.ACC_8BIT)


def fault_layout() -> data.StructLayout:
    """``valid`` in one cycle: instruction ``insn`` of the stream is at fault."""
    return data.StructLayout({"valid": 1, "cause": 8, "insn": NUMBER_BITS})


class InsnCheck(wiring.Component):
    """Looks at what no uop is needed for: undefined numbers, and tiles past the end of an SRAM.

    The ``fault`` of an instruction dispatched (``valid``) in cycle d is there in d + 3, for a
    tile past the end in d + 4: before a beat of a STORE can be on the bus, and before the
    instruction ends. The same rules, in words: simulator/checks.py. DRAM has
    no end that the machine knows, and flags towards a stage that is not there mean nothing.
    """

    def __init__(self, machine: Machine):
        self.machine = machine
        super().__init__(
            {
                "valid": In(1),
                "insn": In(INSN_BITS),
                "number": In(NUMBER_BITS),
                "fault": Out(fault_layout()),
            }
        )

    def elaborate(self, platform):
        m = Module()
        machine = self.machine

        # ---- d + 1: the instruction alone -------------------------------------------------------
        valid, word, number = Signal(), Signal(INSN_BITS), Signal(NUMBER_BITS)
        m.d.sync += [valid.eq(self.valid), word.eq(self.insn), number.eq(self.number)]
        insn = Views(layouts(machine), word)
        mem, loop = insn.mem, insn.gemm
        is_load, is_store, is_alu = (
            insn.is_(opcode) for opcode in (Opcode.LOAD, Opcode.STORE, Opcode.ALU)
        )
        padded = Cat(mem.y_pad_before, mem.y_pad_after, mem.x_pad_before, mem.x_pad_after) != 0
        moves = (is_load | is_store) & (mem.x_size != 0)
        executes = (
            (insn.is_(Opcode.GEMM) | is_alu)
            & (loop.uop_begin < loop.uop_end)
            & (loop.iter_out != 0)
            & (loop.iter_in != 0)
        )
        rows = mem.y_pad_before + mem.y_size + mem.y_pad_after
        columns = mem.x_pad_before + mem.x_size + mem.x_pad_after

        undefined_op = insn.alu.alu_op > max(alu_operations(machine))
        if insn.requantize is not None:
            fused = insn.alu.alu_op == FusedOp.REQUANTIZE
            undefined_op |= fused & (insn.requantize.low_kind > max(LowKind))

        cause = Signal(Fault)
        with m.If(insn.opcode > max(Opcode)):
            m.d.comb += cause.eq(Fault.UNDEFINED_OPCODE)
        with m.Elif(is_load & moves & ~insn.buffer_is(*LOADABLE)):
            m.d.comb += cause.eq(Fault.UNDEFINED_BUFFER)
        with m.Elif(is_store & moves & ~insn.buffer_is(Buffer.OUT)):
            m.d.comb += cause.eq(Fault.UNDEFINED_BUFFER)
        with m.Elif(is_store & moves & padded):
            m.d.comb += cause.eq(Fault.STORE_PADDING)
        with m.Elif(is_alu & undefined_op):
            m.d.comb += cause.eq(Fault.UNDEFINED_ALU_OP)
        if machine.extensions.gemm_overwrite:
            with m.Elif(insn.is_(Opcode.GEMM) & loop.reset & loop.overwrite):
                m.d.comb += cause.eq(Fault.UNDEFINED_GEMM)
        with m.Elif(executes & (loop.uop_end > machine.depth(Buffer.UOP))):
            m.d.comb += cause.eq(Fault.SRAM_RANGE)

        # ---- d + 2: the tile; no factor of an area that fits is larger than the memory -----------
        deepest = max(machine.depth(buffer) for buffer in Buffer)
        side = range(deepest + 2)
        depth = Signal(range(deepest + 1))
        for buffer in Buffer:
            with m.If(mem.buffer == int(buffer)):
                m.d.comb += depth.eq(machine.depth(buffer))
        found = data.StructLayout({"valid": 1, "moves": 1, "cause": 8, "insn": NUMBER_BITS})
        room_layout = signed(len(mem.sram_base) + 1)
        tile = Signal(found)
        summed = Signal(data.StructLayout({"moves": 1, "large": 1, "insn": NUMBER_BITS}))
        height, width = Signal(side), Signal(side)
        tile_room, room = Signal(room_layout), Signal(room_layout)  # entries from the base on
        m.d.sync += [
            tile.valid.eq(valid),
            tile.moves.eq(moves),
            tile.cause.eq(cause),
            tile.insn.eq(number),
            height.eq(Mux(rows > depth, depth + 1, rows)),
            width.eq(Mux(columns > depth, depth + 1, columns)),
            tile_room.eq(depth - mem.sram_base),
        ]

        # ---- d + 3: half way to its area --------------------------------------------------------
        # An area with a bit for 2 ** enough or more is too large; any other is below twice that.
        enough = deepest.bit_length()
        large = Cat(bit & width[max(enough - i, 0) :].any() for i, bit in enumerate(height)).any()
        bits = enough + 1
        quarters = Terms.of_product(width, height, bits).paired().paired()
        area = quarters.registers("area")
        m.d.sync += [
            summed.moves.eq(tile.valid & tile.moves & (tile.cause == Fault.NONE) & (height != 0)),
            summed.large.eq(large),
            summed.insn.eq(tile.insn),
            room.eq(tile_room),
            *area.eq(quarters),
        ]

        # ---- d + 4: its end; what the instruction alone says was there a cycle before -----------
        is_past, is_bad = Signal(), Signal()
        past_insn, bad_insn = Signal(NUMBER_BITS), Signal(NUMBER_BITS)
        bad_cause = Signal(Fault)
        m.d.sync += [
            is_past.eq(summed.moves & (summed.large | (area.total() > room))),
            past_insn.eq(summed.insn),
            is_bad.eq(tile.valid & (tile.cause != Fault.NONE)),
            bad_insn.eq(tile.insn),
            bad_cause.eq(tile.cause),
        ]
        m.d.comb += [
            self.fault.valid.eq(is_past | is_bad),
            self.fault.cause.eq(Mux(is_past, Const(Fault.SRAM_RANGE), bad_cause)),
            self.fault.insn.eq(Mux(is_past, past_insn, bad_insn)),
        ]
        return m
