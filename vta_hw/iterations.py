"""Turns a GEMM or ALU instruction into its uop iterations."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from vta_isa.enums import AluOp, FusedOp, Opcode
from vta_isa.insn import INSN_BITS, UOP_BITS, layouts
from vta_isa.machine import Machine
from vta_isa.microarch import alu_interval

from .layouts import Views, struct

LOOP_BITS = 14


def iteration_layout(machine: Machine) -> data.StructLayout:
    """One cycle of the index generator.

    ``valid``: an iteration is issued in this cycle; ``early``: its indices are there, one cycle
    before it (where iterations take several cycles); ``last``: it is the last of the instruction.
    ``bias``, of machines with REQUANTIZE: src is that of a bias, no iteration.
    """
    bits = machine.all_index_bits
    return data.StructLayout(
        {
            **({"bias": 1} if machine.extensions.alu_requantize else {}),
            "valid": 1,
            "early": 1,
            "last": 1,
            "dst": bits.acc,
            "src": max(bits.acc, bits.inp),
            "wgt": bits.wgt,
        }
    )


class Past(wiring.Signature):
    """With ``item``: its index is past the end of the memory; src as an index of ACC and of INP."""

    def __init__(self):
        super().__init__({name: Out(1) for name in ("dst", "src_acc", "src_inp", "wgt")})


class Iterations(wiring.Component):
    """Issues one uop iteration per cycle: uop fastest, then the inner loop, then the outer one.

    ``start`` in cycle s takes ``insn``, which must have iterations (``any``, combinational). The
    first uop is read in s + 1 (``uop_index``), ``uop`` is its word in s + 2, and ``item`` carries
    its indices in s + 3, from a register. An ALU operation on two tensors is issued in the last
    cycle of every ``alu.tensor_interval``, MUL in the second cycle of every ``mul_interval``. Where
    REQUANTIZE has a bias, a cycle for it comes before the iterations of every outer iteration.
    """

    def __init__(self, machine: Machine):
        self.machine = machine
        super().__init__(
            {
                "start": In(1),
                "insn": In(INSN_BITS),
                "any": Out(1),
                "uop_index": Out(machine.all_index_bits.uop),
                "uop": In(UOP_BITS),
                "item": Out(iteration_layout(machine)),
                "past": Out(Past()),
            }
        )

    def elaborate(self, platform):
        m = Module()
        machine = self.machine
        words = layouts(machine)
        insn = Views(words, self.insn)
        loop = insn.gemm  # GEMM and ALU share the fields of the loops
        uop = data.View(struct(words.uop), self.uop)
        is_alu = insn.is_(Opcode.ALU)
        use_imm = insn.alu.use_imm
        multiply = is_alu & (insn.alu.alu_op == AluOp.MUL)
        fused = None
        tensors = is_alu & ~use_imm  # in a cycle of its own each
        if machine.extensions.alu_requantize:
            fused = is_alu & (insn.alu.alu_op == FusedOp.REQUANTIZE)
            tensors &= ~fused
        # Last cycle of an iteration's interval, counted from 0.
        last_of = {
            op: alu_interval(machine, op, use_imm=False) - 1 for op in (AluOp.ADD, AluOp.MUL)
        }

        m.d.comb += self.any.eq(
            (is_alu | insn.is_(Opcode.GEMM))
            & (loop.uop_begin < loop.uop_end)
            & (loop.iter_out != 0)
            & (loop.iter_in != 0)
        )

        # ---- s + 1: three nested counters and the offsets that belong to them -------------------
        operands = ("dst", "src", "wgt")
        width = {operand: len(getattr(self.item, operand)) for operand in operands}
        active = Signal()
        phase = Signal(range(max(last_of.values()) + 1))
        issued_at, last_phase = Signal.like(phase), Signal.like(phase)
        begin, end = Signal(len(loop.uop_begin)), Signal(len(loop.uop_begin))  # first and last uop
        inner_left, outer_left = Signal(LOOP_BITS), Signal(LOOP_BITS)
        inner_count = Signal(LOOP_BITS)
        with_bias, bias = Signal(), Const(0) if fused is None else Signal()
        step_in = {operand: Signal(width[operand], name=f"{operand}_in") for operand in operands}
        step_out = {operand: Signal(width[operand], name=f"{operand}_out") for operand in operands}
        # One bit more than an index has: once it is set it stays, the offset is past every end.
        row = {o: Signal(width[o] + 1, name=f"{o}_row") for o in operands}
        offset = {o: Signal(width[o] + 1, name=f"{o}_at") for o in operands}
        next_row = {o: Signal(width[o] + 1, name=f"{o}_next") for o in operands}

        def moved(place, step):
            total = place[:-1] + step
            return Cat(total[: len(step)], total[-1] | place[-1])

        issue, early, move_on = Signal(), Signal(), Signal()
        last_uop, last_inner, last = Signal(), Signal(), Signal()
        m.d.comb += [
            issue.eq(active & (phase == issued_at)),
            early.eq(active & (phase + 1 == issued_at)),
            move_on.eq(active & (phase == last_phase) & ~bias),
        ]
        if fused is not None:
            m.d.sync += bias.eq(with_bias & move_on & last_inner)
        with m.If(active & ~bias):
            m.d.sync += phase.eq(Mux(move_on, 0, phase + 1))
        m.d.comb += [
            last_uop.eq(self.uop_index == end),
            last_inner.eq(last_uop & (inner_left == 1)),
            last.eq(last_inner & (outer_left == 1)),
            *(next_row[o].eq(moved(row[o], step_out[o])) for o in operands),
        ]
        with m.If(move_on):
            m.d.sync += self.uop_index.eq(self.uop_index + 1)
            with m.If(last_uop):
                m.d.sync += [self.uop_index.eq(begin), inner_left.eq(inner_left - 1)]
                m.d.sync += [offset[o].eq(moved(offset[o], step_in[o])) for o in operands]
            with m.If(last_inner):
                m.d.sync += [inner_left.eq(inner_count), outer_left.eq(outer_left - 1)]
                for o in operands:
                    m.d.sync += [row[o].eq(next_row[o]), offset[o].eq(next_row[o])]
            with m.If(last):
                m.d.sync += active.eq(0)
        src_in = Mux(is_alu, insn.alu.src_factor_in, loop.src_factor_in)
        if fused is not None:
            src_in = Mux(fused, 0, src_in)  # other fields are in its place
            with m.If(self.start):
                m.d.sync += [bias.eq(fused & ~use_imm), with_bias.eq(fused & ~use_imm)]
        with m.If(self.start):
            m.d.sync += active.eq(1)
        with m.If(~active):  # with the start, too, which is there late in its cycle
            m.d.sync += [
                phase.eq(0),
                issued_at.eq(Mux(multiply, 1, Mux(tensors, last_of[AluOp.ADD], 0))),
                last_phase.eq(
                    Mux(multiply, last_of[AluOp.MUL], Mux(tensors, last_of[AluOp.ADD], 0))
                ),
                self.uop_index.eq(loop.uop_begin),
                begin.eq(loop.uop_begin),
                end.eq(loop.uop_end - 1),
                inner_left.eq(loop.iter_in),
                inner_count.eq(loop.iter_in),
                outer_left.eq(loop.iter_out),
                step_in["dst"].eq(loop.dst_factor_in),
                step_out["dst"].eq(loop.dst_factor_out),
                step_in["src"].eq(src_in),
                step_out["src"].eq(Mux(is_alu, insn.alu.src_factor_out, loop.src_factor_out)),
                step_in["wgt"].eq(loop.wgt_factor_in),
                step_out["wgt"].eq(loop.wgt_factor_out),
                *(row[o].eq(0) for o in operands),
                *(offset[o].eq(0) for o in operands),
            ]

        # ---- s + 2: the uop's word is there; s + 3: the sums ------------------------------------
        flags = Signal(data.StructLayout({"valid": 1, "early": 1, "last": 1}))
        at = {o: Signal(width[o] + 1, name=f"{o}_offset") for o in operands}
        index = {o: Signal(width[o] + 1, name=f"{o}_index") for o in operands}
        m.d.sync += [
            flags.valid.eq(issue),
            flags.early.eq(early),
            flags.last.eq(last),
            *(at[o].eq(offset[o]) for o in operands),
            self.item.valid.eq(flags.valid),
            self.item.early.eq(flags.early),
            self.item.last.eq(flags.last),
            *(index[o].eq(moved(at[o], uop[o])) for o in operands),
        ]
        if fused is not None:
            was_bias = Signal()
            m.d.sync += [was_bias.eq(bias), self.item.bias.eq(was_bias)]
            with m.If(bias):
                m.d.sync += flags.last.eq(0)
        bits = machine.all_index_bits
        m.d.comb += [
            *(self.item[o].eq(index[o]) for o in operands),
            self.past.dst.eq(index["dst"][bits.acc :].any()),
            self.past.src_acc.eq(index["src"][bits.acc :].any()),
            self.past.src_inp.eq(index["src"][bits.inp :].any()),
            self.past.wgt.eq(index["wgt"][bits.wgt :].any()),
        ]
        return m
