"""The arithmetic on accumulator scalars, with its results forwarded to its operands."""

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, enum, wiring
from amaranth.lib.wiring import In, Out

from vta_isa.enums import AluOp, Buffer
from vta_isa.insn import IMMEDIATE_BITS
from vta_isa.machine import Machine
from vta_isa.microarch import MUL_REGISTERS, mul_steps

from .wide_multiply import WideMultiply

FORWARDED = 3  # iterations whose results may not be in the memory yet when an operand is read
AMOUNT_BITS = 5  # SHR amounts beyond ±31 count as ±31, whatever the width of the accumulator


class Function(enum.IntEnum, shape=3):
    """What is computed; operations of the instruction set keep their numbers."""

    MIN = int(AluOp.MIN)
    MAX = int(AluOp.MAX)
    ADD = int(AluOp.ADD)
    SHR = int(AluOp.SHR)
    MUL = int(AluOp.MUL)
    GEMM = 6  # adds sums of products
    ZERO = 7  # GEMM with reset


class Source(enum.Enum, shape=2):
    """Where an operand comes from in the cycle before it is used."""

    MEMORY = 0
    IMMEDIATE = 1
    RESULT = 2  # the latest result in a register
    OLDER = 3  # the one before it


def step_layout(machine: Machine) -> data.StructLayout:
    """An iteration on its way to the ALU: where its result goes, where its operands come from.

    ``x_bypassed``, ``y_bypassed``: whatever the source, the operand is the result of the step of
    the cycle before. Only functions that take one cycle can be followed by such a step.
    """
    return data.StructLayout(
        {
            "valid": 1,
            "last": 1,
            "dst": machine.all_index_bits.acc,
            "x_from": Source,
            "y_from": Source,
            "x_bypassed": 1,
            "y_bypassed": 1,
        }
    )


class Operation(data.Struct):
    """A function, decoded: a lane's result is the bitwise or of what these let through."""

    extreme: 1  # MIN or MAX
    maximum: 1
    sum_: 1
    shift: 1
    add_sums: 1  # the second operand of the sum is GEMM's

    @staticmethod
    def of(function: Value) -> dict[str, Value]:
        """Field -> value."""
        return {
            "extreme": (function == Function.MIN) | (function == Function.MAX),
            "maximum": function == Function.MAX,
            "sum_": (function == Function.ADD) | (function == Function.GEMM),
            "shift": function == Function.SHR,
            "add_sums": function == Function.GEMM,
        }


class Amount(data.Struct):
    """A shift, ready for use: by how many bits, and which way."""

    left: 1
    bits: AMOUNT_BITS

    @staticmethod
    def of(y: Value) -> dict[str, Value]:
        """Field -> value, from an operand of any width: positive amounts go right."""
        low, high = y[:AMOUNT_BITS], y[AMOUNT_BITS:]
        left = y[-1]
        beyond = Mux(left, ~(high.all() & low.any()), high.any())
        bits = Mux(left, -low, low)[:AMOUNT_BITS]
        return {"left": left, "bits": bits | beyond.replicate(AMOUNT_BITS)}


class ScalarAlu(wiring.Component):
    """One lane, combinational: what ``operation`` makes of its operands, cut to their bits.

    One carry chain adds, and subtracts to compare. One shifter goes right; for shifts to the left
    its operand and its result are mirrored. ``product`` is let through: it is zero unless a
    multiplication is meant, and then ``operation`` is.
    """

    def __init__(self, bits: int):
        self.bits = bits
        super().__init__(
            {
                "operation": In(Operation),
                "x": In(signed(bits)),
                "y": In(signed(bits)),
                "sums": In(signed(bits)),
                "amount": In(Amount),
                "product": In(bits),
                "result": Out(signed(bits)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        operation, amount = self.operation, self.amount
        x, y, sums = (value.as_unsigned() for value in (self.x, self.y, self.sums))
        # x - y is x + ~y + 1; the one comes in at bit 0, one below the lowest of the operands.
        subtract = operation.extreme
        second = Mux(operation.add_sums, sums, y ^ subtract.replicate(self.bits))
        total = Signal(self.bits + 2)
        m.d.comb += total.eq(Cat(1, x, x[-1]) + Cat(subtract, second, second[-1]))
        less = total[-1]
        chosen_x = operation.extreme & (less ^ operation.maximum)
        chosen_y = operation.extreme & ~(less ^ operation.maximum)

        left = amount.left
        shifted = Signal(signed(self.bits + 1))
        mirrored = Mux(left, x[::-1], x)
        m.d.comb += shifted.eq(Cat(mirrored, x[-1] & ~left).as_signed() >> amount.bits)
        right_way = shifted[: self.bits]

        def let_through(value, condition):
            return value & condition.replicate(self.bits)

        m.d.comb += self.result.eq(
            let_through(total[1:-1], operation.sum_)
            | let_through(x, chosen_x)
            | let_through(y, chosen_y)
            | let_through(right_way, operation.shift & ~left)
            | let_through(right_way[::-1], operation.shift & left)
            | self.product
        )
        return m


class TensorAlu(wiring.Component):
    """Computes accumulator entries, one per cycle, or with MUL some lanes per cycle.

    ``step`` in cycle n with ``function``, ``imm``, ``x`` and ``y``, its operands as the memory has
    them; ``sums`` in n + 1. In cycle n + 1 the step is executed, and ``executed`` is high. In the
    cycle after that ``written``, ``index`` and ``result`` are there, from registers. ``last``: it
    is the last step. MUL is executed ``mul_steps`` + MUL_REGISTERS - 1 cycles later; ``function``
    stays as long, and the next step comes when the result is there, or later.

    Operands are registered at the end of n, where the step says so as one of the two latest
    results. So what has to fit into a cycle is one function, from its result to its first operand.
    The second operand can be the result of the cycle before only where
    ``alu.tensor_interval`` is 1; otherwise it is known in n, and a shift's amount is worked out
    there.
    """

    def __init__(self, machine: Machine):
        self.machine = machine
        entry = machine.entry_bits(Buffer.ACC)
        super().__init__(
            {
                "step": In(step_layout(machine)),
                "function": In(Function),
                "imm": In(signed(IMMEDIATE_BITS)),
                "x": In(entry),
                "y": In(entry),
                "sums": In(entry),
                "executed": Out(1),
                "last": Out(1),
                "written": Out(1),
                "index": Out(machine.all_index_bits.acc),
                "result": Out(entry),
            }
        )

    def elaborate(self, platform):
        m = Module()
        bits = self.machine.bits(Buffer.ACC)
        count = len(self.x) // bits
        bypass_y = self.machine.alu.tensor_interval == 1
        older = Signal.like(self.result)

        # ---- n: operands ------------------------------------------------------------------------
        step = self.step
        constant = sign_extended(self.imm, len(self.x), bits)
        next_x, next_y = Signal.like(self.x), Signal.like(self.y)
        x_from, y_from = Value.cast(step.x_from), Value.cast(step.y_from)
        m.d.comb += [
            next_x.eq(Mux(x_from[1], Mux(x_from[0], older, self.result), self.x)),
            next_y.eq(Array([self.y, constant, self.result, older])[y_from]),
        ]
        now = Signal(step_layout(self.machine))
        x, y = Signal.like(self.x), Signal.like(self.y)
        operation = Signal(Operation)
        multiply = Signal()
        with m.If(step.valid):
            m.d.sync += [now.eq(step), x.eq(next_x), y.eq(next_y)]
        m.d.sync += [
            now.valid.eq(step.valid),
            *(operation[field].eq(value) for field, value in Operation.of(self.function).items()),
            multiply.eq(self.function == Function.MUL),
        ]

        # ---- n + 1: execute ---------------------------------------------------------------------
        now_x = Mux(now.x_bypassed, self.result, x)
        now_y = Mux(now.y_bypassed, self.result, y) if bypass_y else y
        products, turns = self._multiply(m, now.valid & multiply, x, y)
        m.d.comb += [
            self.executed.eq(Mux(multiply, turns[-1], now.valid)),
            self.last.eq(now.last),
        ]
        m.d.sync += self.written.eq(self.executed)
        with m.If(self.executed):
            m.d.sync += self.index.eq(now.dst)
        with m.If(now.valid):
            m.d.sync += older.eq(self.result)
        for i in range(count):
            m.submodules[f"lane{i}"] = lane = ScalarAlu(bits)
            amount = Signal(Amount, name=f"amount{i}")
            if bypass_y:
                decoded = Amount.of(now_y.word_select(i, bits))
                m.d.comb += [amount[field].eq(value) for field, value in decoded.items()]
            else:
                decoded = Amount.of(next_y.word_select(i, bits))
                with m.If(step.valid):
                    m.d.sync += [amount[field].eq(value) for field, value in decoded.items()]
            m.d.comb += [
                lane.operation.eq(operation),
                lane.x.eq(now_x.word_select(i, bits)),
                lane.y.eq(now_y.word_select(i, bits)),
                lane.sums.eq(self.sums.word_select(i, bits)),
                lane.amount.eq(amount),
                lane.product.eq(products[i % len(products)]),
            ]
            with m.If(Mux(multiply, turns[i // len(products)], now.valid)):
                m.d.sync += self.result.word_select(i, bits).eq(lane.result)
        return m

    def _multiply(self, m: Module, start: Value, x: Value, y: Value):
        """The products of some lanes at a time, and whose turn it is; else they are zero.

        x and y stay from the cycle of ``start``, k, until the last turn, which is in
        k + ``mul_steps`` - 1 + MUL_REGISTERS.
        """
        bits = self.machine.bits(Buffer.ACC)
        steps = mul_steps(self.machine)
        lanes = len(x) // bits // steps
        number = Signal(range(steps)) if steps > 1 else Const(0, 1)
        if steps > 1:
            m.d.sync += number.eq(Mux(start | (number != 0), number + 1, 0))
        passed = Signal(steps + MUL_REGISTERS - 1)  # bit i: `start` was i + 1 cycles ago
        m.d.sync += passed.eq(Cat(start, passed[:-1]))
        turns = passed[MUL_REGISTERS - 1 :]
        before_turn = passed[MUL_REGISTERS - 2 : -1].any()
        products = []
        for i in range(lanes):
            m.submodules[f"multiply{i}"] = multiply = WideMultiply(bits)
            for operand, entry in ((multiply.x, x), (multiply.y, y)):
                mine = [entry.word_select(step * lanes + i, bits) for step in range(steps)]
                m.d.comb += operand.eq(Array(mine)[number])
            m.d.comb += multiply.gate.eq(before_turn)
            products.append(multiply.product)
        return products, turns


def sign_extended(imm, entry_bits: int, bits: int):
    """An entry with the immediate in every scalar."""
    return Cat([Cat(imm, imm[-1].replicate(bits - len(imm)))] * (entry_bits // bits))


assert set(AluOp) <= {int(op) for op in Function}, "the ALU lacks an operation"
