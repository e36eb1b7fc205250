"""The arithmetic on accumulator scalars, with its results forwarded to its operands."""

from amaranth.hdl import Array, Cat, Module, Mux, Signal, signed
from amaranth.lib import data, enum, wiring
from amaranth.lib.wiring import In, Out

from vta_isa.enums import AluOp, Buffer
from vta_isa.machine import Machine

MAX_SHIFT = 31  # SHR amounts beyond ±31 count as ±31, whatever the width of the accumulator
FORWARDED = 3  # iterations whose results may not be in the memory yet when an operand is read


class Function(enum.IntEnum, shape=3):
    """What is computed; operations of the instruction set keep their numbers."""

    MIN = int(AluOp.MIN)
    MAX = int(AluOp.MAX)
    ADD = int(AluOp.ADD)  # also GEMM
    SHR = int(AluOp.SHR)
    MUL = int(AluOp.MUL)
    ZERO = 7  # GEMM with reset


class ScalarAlu(wiring.Component):
    """One lane, combinational: ``result`` is the function of ``x`` and ``y``, cut to their bits."""

    def __init__(self, bits: int):
        self.bits = bits
        super().__init__(
            {
                "function": In(Function),
                "x": In(signed(bits)),
                "y": In(signed(bits)),
                "result": Out(signed(bits)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        x, y = self.x, self.y
        amount = Signal(signed(6))
        with m.If(y > MAX_SHIFT):
            m.d.comb += amount.eq(MAX_SHIFT)
        with m.Elif(y < -MAX_SHIFT):
            m.d.comb += amount.eq(-MAX_SHIFT)
        with m.Else():
            m.d.comb += amount.eq(y)
        left = Signal(5)
        m.d.comb += left.eq(-amount)
        with m.Switch(self.function):
            with m.Case(Function.MIN):
                m.d.comb += self.result.eq(Mux(x < y, x, y))
            with m.Case(Function.MAX):
                m.d.comb += self.result.eq(Mux(x < y, y, x))
            with m.Case(Function.ADD):
                m.d.comb += self.result.eq(x + y)
            with m.Case(Function.SHR):
                right = x >> amount[:5]
                m.d.comb += self.result.eq(Mux(amount < 0, x << left, right))
            with m.Case(Function.MUL):
                m.d.comb += self.result.eq(x * y)
            with m.Default():
                m.d.comb += self.result.eq(0)
        return m


def step_layout(machine: Machine) -> data.StructLayout:
    """An iteration on its way to the ALU: where its result goes, where its operands come from.

    ``dst_from`` and ``src_from`` are 0 for the memory, i for the result of the i-th iteration
    before.
    """
    return data.StructLayout(
        {
            "valid": 1,
            "last": 1,
            "dst": machine.all_index_bits.acc,
            "dst_from": range(FORWARDED + 1),
            "src_from": range(FORWARDED + 1),
        }
    )


class TensorAlu(wiring.Component):
    """Computes one accumulator entry per cycle.

    ``step``, ``function``, ``x`` and ``y`` in cycle n; ``written``, ``index`` and ``result`` from
    registers in n + 1. Where the step says so, ``x`` or ``y`` is replaced by one of the last
    results.
    """

    def __init__(self, machine: Machine):
        self.machine = machine
        entry = machine.entry_bits(Buffer.ACC)
        super().__init__(
            {
                "step": In(step_layout(machine)),
                "function": In(Function),
                "x": In(entry),
                "y": In(entry),
                "written": Out(1),
                "index": Out(machine.all_index_bits.acc),
                "result": Out(entry),
            }
        )

    def elaborate(self, platform):
        m = Module()
        bits = self.machine.bits(Buffer.ACC)
        results = [self.result, *(Signal.like(self.result, name=f"result{i}") for i in (2, 3))]
        x, y = Signal.like(self.x), Signal.like(self.y)
        m.d.comb += [
            x.eq(Array([self.x, *results])[self.step.dst_from]),
            y.eq(Array([self.y, *results])[self.step.src_from]),
        ]
        lanes = []
        for i in range(len(x) // bits):
            m.submodules[f"lane{i}"] = lane = ScalarAlu(bits)
            m.d.comb += [
                lane.function.eq(self.function),
                lane.x.eq(x.word_select(i, bits)),
                lane.y.eq(y.word_select(i, bits)),
            ]
            lanes.append(lane.result)
        m.d.sync += [self.written.eq(self.step.valid), self.index.eq(self.step.dst)]
        with m.If(self.step.valid):
            m.d.sync += Cat(results).eq(Cat(*lanes, *results[:-1]))
        return m


def sign_extended(imm, entry_bits: int, bits: int):
    """An entry with the immediate in every scalar."""
    return Cat([Cat(imm, imm[-1].replicate(bits - len(imm)))] * (entry_bits // bits))
