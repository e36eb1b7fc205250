"""GEMM: products of input rows and weight tiles, in the order that suits the registers.

Addition modulo 2^32 commutes, and GEMM reads nothing that it writes except to add to it, so the
iterations may run in any order, aliasing destinations included. A weight tile, or the part of it
that fits, is loaded into registers once and used for every row of the loop that does not move it.
"""

from collections.abc import Iterator

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

    Which loop runs innermost, as the row loop, depends on which one leaves the weights in place:

    =================  ===============  =============  =========
    weights move with  outermost        middle         rows
    =================  ===============  =============  =========
    outer loop only    -                outer          inner
    inner loop only    -                inner          outer
    neither            -                shorter        longer
    both               outer            inner          -
    =================  ===============  =============  =========
    """
    fn = Function("gemm", GEMM_PARAMS)
    outer_fixed = fn.compare("eq", "%wgt_out", 0)
    inner_fixed = fn.compare("eq", "%wgt_in", 0)
    outer_longer = fn.compare("sgt", "%iter_out", "%iter_in")
    prefer_outer = fn.binary("and", outer_fixed, outer_longer, "i1")
    inner_rows = fn.select(prefer_outer, "false", inner_fixed, "i1")
    outer_rows = fn.select(inner_rows, "false", outer_fixed, "i1")
    both = fn.binary("xor", fn.binary("or", inner_rows, outer_rows, "i1"), "true", "i1")

    rows = fn.select(inner_rows, "%iter_in", fn.select(outer_rows, "%iter_out", 1))
    row_dst = fn.select(inner_rows, "%dst_in", "%dst_out")
    row_src = fn.select(inner_rows, "%src_in", "%src_out")
    middle = fn.select(inner_rows, "%iter_out", "%iter_in")
    middle_dst = fn.select(inner_rows, "%dst_out", "%dst_in")
    middle_src = fn.select(inner_rows, "%src_out", "%src_in")
    middle_wgt = fn.select(inner_rows, "%wgt_out", "%wgt_in")
    outermost = fn.select(both, "%iter_out", 1)
    row_dst_bytes = fn.mul(row_dst, layout.acc_bytes)
    row_src_bytes = fn.mul(row_src, layout.inp_bytes)

    with fn.loop("%uop_end", start="%uop_begin") as number:
        uop = load_uop(fn, number)
        dst, src, wgt = (uop_field(fn, layout, uop, operand) for operand in ("dst", "src", "wgt"))
        with fn.loop(outermost) as o, fn.loop(middle) as m:

            def index(start: str, out: str, middle: str, o: str = o, m: str = m) -> str:
                return fn.add(start, fn.add(fn.mul(o, out), fn.mul(m, middle)))

            acc = fn.entry("%acc", index(dst, "%dst_out", middle_dst), layout.acc_bytes)
            inp = fn.entry("%inp", index(src, "%src_out", middle_src), layout.inp_bytes)
            tile = fn.entry("%wgt", index(wgt, "%wgt_out", middle_wgt), layout.wgt_bytes)
            with (
                fn.loop(layout.block_out // layout.lanes // layout.chunk_vectors) as part,
                fn.loop(layout.groups // layout.chunk_groups) as chunk,
            ):
                kernel = _ChunkKernel(fn, layout, tile, part, chunk)
                kernel.rows(rows, acc, inp, row_dst_bytes, row_src_bytes)
    fn.do("ret void")
    return fn


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

    def rows(self, count: str, acc: str, inp: str, dst_bytes: str, src_bytes: str) -> None:
        """Apply the weights to ``count`` entries, ``dst_bytes`` and ``src_bytes`` apart."""
        fn, layout = self.fn, self.layout
        to = fn.slot("ptr", fn.at(acc, self.acc_offset))
        source = fn.slot("ptr", fn.at(inp, self.inp_offset))

        def entries(turns: str, unrolled: int) -> None:
            with fn.loop(turns):
                a, i = fn.get(to, "ptr"), fn.get(source, "ptr")
                for _ in range(unrolled):
                    self._entry(a, i)
                    a, i = fn.at(a, dst_bytes), fn.at(i, src_bytes)
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
