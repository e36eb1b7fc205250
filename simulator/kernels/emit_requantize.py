"""REQUANTIZE: bias, shift and clip of accumulators in one pass.

Iterations keep their order, as in emit_alu.py; a bias may be what an earlier outer iteration wrote.
"""

from collections.abc import Iterator

from vta_isa.enums import LowKind
from vta_isa.microarch import REQUANTIZE_APART

from .emit_alu import MAX_LANES
from .emit_registers import wrap
from .emit_uops import LOOPS, factors, load_uop, uop_field
from .ir import Function
from .layouts import Layout

REQUANTIZE = "requantize"
APART = "requantize_apart"
APART_PARAMS = {
    "uop": "ptr",
    **LOOPS,
    **factors("dst"),
    **dict.fromkeys(("src_out", "use_imm"), "i64"),
}
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
    yield _emit_apart(layout)


def _emit_apart(layout: Layout) -> Function:
    """``requantize_apart(...) -> i1``: whether nothing reads what one of the slots shortly before
    it writes (simulator/apart.py). The entries that those write are kept in as many variables."""
    fn = Function(APART, APART_PARAMS, result="i1")
    written = [fn.slot("i64", "-1") for _ in range(REQUANTIZE_APART - 1)]
    met = fn.slot("i1", "false")
    biased = fn.compare("eq", "%use_imm", 0)
    first_src = uop_field(fn, layout, load_uop(fn, "%uop_begin"), "src")

    def slot(reads: str, writes: str | int) -> None:
        values = [fn.get(variable) for variable in written]
        so_far = fn.get(met, "i1")
        for value in values:
            so_far = fn.binary("or", so_far, fn.compare("eq", value, reads), "i1")
        fn.set(met, so_far, "i1")
        for variable, value in zip(written, [str(writes), *values[:-1]], strict=True):
            fn.set(variable, value)

    with fn.loop("%iter_out") as i:
        with fn.when(biased):
            slot(fn.add(first_src, fn.mul(i, "%src_out")), -1)
        with fn.loop("%iter_in") as j, fn.loop("%uop_end", start="%uop_begin") as number:
            loops = fn.add(fn.mul(i, "%dst_out"), fn.mul(j, "%dst_in"))
            dst = fn.add(uop_field(fn, layout, load_uop(fn, number), "dst"), loops)
            slot(dst, dst)
    fn.do(f"ret i1 {fn.binary('xor', fn.get(met, 'i1'), 'true', 'i1')}")
    return fn
