"""GEMM: products of input rows and weight tiles, in the order that suits the registers.

Addition modulo 2^32 commutes, and GEMM reads nothing that it writes except to add to it, so the
iterations may run in any order, aliasing destinations included. A weight tile, or the part of it
that fits, is loaded into registers once and used for every row of the loop that does not move it.
What is done with the rows is up to a kernel: vector registers, or the tiles of AMX.
"""

from collections.abc import Iterator

from .emit_registers import RegisterKernel
from .emit_tiles import TileKernel
from .emit_uops import LOOPS, factors, load_uop, uop_field
from .ir import Function
from .layouts import Layout
from .rows import Rows
from .tiers import Dot

GEMM_PARAMS = {
    **dict.fromkeys(("uop", "inp", "wgt", "acc"), "ptr"),
    **LOOPS,
    **factors("dst", "src", "wgt"),
}
RESET_PARAMS = {"uop": "ptr", "acc": "ptr", **LOOPS, **factors("dst")}


OVERWRITE = "overwrite"


def emit_gemm(layout: Layout) -> Iterator[Function]:
    yield _emit_products(layout)
    yield _emit_reset(layout)
    if layout.machine.extensions.gemm_overwrite:
        yield _emit_overwrite(layout)


def _emit_products(layout: Layout) -> Function:
    """``acc[dst] += inp[src] x wgt[wgt]`` over all iterations.

    One loop is the row loop, the other one the cross loop. Those that leave the weight tile in
    place run inside, as planes of rows:

    =================  ========  ==========  ===============  ===========
    weights move with  row loop  cross loop  outside planes   inside them
    =================  ========  ==========  ===============  ===========
    outer loop only    inner     outer       cross            rows
    inner loop only    outer     inner       cross            rows
    neither            longer    shorter     -                cross, rows
    both               outer     inner       rows, cross      -
    =================  ========  ==========  ===============  ===========
    """
    fn = Function("gemm", GEMM_PARAMS)
    outer_fixed = fn.compare("eq", "%wgt_out", 0)
    inner_fixed = fn.compare("eq", "%wgt_in", 0)
    neither = fn.binary("and", outer_fixed, inner_fixed, "i1")
    both = fn.binary("xor", fn.binary("or", outer_fixed, inner_fixed, "i1"), "true", "i1")
    outer_longer = fn.compare("sgt", "%iter_out", "%iter_in")
    rows_are_outer = fn.select(neither, outer_longer, outer_fixed, "i1")
    rows_are_inner = fn.select(rows_are_outer, "false", inner_fixed, "i1")

    def pick(inner: str, outer: str) -> tuple[str, str]:
        """A property of the row loop and of the cross loop."""
        return fn.select(rows_are_inner, inner, outer), fn.select(rows_are_inner, outer, inner)

    rows, crossings = pick("%iter_in", "%iter_out")
    row_dst, cross_dst = pick("%dst_in", "%dst_out")
    row_src, cross_src = pick("%src_in", "%src_out")
    row_wgt, cross_wgt = pick("%wgt_in", "%wgt_out")
    outside = fn.select(both, rows, 1), fn.select(neither, 1, crossings)
    planes, row_count = fn.select(neither, crossings, 1), fn.select(both, 1, rows)
    plane_acc, row_acc = (fn.mul(d, layout.acc_bytes) for d in (cross_dst, row_dst))
    plane_inp, row_inp = (fn.mul(s, layout.inp_bytes) for s in (cross_src, row_src))
    family = TileKernel if layout.tier.dot is Dot.TILES else RegisterKernel
    kernel = family(fn, layout, Rows(row_count, row_acc, row_inp))

    position = fn.slot("i64", "%uop_begin")
    with fn.while_below(position, "%uop_end") as number:
        dst, src, wgt = _indices(fn, layout, number)
        run = _run_length(fn, layout, number, (dst, src, wgt), kernel.most_uops)
        kernel.start(run)
        fn.set(position, fn.add(number, run))
        with fn.loop(outside[0]) as r, fn.loop(outside[1]) as c:

            def index(start: str, row: str, cross: str, r: str = r, c: str = c) -> str:
                return fn.add(start, fn.add(fn.mul(r, row), fn.mul(c, cross)))

            acc = fn.entry("%acc", index(dst, row_dst, cross_dst), layout.acc_bytes)
            inp = fn.entry("%inp", index(src, row_src, cross_src), layout.inp_bytes)
            tile = fn.entry("%wgt", index(wgt, row_wgt, cross_wgt), layout.wgt_bytes)
            with (
                fn.loop(layout.block_out // layout.lanes // layout.chunk_vectors) as part,
                fn.loop(layout.groups // layout.chunk_groups) as chunk,
            ):
                kernel.load_weights(tile, part, chunk)
                with fn.loop(planes) as plane:
                    kernel.multiply(
                        fn.at(acc, fn.mul(plane, plane_acc)), fn.at(inp, fn.mul(plane, plane_inp))
                    )
    kernel.end()
    fn.do("ret void")
    return fn


def _indices(fn: Function, layout: Layout, number: str) -> tuple[str, str, str]:
    """dst, src and wgt of a micro-op."""
    uop = load_uop(fn, number)
    dst, src, wgt = (uop_field(fn, layout, uop, operand) for operand in ("dst", "src", "wgt"))
    return dst, src, wgt


def _run_length(
    fn: Function, layout: Layout, number: str, first: tuple[str, str, str], most: int
) -> str:
    """How many micro-ops from ``number`` on, up to ``most``, are one product of longer rows.

    They add into the same destination, and inputs and weights follow each other, as the columns of
    a convolution kernel do.
    """
    if most == 1:
        return "1"
    length = fn.slot("i64", "1")
    with fn.loop(most, start=1) as k:
        place = fn.add(number, k)
        inside = fn.compare("slt", place, "%uop_end")
        dst, src, wgt = _indices(fn, layout, fn.select(inside, place, number))
        grows = fn.binary("and", inside, fn.compare("eq", k, fn.get(length)), "i1")
        for index, wanted in (
            (dst, first[0]),
            (src, fn.add(first[1], k)),
            (wgt, fn.add(first[2], k)),
        ):
            grows = fn.binary("and", grows, fn.compare("eq", index, wanted), "i1")
        fn.set(length, fn.add(fn.get(length), fn.op(f"zext i1 {grows} to i64")))
    return fn.get(length)


def _emit_reset(layout: Layout) -> Function:
    """``acc[dst] = 0`` over all iterations."""
    fn = Function("reset", RESET_PARAMS)
    with fn.loop("%uop_end", start="%uop_begin") as number:
        start = uop_field(fn, layout, load_uop(fn, number), "dst")
        with fn.loop("%iter_out") as i, fn.loop("%iter_in") as j:
            index = fn.add(start, fn.add(fn.mul(i, "%dst_out"), fn.mul(j, "%dst_in")))
            into = fn.entry("%acc", index, layout.acc_bytes)
            fn.do(
                f"call void @llvm.memset.p0.i64(ptr {into}, i8 0, i64 {layout.acc_bytes}, i1 false)"
            )
    fn.do("ret void")
    return fn


def _emit_overwrite(layout: Layout) -> Function:
    """``acc[dst] = inp[src] x wgt[wgt]``, for the last iteration that has this dst.

    Where no two iterations have the same destination, that is a reset and an accumulating GEMM, in
    any order. This is seen where there is one micro-op and one loop steps over all that the other
    one reaches; else every iteration is carried out alone, in order.
    """
    fn = Function(OVERWRITE, GEMM_PARAMS)
    alone = fn.compare("eq", fn.sub("%uop_end", "%uop_begin"), 1)

    # How far each loop reaches, 0 where it does not go round, and whether it moves if it does.
    moves, reach, step = {}, {}, {}
    for level in ("in", "out"):
        single = fn.compare("eq", f"%iter_{level}", 1)
        step[level] = fn.select(single, 0, f"%dst_{level}")
        reach[level] = fn.mul(step[level], f"%iter_{level}")
        moves[level] = fn.binary("or", single, fn.compare("sgt", step[level], 0), "i1")
    nested = "false"
    for far, near in (("out", "in"), ("in", "out")):
        over = fn.binary(
            "or",
            fn.compare("sge", step[far], reach[near]),
            fn.compare("eq", step[far], 0),
            "i1",
        )
        nested = fn.binary("or", nested, over, "i1")
    distinct = fn.binary("and", alone, nested, "i1")
    for level in ("in", "out"):
        distinct = fn.binary("and", distinct, moves[level], "i1")
    with fn.when(distinct):
        fn.do(_call("reset", RESET_PARAMS))
        fn.do(_call("gemm", GEMM_PARAMS))
    with fn.when(fn.binary("xor", distinct, "true", "i1")):
        with fn.loop("%iter_out") as i, fn.loop("%iter_in") as j:

            def moved(image: str, operand: str, size: int, i: str = i, j: str = j) -> str:
                steps = fn.add(fn.mul(i, f"%{operand}_out"), fn.mul(j, f"%{operand}_in"))
                return fn.entry(image, steps, size)

            images = {
                "acc": moved("%acc", "dst", layout.acc_bytes),
                "inp": moved("%inp", "src", layout.inp_bytes),
                "wgt": moved("%wgt", "wgt", layout.wgt_bytes),
            }
            with fn.loop("%uop_end", start="%uop_begin") as number:
                one = {"uop_begin": number, "uop_end": fn.add(number, 1)}
                one |= dict.fromkeys(("iter_out", "iter_in"), "1") | images
                fn.do(_call("reset", RESET_PARAMS, one))
                fn.do(_call("gemm", GEMM_PARAMS, one))
    fn.do("ret void")
    return fn


def _call(name: str, params: dict[str, str], given: dict[str, str] | None = None) -> str:
    """A call with the parameters of the caller, but for those ``given``."""
    given = given or {}
    values = (f"{kind} {given.get(param, f'%{param}')}" for param, kind in params.items())
    return f"call void @{name}({', '.join(values)})"
