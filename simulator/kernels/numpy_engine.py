"""The NumPy engine: needs no compiler, gives the same bits, one vectorised step per instruction.

Matrix products run in floating point, because NumPy hands only those to BLAS. They are exact: an
element is a sum of products of at most 2^(inp bits - 1) * 2^(wgt bits - 1) each, so no partial sum,
in whatever order, passes their number times that. float32 holds every integer up to 2^24 (1024
products of 8-bit scalars), float64 up to 2^53; sums that could be larger are split.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from vta_isa.encoding import decode_uops
from vta_isa.enums import AluOp, Buffer, Opcode
from vta_isa.machine import Machine
from vta_isa.tensors import pack_entries, unpack_entries

from ..checks import check_uops, executes, is_requantize
from ..reference import alu_result, bias_entry, requantized, wrap
from .gemm_plan import Product, plan_products

FLOAT32_EXACT = 1 << 24
FLOAT64_EXACT = 1 << 53
MOST_PLANS = 256
GEMM_LOOPS = (
    *("iter_out", "iter_in"),
    *(f"{operand}_factor_{level}" for operand in ("dst", "src", "wgt") for level in ("out", "in")),
    "overwrite",
)


class NumpyEngine:
    """Row-major SRAM images; inputs and weights as floats, for the matrix products."""

    name = "numpy"

    def __init__(self, machine: Machine):
        def zeros(buffer: Buffer, dtype: np.dtype[Any]) -> NDArray[Any]:
            return np.zeros((machine.depth(buffer), *machine.entry_shape(buffer)), dtype=dtype)

        self.machine = machine
        largest = machine.gemm.block_in << (machine.bits(Buffer.INP) + machine.bits(Buffer.WGT) - 2)
        exact, floats = (FLOAT32_EXACT, "f4") if largest <= FLOAT32_EXACT else (FLOAT64_EXACT, "f8")
        self._most_taps = exact // largest
        self._plans: dict[tuple[object, ...], list[Product]] = {}
        self._images: dict[Buffer, NDArray[Any]] = {
            Buffer.UOP: np.zeros(machine.depth(Buffer.UOP), dtype=np.uint32),
            Buffer.INP: zeros(Buffer.INP, np.dtype(floats)),
            Buffer.WGT: zeros(Buffer.WGT, np.dtype(floats)),
            Buffer.ACC: zeros(Buffer.ACC, machine.dtype(Buffer.ACC)),
        }

    def sram(self, buffer: Buffer) -> NDArray[np.integer]:
        """A copy of the architectural contents."""
        if buffer == Buffer.OUT:
            narrow = wrap(self._images[Buffer.ACC], self.machine.bits(Buffer.OUT))
            return narrow.astype(self.machine.dtype(Buffer.OUT))
        held = Buffer.ACC if buffer == Buffer.ACC_8BIT else buffer
        return self._images[held].astype(self.machine.dtype(held))

    def run(
        self, table: NDArray[np.void], order: NDArray[np.int64], dram: NDArray[np.uint8]
    ) -> None:
        """Execute a checked stream in the given order; a failing one changes nothing."""
        images = {buffer: image.copy() for buffer, image in self._images.items()}
        before = dram.copy()
        try:
            for number in order.tolist():
                self._step(table[number], number, dram)
        except Exception:
            self._images = images
            dram[...] = before
            raise

    def _step(self, insn: np.void, number: int, dram: NDArray[np.uint8]) -> None:
        match int(insn["opcode"]):
            case Opcode.LOAD if insn["x_size"]:
                self._load(insn, dram)
            case Opcode.STORE if insn["x_size"] and insn["y_size"]:
                self._store(insn, dram)
            case Opcode.GEMM if executes(insn):
                self._gemm(insn, self._uops(insn, number))
            case Opcode.ALU if executes(insn) and is_requantize(insn):
                self._requantize(insn, self._uops(insn, number))
            case Opcode.ALU if executes(insn):
                self._alu(insn, self._uops(insn, number))

    def _load(self, insn: np.void, dram: NDArray[np.uint8]) -> None:
        buffer = Buffer(int(insn["buffer"]))
        memory = self._images[Buffer.ACC if buffer == Buffer.ACC_8BIT else buffer]
        top, rows, bottom = (int(insn[f]) for f in ("y_pad_before", "y_size", "y_pad_after"))
        left, columns, right = (int(insn[f]) for f in ("x_pad_before", "x_size", "x_pad_after"))
        height, width, base = top + rows + bottom, left + columns + right, int(insn["sram_base"])
        tile = memory[base : base + height * width].reshape(height, width, *memory.shape[1:])
        tile[...] = 0
        if rows:
            raw = np.ascontiguousarray(self._dram_rows(insn, dram, buffer)).reshape(-1)
            scalars = (
                raw.view("<u4")
                if buffer == Buffer.UOP
                else unpack_entries(raw, buffer, self.machine)
            )
            core = tile[top : top + rows, left : left + columns]
            core[...] = scalars.reshape(core.shape)

    def _store(self, insn: np.void, dram: NDArray[np.uint8]) -> None:
        rows, columns, base = (int(insn[f]) for f in ("y_size", "x_size", "sram_base"))
        bits = self.machine.bits(Buffer.OUT)
        narrow = wrap(self._images[Buffer.ACC][base : base + rows * columns], bits)
        packed = pack_entries(narrow, Buffer.OUT, self.machine).reshape(rows, -1)
        target = self._dram_rows(insn, dram, Buffer.OUT)
        if insn["x_stride"] >= columns:
            target[...] = packed
        else:  # rows overlap, and the later one must stay
            for row in range(rows):
                target[row] = packed[row]

    def _dram_rows(
        self, insn: np.void, dram: NDArray[np.uint8], buffer: Buffer
    ) -> NDArray[np.uint8]:
        """``(y_size, bytes of a row)``: the DRAM core of a LOAD or STORE, as a view."""
        unit = self.machine.entry_bytes(buffer)
        start, stride = int(insn["dram_base"]) * unit, int(insn["x_stride"]) * unit
        shape = (int(insn["y_size"]), int(insn["x_size"]) * unit)
        return as_strided(dram[start:], shape, (stride * dram.strides[0], dram.strides[0]))

    def _gemm(self, insn: np.void, uops: NDArray[np.int32]) -> None:
        acc = self._images[Buffer.ACC]
        if insn["reset"]:
            acc[_indices(insn, uops)[0]] = 0
            return
        if insn["overwrite"]:
            acc[_indices(insn, uops)[0]] = 0
        batch, columns = self.machine.entry_shape(Buffer.INP)
        for product in self._plan(insn, uops):
            rows, taps = product.src.shape
            groups = len(product.wgt)
            inp = self._images[Buffer.INP][product.src]  # (rows, taps, batch, columns)
            left = inp.swapaxes(1, 2).reshape(rows * batch, taps * columns)
            wgt = self._images[Buffer.WGT][product.wgt]  # (groups, taps, outputs, columns)
            right = wgt.swapaxes(1, 2).reshape(-1, taps * columns)
            sums = (left @ right.T).reshape(rows, batch, groups, -1)
            # Casts between integers keep the low bits, and so does the sum of accumulators.
            narrow = sums.astype(np.int64).astype(acc.dtype)
            acc[product.dst] += narrow.transpose(2, 0, 1, 3)

    def _plan(self, insn: np.void, uops: NDArray[np.int32]) -> list[Product]:
        """Streams repeat their GEMMs with the same micro-ops, and planning takes longer."""
        key = (*(int(insn[field]) for field in GEMM_LOOPS), uops.tobytes())
        plan = self._plans.pop(key, None)
        if plan is None:
            indices = _indices(insn, uops)
            if insn["overwrite"]:  # of several products in one place the last one stays
                reversed_dst = indices[0][::-1]
                last = len(reversed_dst) - 1 - np.unique(reversed_dst, return_index=True)[1]
                indices = (indices[0][last], indices[1][last], indices[2][last])
            plan = plan_products(*indices, self._most_taps)
            while len(self._plans) >= MOST_PLANS:
                self._plans.pop(next(iter(self._plans)))
        self._plans[key] = plan  # last: the first in the dictionary is the one not used longest
        return plan

    def _alu(self, insn: np.void, uops: NDArray[np.int32]) -> None:
        acc, bits = self._images[Buffer.ACC], self.machine.bits(Buffer.ACC)
        op = AluOp(int(insn["alu_op"]))
        dst, src, _ = _indices(insn, uops)
        immediate = bool(insn["use_imm"])
        for run in _independent_runs(dst, dst[:0] if immediate else src, len(acc)):
            x = acc[dst[run]].astype(np.int64)
            y = np.int64(insn["imm"]) if immediate else acc[src[run]].astype(np.int64)
            acc[dst[run]] = wrap(alu_result(op, x, y), bits)

    def _requantize(self, insn: np.void, uops: NDArray[np.int32]) -> None:
        acc = self._images[Buffer.ACC]
        outers = int(insn["iter_out"])
        dst = _indices(insn, uops)[0].reshape(outers, -1)
        for outer in range(outers):
            bias = np.int64(0) if insn["use_imm"] else acc[bias_entry(insn, uops, outer)].copy()
            for run in _independent_runs(dst[outer], dst[outer][:0], len(acc)):
                chosen = dst[outer][run]
                acc[chosen] = requantized(insn, acc[chosen], bias, self.machine)

    def _uops(self, insn: np.void, number: int) -> NDArray[np.int32]:
        words = self._images[Buffer.UOP][int(insn["uop_begin"]) : int(insn["uop_end"])]
        uops = decode_uops(words, self.machine)
        check_uops(insn, number, uops, self.machine)
        return uops


def _indices(
    insn: np.void, uops: NDArray[np.int32]
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """dst, src and wgt index of every iteration, in execution order: micro-ops run fastest."""
    i, j = (np.arange(int(insn[f]), dtype=np.intp) for f in ("iter_out", "iter_in"))
    dst, src, wgt = (
        (
            i[:, None, None] * int(insn[f"{operand}_factor_out"])
            + j[:, None] * int(insn[f"{operand}_factor_in"])
            + uops[:, column]
        ).reshape(-1)
        for column, operand in enumerate(("dst", "src", "wgt"))
    )
    return dst, src, wgt


def _independent_runs(dst: NDArray[np.intp], src: NDArray[np.intp], depth: int) -> Iterator[slice]:
    """Consecutive iterations of which none reads or writes what an earlier one wrote.

    They may read what a later one writes: all reads of a run come first. ``src`` is empty where
    there is no second operand.
    """
    place = np.arange(len(dst))
    last_write = np.full(depth, -1, dtype=np.intp)
    last_write[dst] = place
    first_write = np.full(depth, len(dst), dtype=np.intp)
    first_write[dst[::-1]] = place[::-1]
    if (last_write[dst] == place).all() and (first_write[src] >= place[: len(src)]).all():
        yield slice(0, len(dst))
        return
    start, written = 0, set[int]()
    sources = src.tolist() if len(src) else dst.tolist()
    for number, (target, source) in enumerate(zip(dst.tolist(), sources, strict=True)):
        if target in written or source in written:
            yield slice(start, number)
            start, written = number, set()
        written.add(target)
    yield slice(start, len(dst))
