"""GEMM: products of input rows and weight tiles, in the order that suits the registers.

Addition modulo 2^32 commutes, and GEMM reads nothing that it writes except to add to it, so the
iterations may run in any order, aliasing destinations included. A weight tile, or the part of it
that fits, is loaded into registers once and used for every row of the loop that does not move it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from vta_isa.enums import Buffer

from .emit_dot import broadcast, dot, dot_intrinsic_type, weight_type
from .emit_uops import LOOPS, factors, load_uop, uop_field
from .ir import Function, constant
from .layouts import Layout

GEMM_PARAMS = {
    **dict.fromkeys(("uop", "inp", "wgt", "acc"), "ptr"),
    **LOOPS,
    **factors("dst", "src", "wgt"),
}
RESET_PARAMS = {"uop": "ptr", "acc": "ptr", **LOOPS, **factors("dst")}
UNROLLED_BATCH = 4  # rows of an entry unrolled; more are a loop
UNROLLED_ROWS = 4  # entries per turn of the innermost loop where batch is 1


def emit_gemm(layout: Layout) -> Iterator[Function]:
    yield _emit_products(layout)
    yield _emit_reset(layout)


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
    inside = fn.select(neither, crossings, 1), fn.select(both, 1, rows)
    strides = _Strides(
        plane_acc=fn.mul(cross_dst, layout.acc_bytes),
        plane_inp=fn.mul(cross_src, layout.inp_bytes),
        row_acc=fn.mul(row_dst, layout.acc_bytes),
        row_inp=fn.mul(row_src, layout.inp_bytes),
    )

    with fn.loop("%uop_end", start="%uop_begin") as number:
        uop = load_uop(fn, number)
        dst, src, wgt = (uop_field(fn, layout, uop, operand) for operand in ("dst", "src", "wgt"))
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
                kernel = _ChunkKernel(fn, layout, tile, part, chunk)
                kernel.planes(inside, acc, inp, strides)
    fn.do("ret void")
    return fn


@dataclass(frozen=True)
class _Strides:
    """Bytes from one plane, or row, of the innermost loops to the next."""

    plane_acc: str
    plane_inp: str
    row_acc: str
    row_inp: str


class _ChunkKernel:
    """The part of a weight tile that is in registers, and the rows it is applied to.

    ``part`` numbers the runs of ``chunk_vectors`` output vectors, ``chunk`` those of
    ``chunk_groups`` groups of input columns.
    """

    def __init__(self, fn: Function, layout: Layout, tile: str, part: str, chunk: str):
        self.fn, self.layout = fn, layout
        outputs = layout.chunk_vectors * layout.lanes
        self.acc_offset = fn.mul(part, outputs * 4)
        self.inp_offset = fn.mul(chunk, layout.chunk_groups * layout.unit_bits // 8)
        unit_bytes = layout.unit_bits // 8
        first = fn.add(
            fn.mul(chunk, layout.chunk_groups * layout.block_out * unit_bytes),
            fn.mul(part, outputs * unit_bytes),
        )
        base = fn.at(tile, first)
        self.weights = [
            [
                self._weights(base, (g * layout.block_out + v * layout.lanes) * unit_bytes)
                for v in range(layout.chunk_vectors)
            ]
            for g in range(layout.chunk_groups)
        ]
        self.corrections: list[str] = []
        if layout.flipped:
            place = fn.add(fn.mul(chunk, layout.block_out), fn.mul(part, outputs))
            held = fn.entry(fn.at(tile, layout.wgt_tile_bytes), place, 4)
            self.corrections = [
                fn.load(dot_intrinsic_type(layout), fn.at(held, v * layout.lanes * 4))
                for v in range(layout.chunk_vectors)
            ]

    def _weights(self, base: str, offset: int) -> str:
        stored = weight_type(self.layout)
        value = self.fn.load(stored, self.fn.at(base, offset))
        vector = dot_intrinsic_type(self.layout)
        return value if stored == vector else self.fn.op(f"sext {stored} {value} to {vector}")

    def planes(self, counts: tuple[str, str], acc: str, inp: str, strides: _Strides) -> None:
        """Apply the weights to ``counts`` planes and rows of entries."""
        fn = self.fn
        planes, rows = counts
        acc, inp = fn.at(acc, self.acc_offset), fn.at(inp, self.inp_offset)
        with fn.loop(planes) as plane:
            plane_acc = fn.at(acc, fn.mul(plane, strides.plane_acc))
            plane_inp = fn.at(inp, fn.mul(plane, strides.plane_inp))
            self._rows(rows, plane_acc, plane_inp, strides)

    def _rows(self, count: str, acc: str, inp: str, strides: _Strides) -> None:
        """Entry after entry, each loaded and stored again: destinations may be the same.

        Keeping the accumulators of several rows in registers at a time gained nothing where it was
        measured (VNNI, AVX2) and lost a fifth on short rows; the CPU overlaps rows by itself.
        """
        fn, layout = self.fn, self.layout
        to, source = fn.slot("ptr", acc), fn.slot("ptr", inp)

        def entries(turns: str, unrolled: int) -> None:
            with fn.loop(turns):
                a, i = fn.get(to, "ptr"), fn.get(source, "ptr")
                for _ in range(unrolled):
                    self._entry(a, i)
                    a, i = fn.at(a, strides.row_acc), fn.at(i, strides.row_inp)
                fn.set(to, a, "ptr")
                fn.set(source, i, "ptr")

        if layout.batch == 1:
            entries(fn.binary("lshr", count, UNROLLED_ROWS.bit_length() - 1), UNROLLED_ROWS)
            entries(fn.binary("and", count, UNROLLED_ROWS - 1), 1)
        else:
            entries(count, 1)

    def _entry(self, acc: str, inp: str) -> None:
        fn, layout = self.fn, self.layout
        acc_row, inp_row = layout.acc_bytes // layout.batch, layout.inp_bytes // layout.batch
        if layout.batch <= UNROLLED_BATCH:
            for row in range(layout.batch):
                self._row(fn.at(acc, row * acc_row), fn.at(inp, row * inp_row))
        else:
            with fn.loop(layout.batch) as number:
                self._row(fn.entry(acc, number, acc_row), fn.entry(inp, number, inp_row))

    def _row(self, acc: str, inp: str) -> None:
        """One row of an entry: load its outputs, add every group, store them."""
        fn, layout = self.fn, self.layout
        vector = dot_intrinsic_type(layout)
        places = [fn.at(acc, v * layout.lanes * 4) for v in range(layout.chunk_vectors)]
        totals = [fn.load(vector, place) for place in places]
        if layout.flipped:
            totals = [
                fn.op(f"add {vector} {total}, {correction}")
                for total, correction in zip(totals, self.corrections, strict=True)
            ]
        for g, weights in enumerate(self.weights):
            inputs = broadcast(fn, layout, fn.at(inp, g * layout.unit_bits // 8))
            totals = [
                dot(fn, layout, total, inputs, weight)
                for total, weight in zip(totals, weights, strict=True)
            ]
        for place, total in zip(places, totals, strict=True):
            fn.store(vector, wrap(fn, layout, total, layout.lanes), place)


def wrap(fn: Function, layout: Layout, value: str, lanes: int) -> str:
    """The low bits of each int32 lane that the accumulator has, sign-extended again."""
    dropped = 32 - layout.machine.bits(Buffer.ACC)
    if not dropped:
        return value
    vector, amount = f"<{lanes} x i32>", constant("i32", [dropped] * lanes)
    return fn.op(f"ashr {vector} {fn.op(f'shl {vector} {value}, {amount}')}, {amount}")


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
