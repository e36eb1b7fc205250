"""GEMM on AMX: a weight tile in one tile register, up to 16 rows of inputs in another.

Three tile registers work together: C (rows x 16 int32 accumulators) += A (rows x up to 64 int8
inputs) x B (up to 16 groups of weights x 16 outputs, as they lie in the image). Tiles are loaded
with a stride, so rows that are any distance apart, or overlap, cost nothing. Full blocks of rows
use one pair of C and A, what is left over another.

A block costs much the same however few columns it has, so micro-ops whose inputs and weights
follow each other in the images are multiplied as one, where a tile has room. Shapes are set again
only when their number changes.

The permission to use the registers is the process's (``tiers``); their state is the thread's, and
is given up at the end of every instruction.
"""

from .ir import Function
from .layouts import Layout
from .rows import Rows

# Tile registers, by use.
FULL_ACC, FULL_INP, WEIGHTS, REST_ACC, REST_INP = range(5)

MAX_ROWS = 16
MAX_GROUPS = 16  # of input columns: 64 bytes of a row of A
OUTPUTS = 16
CONFIG_BYTES = 64
PALETTE = 1
COLUMNS_OFFSET = 16  # of 16 uint16 in the configuration: bytes of a row of each tile
ROWS_OFFSET = 48  # of 16 uint8: rows of each tile

TILE_DECLARATIONS = """\
declare void @llvm.x86.ldtilecfg(ptr)
declare void @llvm.x86.tilerelease()
declare void @llvm.x86.tileloadd64(i8 immarg, ptr, i64)
declare void @llvm.x86.tilestored64(i8 immarg, ptr, i64)
declare void @llvm.x86.tdpbssd(i8 immarg, i8 immarg, i8 immarg)
"""


class TileKernel:
    """One weight tile, or the part of it that fits a register, and the rows it is applied to.

    Rows are cut into blocks of up to 16. With ``batch`` 1 they are the entries of the innermost
    loop; else the rows of one entry, or of all entries where they lie one behind the other.
    """

    def __init__(self, fn: Function, layout: Layout, rows: Rows):
        self.fn, self.layout, self.rows = fn, layout, rows
        self.acc_offset, self.inp_offset = "0", "0"
        if layout.batch == 1:
            self.pieces, count = "1", rows.count
            self.acc_stride, self.inp_stride = rows.acc_stride, rows.inp_stride
            # One destination for all rows: each must see what the one before stored.
            most = fn.select(fn.compare("eq", rows.acc_stride, 0), 1, MAX_ROWS)
        else:
            dense_acc = fn.compare("eq", rows.acc_stride, layout.acc_bytes)
            dense_inp = fn.compare("eq", rows.inp_stride, layout.inp_bytes)
            dense = fn.binary("and", dense_acc, dense_inp, "i1")
            self.pieces = fn.select(dense, 1, rows.count)
            count = fn.select(dense, fn.mul(rows.count, layout.batch), layout.batch)
            self.acc_stride = str(layout.acc_bytes // layout.batch)
            self.inp_stride = str(layout.inp_bytes // layout.batch)
            most = str(MAX_ROWS)
        self.full_rows = fn.select(fn.compare("slt", count, most), count, most)
        self.blocks = fn.binary("udiv", count, self.full_rows)
        self.rest_rows = fn.sub(count, fn.mul(self.blocks, self.full_rows))
        self.acc_step = fn.mul(self.full_rows, self.acc_stride)
        self.inp_step = fn.mul(self.full_rows, self.inp_stride)
        # Entries of several rows are not one longer row each.
        fits = MAX_GROUPS // layout.groups if layout.batch == 1 else 1
        self.most_uops = max(1, fits)
        self._config = fn.scratch(f"[{CONFIG_BYTES} x i8]", align=64)
        self._configured = fn.slot("i64", "0")  # number of micro-ops the shapes are for

    def start(self, uops: str) -> None:
        """The next weights and rows are those of ``uops`` micro-ops in a row."""
        fn = self.fn
        with fn.when(fn.compare("ne", fn.get(self._configured), uops)):
            self._configure(fn.mul(uops, self.layout.chunk_groups))
            fn.set(self._configured, uops)

    def _configure(self, groups: str) -> None:
        """A tile of no rows is not allowed, so the one for the rest has at least one."""
        fn, config = self.fn, self._config
        columns = fn.mul(groups, 4)
        some_rest = fn.select(fn.compare("eq", self.rest_rows, 0), 1, self.rest_rows)
        shapes = {
            FULL_ACC: (self.full_rows, str(OUTPUTS * 4)),
            FULL_INP: (self.full_rows, columns),
            WEIGHTS: (groups, str(OUTPUTS * 4)),
            REST_ACC: (some_rest, str(OUTPUTS * 4)),
            REST_INP: (some_rest, columns),
        }
        fn.do(f"call void @llvm.memset.p0.i64(ptr {config}, i8 0, i64 {CONFIG_BYTES}, i1 false)")
        fn.store("i8", str(PALETTE), config)
        for tile, (rows, width) in shapes.items():
            fn.store(
                "i16", fn.op(f"trunc i64 {width} to i16"), fn.at(config, COLUMNS_OFFSET + 2 * tile)
            )
            fn.store("i8", fn.op(f"trunc i64 {rows} to i8"), fn.at(config, ROWS_OFFSET + tile))
        fn.do(f"call void @llvm.x86.ldtilecfg(ptr {config})")

    def load_weights(self, tile: str, part: str, chunk: str) -> None:
        """Outputs ``16 * part ...`` of the groups of ``chunk``."""
        fn, layout = self.fn, self.layout
        row_bytes = layout.block_out * 4
        self.acc_offset = fn.mul(part, OUTPUTS * 4)
        self.inp_offset = fn.mul(chunk, layout.chunk_groups * 4)
        first = fn.add(fn.mul(chunk, layout.chunk_groups * row_bytes), self.acc_offset)
        self._load(WEIGHTS, fn.at(tile, first), str(row_bytes))

    def multiply(self, acc: str, inp: str) -> None:
        """Add the products of all rows from ``acc`` and ``inp`` on."""
        fn = self.fn
        acc, inp = fn.at(acc, self.acc_offset), fn.at(inp, self.inp_offset)
        with fn.loop(self.pieces) as piece:
            to = fn.at(acc, fn.mul(piece, self.rows.acc_stride))
            source = fn.at(inp, fn.mul(piece, self.rows.inp_stride))
            with fn.loop(self.blocks) as block:
                a = fn.at(to, fn.mul(block, self.acc_step))
                i = fn.at(source, fn.mul(block, self.inp_step))
                self._block(FULL_ACC, FULL_INP, a, i)
            with fn.when(fn.compare("ne", self.rest_rows, 0)):
                a = fn.at(to, fn.mul(self.blocks, self.acc_step))
                i = fn.at(source, fn.mul(self.blocks, self.inp_step))
                self._block(REST_ACC, REST_INP, a, i)

    def end(self) -> None:
        self.fn.do("call void @llvm.x86.tilerelease()")

    def _block(self, acc_tile: int, inp_tile: int, acc: str, inp: str) -> None:
        fn = self.fn
        self._load(acc_tile, acc, self.acc_stride)
        self._load(inp_tile, inp, self.inp_stride)
        fn.do(f"call void @llvm.x86.tdpbssd(i8 {acc_tile}, i8 {inp_tile}, i8 {WEIGHTS})")
        fn.do(f"call void @llvm.x86.tilestored64(i8 {acc_tile}, ptr {acc}, i64 {self.acc_stride})")

    def _load(self, tile: int, pointer: str, stride: str) -> None:
        self.fn.do(f"call void @llvm.x86.tileloadd64(i8 {tile}, ptr {pointer}, i64 {stride})")
