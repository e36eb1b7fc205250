"""The ALU of accumulators with its forwarding, against the reference's arithmetic."""

from dataclasses import dataclass

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge
from packed import pack
from small_machines import machine_of
from support import drive, parameters, random_of, start

from simulator.reference import alu_result, requantized, wrap
from vta_hw.alu import Function, Source, step_layout
from vta_isa.enums import AluOp, Buffer, LowKind
from vta_isa.microarch import mul_interval
from vta_isa.tensors import pack_entries, unpack_entries

MACHINE = machine_of(parameters()["machine"])
LAYOUT = step_layout(MACHINE)
BITS = MACHINE.bits(Buffer.ACC)
SIZE = MACHINE.entry_bytes(Buffer.ACC)
CYCLES = 1500
DELAY = 2  # from a step to its result
FUSED_DELAY = 4
FUSED = MACHINE.extensions.alu_requantize
FUNCTIONS = [f for f in Function if FUSED or f != Function.REQUANTIZE]


@dataclass
class Result:
    """``cycle``: the first in which it is in a register."""

    cycle: int
    index: int
    values: np.ndarray
    last: bool
    about: str


def entry(rng: np.random.Generator):
    low, high = -(1 << BITS - 1), (1 << BITS - 1) - 1
    shape = MACHINE.entry_shape(Buffer.ACC)
    edges = [low, low + 1, high, 0, 1, -1, 31, -31, 32, -32, 33, -33]
    choices = rng.choice(edges, shape), rng.integers(-40, 40, shape)
    return (*choices, rng.integers(low, high, shape, endpoint=True))[rng.integers(3)]


def number(scalars) -> int:
    packed = pack_entries(scalars[None].astype(MACHINE.dtype(Buffer.ACC)), Buffer.ACC, MACHINE)
    return int.from_bytes(packed.tobytes(), "little")


def value(function: Function, x, y, sums):
    if function == Function.ZERO:
        return np.zeros_like(x)
    op, second = (AluOp.ADD, sums) if function == Function.GEMM else (AluOp(int(function)), y)
    return wrap(alu_result(op, x.astype(np.int64), second.astype(np.int64)), BITS)


class Steps:
    """Makes steps, and knows what the latest results are."""

    def __init__(self, rng: np.random.Generator):
        self.rng = rng
        self.results: list[Result] = []
        self.sources: list[Result] = []  # what may be an operand
        self.pending = None  # a step that gets its sums in the next cycle

    def ready(self, cycle: int) -> list[Result]:
        """Those in registers, latest first."""
        return [result for result in reversed(self.sources) if result.cycle <= cycle]

    def operand(self, cycle: int, may_bypass: bool, immediate, given):
        """Source, whether bypassed, and the value."""
        results = self.ready(cycle)
        sources = {Source.MEMORY: given}
        if immediate is not None:
            sources[Source.IMMEDIATE] = immediate
        if len(results) > 1:
            sources |= {Source.RESULT: results[0].values, Source.OLDER: results[1].values}
        source = list(sources)[self.rng.integers(len(sources))]
        if may_bypass and self.sources and self.rng.random() < 0.4:
            return source, 1, self.sources[-1].values
        return source, 0, sources[source]

    def make(self, cycle: int, function: Function, imm: int, given) -> int:
        """A step of this cycle, as the component takes it."""
        x, y = given
        multiply = function == Function.MUL
        constant = np.full_like(x, imm)
        x_from, x_bypassed, x = self.operand(cycle, not multiply, None, x)
        may_bypass = MACHINE.alu.tensor_interval == 1 and not multiply
        y_from, y_bypassed, y = self.operand(cycle, may_bypass, constant, y)
        index = int(self.rng.integers(MACHINE.depth(Buffer.ACC)))
        last = bool(self.rng.integers(2))
        delay = mul_interval(MACHINE) if multiply else DELAY
        self.pending = function, x, y, Result(cycle + delay, index, x, last, "")
        return pack(
            LAYOUT,
            **{"valid": 1, "last": last, "dst": index},
            **{"x_from": x_from.value, "x_bypassed": x_bypassed},
            **{"y_from": y_from.value, "y_bypassed": y_bypassed},
        )

    def add_sums(self, sums) -> None:
        if self.pending is not None:
            function, x, y, result = self.pending
            result.values = value(function, x, y, sums)
            result.about = f"{function.name} {x} {y} {sums}"
            self.results.append(result)
            self.sources.append(result)
            self.pending = None


class Requantize:
    """The steps of one REQUANTIZE, and the inputs that stay while it runs."""

    def __init__(self, steps: Steps):
        self.steps, rng = steps, steps.rng
        self.left = int(rng.integers(1, 7))
        steps.sources = []  # sums, and no results, are in the registers now
        self.bias = None
        self.bias_in = -1  # cycle in which it is at y
        self.inputs = {
            "biased": int(rng.integers(2)),
            "shift": int(rng.integers(32)) >> int(rng.integers(4)),
            "high": int(rng.integers(1 << 15)) >> int(rng.integers(16)),
            "low_kind": int(rng.choice(list(LowKind))),
        }

    def take_bias(self, cycle: int, y) -> None:
        if cycle == self.bias_in:
            self.bias = y.astype(np.int64)

    def make(self, cycle: int, imm: int, x, y) -> int:
        rng, biased = self.steps.rng, self.inputs["biased"]
        index, last = int(rng.integers(MACHINE.depth(Buffer.ACC))), bool(rng.integers(2))
        is_bias = bool(biased) and (self.bias_in < 0 or rng.random() < 0.2)
        if is_bias:
            self.bias_in = cycle + (MACHINE.alu.tensor_interval > 1)
            self.take_bias(cycle, y)
        else:
            added = self.bias if biased else np.int64(imm)
            values = requantized(self.inputs, x, added, MACHINE)
            about = f"REQUANTIZE {self.inputs} {x} {added}"
            self.steps.results.append(Result(cycle + FUSED_DELAY, index, values, last, about))
            self.left -= 1
        source = Source.MEMORY if biased else Source.IMMEDIATE
        return pack(LAYOUT, valid=1, last=last, dst=index, y_from=source.value, bias=is_bias)


@cocotb.test()
async def computes_and_forwards(dut):
    rng = np.random.default_rng(random_of("alu").getrandbits(32))
    fused_inputs = dict.fromkeys(("biased", "shift", "high", "low_kind"), 0) if FUSED else {}
    await start(dut, step=0, function=0, imm=0, x=0, y=0, sums=0, **fused_inputs)
    steps = Steps(rng)
    function, free, fused = Function.ADD, 0, None
    for cycle in range(CYCLES):
        sums = entry(rng)
        steps.add_sums(sums)  # of the step of the cycle before
        x, y = entry(rng), entry(rng)
        imm = int(rng.integers(-(1 << 15), 1 << 15)) >> int(rng.integers(16))
        step = pack(LAYOUT, dst=0)
        if fused is not None and fused.left:
            fused.take_bias(cycle, y)
            if rng.random() < 0.8:
                step = fused.make(cycle, imm, x, y)
                free = cycle + FUSED_DELAY
        elif cycle >= free:
            function = Function(int(rng.choice(FUNCTIONS)))
            free = cycle + 1
            # Both need the results before them in registers, and time.
            settled = all(result.cycle <= cycle for result in steps.results)
            if function in (Function.MUL, Function.REQUANTIZE) and not settled:
                function = Function.ADD
            if function == Function.REQUANTIZE:
                fused = Requantize(steps)
                drive(dut, **fused.inputs)
            elif rng.random() < 0.8:
                step = steps.make(cycle, function, imm, (x, y))
                if function == Function.MUL:
                    free = cycle + mul_interval(MACHINE)
        drive(dut, step=step, function=int(function), imm=imm & 0xFFFF)
        drive(dut, x=number(x), y=number(y), sums=number(sums))
        await RisingEdge(dut.clk)
        wanted = [result for result in steps.results if result.cycle == cycle]
        soon = [result for result in steps.results if result.cycle == cycle + 1]
        assert int(dut.written.value) == len(wanted), f"{cycle=}"
        assert int(dut.executed.value) == len(soon), f"{cycle=}"
        for result in soon:
            assert int(dut.last.value) == result.last, f"{cycle=}"
        for result in wanted:
            raw = int(dut.result.value).to_bytes(SIZE, "little")
            got = unpack_entries(np.frombuffer(raw, dtype=np.uint8), Buffer.ACC, MACHINE)[0]
            about = f"{cycle=} {result.about}"
            np.testing.assert_array_equal(got, result.values, err_msg=about)
            assert int(dut.index.value) == result.index, about
    done = {result.about.split()[0] for result in steps.results}
    assert done == {function.name for function in FUNCTIONS}
