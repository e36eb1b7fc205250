"""The arithmetic on accumulator scalars, with its results forwarded to its operands."""

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, enum, wiring
from amaranth.lib.wiring import In, Out

from vta_isa.enums import AluOp, Buffer, FusedOp
from vta_isa.insn import IMMEDIATE_BITS
from vta_isa.machine import Machine
from vta_isa.microarch import MUL_REGISTERS, mul_steps

from .clip import HIGH_BITS, Bounds, Clip
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
    REQUANTIZE = int(FusedOp.REQUANTIZE)
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
    the cycle before. Only functions that take one cycle can be followed by such a step. ``bias``,
    of machines with REQUANTIZE: y is the bias of the steps that follow, nothing is written.
    """
    return data.StructLayout(
        {
            **({"bias": 1} if machine.extensions.alu_requantize else {}),
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
            "sum_": (function == Function.ADD)
            | (function == Function.GEMM)
            | (function == Function.REQUANTIZE),
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
    multiplication is meant, and then ``operation`` is. ``shift_x`` is x, unless the sum and the
    shift (``shifted``, to the right) are not of the same step.
    """

    def __init__(self, bits: int):
        self.bits = bits
        super().__init__(
            {
                "operation": In(Operation),
                "x": In(signed(bits)),
                "shift_x": In(signed(bits)),
                "y": In(signed(bits)),
                "sums": In(signed(bits)),
                "amount": In(Amount),
                "product": In(bits),
                "result": Out(signed(bits)),
                "shifted": Out(signed(bits)),
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

        left, shift_x = amount.left, self.shift_x.as_unsigned()
        shifted = Signal(signed(self.bits + 1))
        mirrored = Mux(left, shift_x[::-1], shift_x)
        m.d.comb += shifted.eq(Cat(mirrored, shift_x[-1] & ~left).as_signed() >> amount.bits)
        right_way = shifted[: self.bits]
        m.d.comb += self.shifted.eq(right_way)

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

    REQUANTIZE takes three cycles: x is added to y, the sum is shifted by ``shift``, and clipped. No
    other step can have its result as an operand; it is executed in n + 3. ``function`` and the
    inputs that only it has stay. With ``biased``, y is registered in steps with ``bias`` alone,
    which do nothing else; where ``alu.tensor_interval`` is not 1, a cycle later, as memories have
    one read port then. ``y_from`` is that of the same cycle.
    """

    def __init__(self, machine: Machine):
        self.machine = machine
        entry = machine.entry_bits(Buffer.ACC)
        self.fused = machine.extensions.alu_requantize
        only_fused = {
            "biased": In(1),
            "shift": In(AMOUNT_BITS),
            "high": In(HIGH_BITS),
            "low_kind": In(2),
        }
        super().__init__(
            {
                **(only_fused if self.fused else {}),
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
        latest = Signal.like(self.result) if self.fused else self.result
        older = Signal.like(self.result)

        # ---- n: operands ------------------------------------------------------------------------
        step = self.step
        constant = sign_extended(self.imm, len(self.x), bits)
        next_x, next_y = Signal.like(self.x), Signal.like(self.y)
        x_from, y_from = Value.cast(step.x_from), Value.cast(step.y_from)
        m.d.comb += [
            next_x.eq(Mux(x_from[1], Mux(x_from[0], older, latest), self.x)),
            next_y.eq(Array([self.y, constant, latest, older])[y_from]),
        ]
        now = Signal(step_layout(self.machine))
        x, y = Signal.like(self.x), Signal.like(self.y)
        operation = Signal(Operation)
        multiply, requantize = Signal(), Signal()
        to_requantize = self.function == Function.REQUANTIZE
        with m.If(step.valid):
            m.d.sync += [now.eq(step), x.eq(next_x)]
        new_y = step.valid
        if self.fused:
            new_bias = step.valid & step.bias if bypass_y else now.valid & now.bias
            new_y = Mux(to_requantize & self.biased, new_bias, step.valid)
        with m.If(new_y):
            m.d.sync += y.eq(next_y)
        m.d.sync += [
            now.valid.eq(step.valid),
            *(operation[field].eq(value) for field, value in Operation.of(self.function).items()),
            multiply.eq(self.function == Function.MUL),
            requantize.eq(to_requantize),
        ]

        # ---- n + 1: execute ---------------------------------------------------------------------
        now_x = Mux(now.x_bypassed, latest, x)
        now_y = Mux(now.y_bypassed, latest, y) if bypass_y else y
        products, turns = self._multiply(m, now.valid & multiply, x, y)
        done, executed = now, Mux(multiply, turns[-1], now.valid)
        if self.fused:
            summed, shifted = Signal.like(now), Signal.like(now)
            m.d.sync += [
                summed.eq(now),
                summed.valid.eq(now.valid & requantize & ~now.bias),
                shifted.eq(summed),
            ]
            done = data.View(now.shape(), Mux(requantize, shifted, now))
            executed = Mux(requantize, shifted.valid, executed)
        m.d.comb += [self.executed.eq(executed), self.last.eq(done.last)]
        m.d.sync += self.written.eq(executed)
        with m.If(executed):
            m.d.sync += self.index.eq(done.dst)
        with m.If(now.valid):
            m.d.sync += older.eq(latest)
        lanes = []
        for i in range(count):
            m.submodules[f"lane{i}"] = lane = ScalarAlu(bits)
            lanes.append(lane)
            amount = Signal(Amount, name=f"amount{i}")
            if bypass_y:
                m.d.comb += self._set(amount, now_y.word_select(i, bits), requantize)
            else:
                with m.If(step.valid):
                    m.d.sync += self._set(amount, next_y.word_select(i, bits), to_requantize)
            m.d.comb += [
                lane.operation.eq(operation),
                lane.x.eq(now_x.word_select(i, bits)),
                lane.shift_x.eq(lane.x),
                lane.y.eq(now_y.word_select(i, bits)),
                lane.sums.eq(self.sums.word_select(i, bits)),
                lane.amount.eq(amount),
                lane.product.eq(products[i % len(products)]),
            ]
            with m.If(Mux(multiply, turns[i // len(products)], now.valid)):
                m.d.sync += latest.word_select(i, bits).eq(lane.result)
        if self.fused:
            shifts_latest = Signal()
            with m.If(step.valid):
                m.d.sync += shifts_latest.eq(step.x_bypassed | to_requantize)
            self._requantize(m, lanes, requantize, Mux(shifts_latest, latest, x), latest)
        return m

    def _set(self, amount: Signal, y: Value, requantize: Value):
        fields = Amount.of(y)
        if self.fused:
            fields["left"] &= ~requantize
            fields["bits"] = Mux(requantize, self.shift, fields["bits"])
        return [amount[field].eq(value) for field, value in fields.items()]

    def _requantize(self, m: Module, lanes, requantize: Value, shift_x: Value, latest) -> None:
        """The cycles behind the sum, which is in ``latest``: it is shifted, then clipped.

        ``shift_x`` is not the lane's x with one more source, which would lengthen the loop.
        """
        bounds = Signal(Bounds)
        decoded = Bounds.of(self.high, self.low_kind)
        m.d.sync += [bounds[field].eq(value) for field, value in decoded.items()]
        for i, lane in enumerate(lanes):
            m.submodules[f"clip{i}"] = clip = Clip(lane.bits)
            shifted, clipped = Signal(lane.bits), Signal(lane.bits)
            place = (i, lane.bits)
            m.d.comb += [
                lane.shift_x.eq(shift_x.word_select(*place)),
                clip.bounds.eq(bounds),
                clip.value.eq(shifted),
                self.result.word_select(*place).eq(
                    Mux(requantize, clipped, latest.word_select(*place))
                ),
            ]
            m.d.sync += [shifted.eq(lane.shifted), clipped.eq(clip.result)]

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
