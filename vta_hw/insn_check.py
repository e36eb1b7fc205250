"""Finds instructions that cannot be executed, as they are dispatched."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from vta_isa.enums import AluOp, Buffer, Opcode
from vta_isa.faults import Fault
from vta_isa.insn import INSN_BITS, layouts
from vta_isa.machine import Machine

from .layouts import Views

NUMBER_BITS = 32  # of an instruction's place in its stream
LOADABLE = (Buffer.UOP, Buffer.WGT, Buffer.INP, Buffer.ACC, Buffer.ACC_8BIT)


def fault_layout() -> data.StructLayout:
    """``valid`` in one cycle: instruction ``insn`` of the stream is at fault."""
    return data.StructLayout({"valid": 1, "cause": 8, "insn": NUMBER_BITS})


class InsnCheck(wiring.Component):
    """Looks at what no uop is needed for: undefined numbers, and tiles past the end of an SRAM.

    The ``fault`` of an instruction dispatched (``valid``) in cycle d is there in d + 3, before a
    beat of a STORE can be on the bus. The same rules, in words: simulator/checks.py. DRAM has
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

        cause = Signal(Fault)
        with m.If(insn.opcode > max(Opcode)):
            m.d.comb += cause.eq(Fault.UNDEFINED_OPCODE)
        with m.Elif(is_load & moves & ~insn.buffer_is(*LOADABLE)):
            m.d.comb += cause.eq(Fault.UNDEFINED_BUFFER)
        with m.Elif(is_store & moves & ~insn.buffer_is(Buffer.OUT)):
            m.d.comb += cause.eq(Fault.UNDEFINED_BUFFER)
        with m.Elif(is_store & moves & padded):
            m.d.comb += cause.eq(Fault.STORE_PADDING)
        with m.Elif(is_alu & (insn.alu.alu_op > max(AluOp))):
            m.d.comb += cause.eq(Fault.UNDEFINED_ALU_OP)
        with m.Elif(executes & (loop.uop_end > machine.depth(Buffer.UOP))):
            m.d.comb += cause.eq(Fault.SRAM_RANGE)

        # ---- d + 2: the tile; no factor of an area that fits is larger than the memory -----------
        deepest = max(machine.depth(buffer) for buffer in Buffer)
        side = range(deepest + 2)
        depth = Signal(range(deepest + 1))
        for buffer in Buffer:
            with m.If(mem.buffer == int(buffer)):
                m.d.comb += depth.eq(machine.depth(buffer))
        late = Signal(data.StructLayout({"valid": 1, "moves": 1, "cause": 8, "insn": NUMBER_BITS}))
        height, width = Signal(side), Signal(side)
        base, limit = Signal(len(mem.sram_base)), Signal.like(depth)
        m.d.sync += [
            late.valid.eq(valid),
            late.moves.eq(moves),
            late.cause.eq(cause),
            late.insn.eq(number),
            height.eq(Mux(rows > depth, depth + 1, rows)),
            width.eq(Mux(columns > depth, depth + 1, columns)),
            base.eq(mem.sram_base),
            limit.eq(depth),
        ]

        # ---- d + 3: its end ---------------------------------------------------------------------
        area = height * width
        past = late.moves & (height != 0) & (base + area > limit)
        m.d.sync += [
            self.fault.valid.eq(late.valid & ((late.cause != Fault.NONE) | past)),
            self.fault.cause.eq(Mux(late.cause != Fault.NONE, late.cause, Const(Fault.SRAM_RANGE))),
            self.fault.insn.eq(late.insn),
        ]
        return m
