"""ALU: one function per operation and kind of operand.

Iterations keep their order, because an operation may read what an earlier one wrote (reductions
have a destination factor of 0; shifts of overlapping ranges work in place). Only the lanes of one
entry run together.
"""

from collections.abc import Iterator

from vta_isa.enums import AluOp

from .emit_registers import wrap
from .emit_uops import LOOPS, factors, load_uop, uop_field
from .ir import Function, constant
from .layouts import Layout

MAX_LANES = 64  # of one vector operation; wider entries are a loop
MAX_SHIFT = 31  # amounts beyond count as this


def alu_name(op: AluOp, immediate: bool) -> str:
    return f"alu_{op.name.lower()}_{'imm' if immediate else 'acc'}"


def alu_params(immediate: bool) -> dict[str, str]:
    operands = {"imm": "i32"} if immediate else factors("src")
    return {"uop": "ptr", "acc": "ptr", **LOOPS, **factors("dst"), **operands}


def emit_alu(layout: Layout) -> Iterator[Function]:
    for op in AluOp:
        for immediate in (False, True):
            yield _emit_operation(layout, op, immediate)


def _emit_operation(layout: Layout, op: AluOp, immediate: bool) -> Function:
    fn = Function(alu_name(op, immediate), alu_params(immediate))
    scalars = layout.batch * layout.block_out
    lanes = min(scalars, MAX_LANES)
    vector = f"<{lanes} x i32>"
    constant_operand = _operand(fn, op, lanes, fn.splat(lanes, "i32", "%imm")) if immediate else ()

    with fn.loop("%iter_out") as i, fn.loop("%iter_in") as j:
        dst_loops = fn.add(fn.mul(i, "%dst_out"), fn.mul(j, "%dst_in"))
        src_loops = "" if immediate else fn.add(fn.mul(i, "%src_out"), fn.mul(j, "%src_in"))
        with fn.loop("%uop_end", start="%uop_begin") as number:
            uop = load_uop(fn, number)
            dst = fn.add(uop_field(fn, layout, uop, "dst"), dst_loops)
            x_entry = fn.entry("%acc", dst, layout.acc_bytes)
            y_entry = ""
            if not immediate:
                src = fn.add(uop_field(fn, layout, uop, "src"), src_loops)
                y_entry = fn.entry("%acc", src, layout.acc_bytes)
            with fn.loop(scalars // lanes) as part:
                place = fn.entry(x_entry, part, lanes * 4)
                x = fn.load(vector, place)
                operand = constant_operand
                if not immediate:
                    y = fn.load(vector, fn.entry(y_entry, part, lanes * 4))
                    operand = _operand(fn, op, lanes, y)
                result = _result(fn, op, vector, x, operand)
                fn.store(vector, wrap(fn, layout, result, lanes), place)
    fn.do("ret void")
    return fn


def _operand(fn: Function, op: AluOp, lanes: int, y: str) -> tuple[str, ...]:
    """What the operation needs of ``y``: itself, or for SHR how far to shift left and right.

    One of the two amounts is 0. They never reach 32, which LLVM leaves undefined.
    """
    if op != AluOp.SHR:
        return (y,)
    vector = f"<{lanes} x i32>"
    most, zero = constant("i32", [MAX_SHIFT] * lanes), "zeroinitializer"

    def clamp(value: str) -> str:
        positive = fn.op(f"icmp sgt {vector} {value}, {zero}")
        amount = fn.op(f"select <{lanes} x i1> {positive}, {vector} {value}, {vector} {zero}")
        small = fn.op(f"icmp slt {vector} {amount}, {most}")
        return fn.op(f"select <{lanes} x i1> {small}, {vector} {amount}, {vector} {most}")

    # -(-2^31) wraps to itself, which would shift nothing: take at most 31 before negating.
    lowest = constant("i32", [-MAX_SHIFT] * lanes)
    above = fn.op(f"icmp sgt {vector} {y}, {lowest}")
    bounded = fn.op(f"select <{lanes} x i1> {above}, {vector} {y}, {vector} {lowest}")
    return clamp(fn.op(f"sub {vector} {zero}, {bounded}")), clamp(bounded)


def _result(fn: Function, op: AluOp, vector: str, x: str, operand: tuple[str, ...]) -> str:
    match op:
        case AluOp.MIN | AluOp.MAX:
            how = "slt" if op == AluOp.MIN else "sgt"
            mask = vector.replace("i32", "i1")
            first = fn.op(f"icmp {how} {vector} {x}, {operand[0]}")
            return fn.op(f"select {mask} {first}, {vector} {x}, {vector} {operand[0]}")
        case AluOp.ADD:
            return fn.op(f"add {vector} {x}, {operand[0]}")
        case AluOp.MUL:
            return fn.op(f"mul {vector} {x}, {operand[0]}")
        case AluOp.SHR:
            left, right = operand
            return fn.op(f"ashr {vector} {fn.op(f'shl {vector} {x}, {left}')}, {right}")
