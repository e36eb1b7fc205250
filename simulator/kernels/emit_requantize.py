"""REQUANTIZE: bias, shift and clip of accumulators in one pass.

Iterations keep their order, as in emit_alu.py; a bias may be what an earlier outer iteration wrote.
"""

from collections.abc import Iterator

from vta_isa.enums import LowKind

from .emit_alu import MAX_LANES
from .emit_registers import wrap
from .emit_uops import LOOPS, factors, load_uop, uop_field
from .ir import Function
from .layouts import Layout

REQUANTIZE = "requantize"
REQUANTIZE_PARAMS = {
    "uop": "ptr",
    "acc": "ptr",
    **LOOPS,
    **factors("dst"),
    **dict.fromkeys(("src_out", "use_imm", "shift", "low_kind", "high"), "i64"),
}


def emit_requantize(layout: Layout) -> Iterator[Function]:
    """Nothing where the machine has no such operation."""
    if not layout.machine.extensions.alu_requantize:
        return
    fn = Function(REQUANTIZE, REQUANTIZE_PARAMS)
    scalars = layout.batch * layout.block_out
    lanes = min(scalars, MAX_LANES)
    vector, mask = f"<{lanes} x i32>", f"<{lanes} x i1>"

    def everywhere(value: str) -> str:
        return fn.splat(lanes, "i32", fn.op(f"trunc i64 {value} to i32"))

    negated = fn.sub(0, "%high")
    low = fn.select(fn.compare("eq", "%low_kind", LowKind.NEGATIVE), negated, fn.sub(negated, 1))
    low = fn.select(fn.compare("eq", "%low_kind", LowKind.ZERO), 0, low)
    lows, highs, shifts = everywhere(low), everywhere("%high"), everywhere("%shift")
    biased = fn.compare("eq", "%use_imm", 0)
    first_src = uop_field(fn, layout, load_uop(fn, "%uop_begin"), "src")
    # Kept apart: an iteration may write the entry while others still need what it held.
    bias = fn.scratch(f"[{layout.acc_bytes} x i8]", align=64)
    size = f"i64 {layout.acc_bytes}, i1 false"
    fn.do(f"call void @llvm.memset.p0.i64(ptr {bias}, i8 0, {size})")

    with fn.loop("%iter_out") as i:
        with fn.when(biased):
            entry = fn.entry("%acc", fn.add(first_src, fn.mul(i, "%src_out")), layout.acc_bytes)
            fn.do(f"call void @llvm.memcpy.p0.p0.i64(ptr {bias}, ptr {entry}, {size})")
        with fn.loop("%iter_in") as j, fn.loop("%uop_end", start="%uop_begin") as number:
            loops = fn.add(fn.mul(i, "%dst_out"), fn.mul(j, "%dst_in"))
            dst = fn.add(uop_field(fn, layout, load_uop(fn, number), "dst"), loops)
            entry = fn.entry("%acc", dst, layout.acc_bytes)
            with fn.loop(scalars // lanes) as part:
                place = fn.entry(entry, part, lanes * 4)
                added = fn.load(vector, fn.entry(bias, part, lanes * 4))
                total = fn.op(f"add {vector} {fn.load(vector, place)}, {added}")
                value = fn.op(f"ashr {vector} {wrap(fn, layout, total, lanes)}, {shifts}")
                for how, bound in (("sgt", lows), ("slt", highs)):
                    inside = fn.op(f"icmp {how} {vector} {value}, {bound}")
                    value = fn.op(f"select {mask} {inside}, {vector} {value}, {vector} {bound}")
                fn.store(vector, value, place)
    fn.do("ret void")
    yield fn
