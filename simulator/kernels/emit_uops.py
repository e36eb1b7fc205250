"""Micro-ops: their fields, and the check that no index they lead to is past its buffer."""

from vta_isa.enums import Buffer
from vta_isa.insn import layouts

from .ir import Function
from .layouts import Layout

UOPS_FIT = "uops_fit"
LOOPS = {name: "i64" for name in ("uop_begin", "uop_end", "iter_out", "iter_in")}


def factors(*operands: str) -> dict[str, str]:
    """Parameters for the loop factors of ``operands``: ``dst_out``, ``dst_in``, ..."""
    return {f"{operand}_{level}": "i64" for operand in operands for level in ("out", "in")}


def uop_field(fn: Function, layout: Layout, uop: str, operand: str) -> str:
    """The index ``operand`` (dst, src, wgt) of a micro-op word, as an i64."""
    slot = layouts(layout.machine).uop.slots[operand]
    shifted = fn.binary("lshr", uop, slot.start, "i32") if slot.start else uop
    return fn.op(f"zext i32 {fn.binary('and', shifted, slot.mask, 'i32')} to i64")


def load_uop(fn: Function, number: str) -> str:
    return fn.load("i32", fn.entry("%uop", number, 4), align=4)


def emit_uops_fit(layout: Layout) -> list[Function]:
    """``uops_fit_<operand>_<buffer>(...) -> i1``: whether the highest index is in the buffer.

    The loops' share of the index is the same for every micro-op, so it is taken off the depth once.
    """
    return [_emit_fit(layout, operand, buffer) for operand, buffer in CHECKED]


CHECKED = (
    ("dst", Buffer.ACC),
    ("src", Buffer.ACC),
    ("src", Buffer.INP),
    ("wgt", Buffer.WGT),
)


def fit_name(operand: str, buffer: Buffer) -> str:
    return f"{UOPS_FIT}_{operand}_{buffer.name.lower()}"


def _emit_fit(layout: Layout, operand: str, buffer: Buffer) -> Function:
    params = {"uop": "ptr", **LOOPS, "out": "i64", "in": "i64"}
    fn = Function(fit_name(operand, buffer), params, result="i1")
    highest = fn.slot("i64", "0")
    with fn.loop("%uop_end", start="%uop_begin") as number:
        index = uop_field(fn, layout, load_uop(fn, number), operand)
        so_far = fn.get(highest)
        fn.set(highest, fn.select(fn.compare("sgt", index, so_far), index, so_far))
    outer = fn.mul(fn.sub("%iter_out", 1), "%out")
    inner = fn.mul(fn.sub("%iter_in", 1), "%in")
    reached = fn.add(fn.get(highest), fn.add(outer, inner))
    fn.do(f"ret i1 {fn.compare('slt', reached, layout.machine.depth(buffer))}")
    return fn
