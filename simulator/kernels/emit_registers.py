"""GEMM on vector registers: weights stay in them, accumulators pass through."""

from vta_isa.enums import Buffer

from .emit_dot import broadcast, dot, dot_intrinsic_type, weight_type
from .ir import Function, constant
from .layouts import Layout
from .rows import Rows

UNROLLED_BATCH = 4  # rows of an entry unrolled; more are a loop
UNROLLED_ROWS = 4  # entries per turn of the innermost loop where batch is 1


class RegisterKernel:
    """The part of a weight tile that is in vector registers, and the rows it is applied to."""

    most_uops = 1  # that are multiplied together

    def __init__(self, fn: Function, layout: Layout, rows: Rows):
        self.fn, self.layout, self.rows = fn, layout, rows
        self.acc_offset, self.inp_offset = "0", "0"
        self.weights: list[list[str]] = []  # by group of input columns, by vector of outputs
        self.corrections: list[str] = []  # by vector of outputs

    def start(self, uops: str) -> None:
        """Nothing depends on the number of micro-ops."""

    def load_weights(self, tile: str, part: str, chunk: str) -> None:
        """``part`` numbers runs of ``chunk_vectors`` vectors of outputs, ``chunk`` those of
        ``chunk_groups`` groups of input columns."""
        fn, layout = self.fn, self.layout
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

    def multiply(self, acc: str, inp: str) -> None:
        """Entry after entry, each loaded and stored again: destinations may be the same.

        Keeping the accumulators of several rows in registers at a time gained nothing where it was
        measured (VNNI, AVX2) and lost a fifth on short rows; the CPU overlaps rows by itself.
        """
        fn, layout = self.fn, self.layout
        to = fn.slot("ptr", fn.at(acc, self.acc_offset))
        source = fn.slot("ptr", fn.at(inp, self.inp_offset))
        count = self.rows.count

        def entries(turns: str, unrolled: int) -> None:
            with fn.loop(turns):
                a, i = fn.get(to, "ptr"), fn.get(source, "ptr")
                for _ in range(unrolled):
                    self._entry(a, i)
                    a, i = fn.at(a, self.rows.acc_stride), fn.at(i, self.rows.inp_stride)
                fn.set(to, a, "ptr")
                fn.set(source, i, "ptr")

        if layout.batch == 1:
            entries(fn.binary("lshr", count, UNROLLED_ROWS.bit_length() - 1), UNROLLED_ROWS)
            entries(fn.binary("and", count, UNROLLED_ROWS - 1), 1)
        else:
            entries(count, 1)

    def end(self) -> None:
        """Nothing to give back."""

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
