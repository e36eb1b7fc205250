"""What each instruction means, untimed and obvious: the judge of every other engine.

Plain NumPy on the decoded table, one instruction after the other, one GEMM or ALU iteration after
the other. Values are computed as exact integers and then cut to the bits of the memory they are
written to, so every overflow wraps.
"""

from collections.abc import Iterator
from itertools import product

import numpy as np
from numpy.typing import NDArray

from vta_isa.encoding import decode_uops
from vta_isa.enums import AluOp, Buffer, LowKind, Opcode
from vta_isa.machine import Machine
from vta_isa.tensors import pack_entries, unpack_entries

from .checks import check_program, check_uops, executes, is_requantize
from .order import execution_order, tokens_after

MAX_SHIFT = 31  # SHR amounts beyond ±31 count as ±31, whatever the width of the accumulator


class ReferenceState:
    """The SRAMs of a machine and its dependence tokens; both persist from launch to launch.

    ``uop (depth,) uint32``; ``inp (depth, batch, block_in)``, ``wgt (depth, block_out, block_in)``
    and ``acc (depth, batch, block_out)`` in the scalar's own type, or int8 where it has fewer bits.
    All are zero at first.
    """

    def __init__(self, machine: Machine):
        def zeros(buffer: Buffer) -> NDArray[np.integer]:
            shape = (machine.depth(buffer), *machine.entry_shape(buffer))
            return np.zeros(shape, dtype=machine.dtype(buffer))

        self.machine = machine
        self.uop: NDArray[np.uint32] = np.zeros(machine.depth(Buffer.UOP), dtype=np.uint32)
        self.inp = zeros(Buffer.INP)
        self.wgt = zeros(Buffer.WGT)
        self.acc = zeros(Buffer.ACC)
        self.tokens: tuple[int, int, int, int] = (0, 0, 0, 0)  # indexed by TokenQueue

    @property
    def out(self) -> NDArray[np.integer]:
        """``(depth, batch, block_out)``: what STORE reads, the low bits of every accumulator."""
        machine = self.machine
        return wrap(self.acc, machine.bits(Buffer.OUT)).astype(machine.dtype(Buffer.OUT))

    def sram(self, buffer: Buffer) -> NDArray[np.integer]:
        """The contents of one memory; ``OUT`` is a fresh array, the others are the state itself."""
        memories = {
            Buffer.UOP: self.uop,
            Buffer.WGT: self.wgt,
            Buffer.INP: self.inp,
            Buffer.ACC: self.acc,
        }
        return self.out if buffer == Buffer.OUT else memories[buffer]

    def copy(self) -> "ReferenceState":
        """A state of its own with the same contents."""
        twin = ReferenceState(self.machine)
        twin.adopt(self)
        return twin

    def adopt(self, other: "ReferenceState") -> None:
        """Take over the contents of ``other``, a state of the same machine."""
        for name in ("uop", "inp", "wgt", "acc"):
            getattr(self, name)[...] = getattr(other, name)
        self.tokens = other.tokens


def run(table: NDArray[np.void], dram: NDArray[np.uint8], state: ReferenceState) -> None:
    """Run one launch of ``table (n,) INSN_DTYPE`` on ``dram (bytes,)``, changing dram and state.

    Instructions run in program order, or in the nearest order that their tokens allow. Raises
    ``StreamError`` or ``DeadlockError``, and then neither ``dram`` nor ``state`` has changed.
    """
    machine = state.machine
    check_program(table, machine, len(dram))
    order = execution_order(table, machine, state.tokens)
    after, image = state.copy(), dram.copy()
    for number in order.tolist():
        step(table[number], number, image, after)
    after.tokens = tokens_after(table, state.tokens)
    state.adopt(after)
    dram[...] = image


def step(insn: np.void, number: int, dram: NDArray[np.uint8], state: ReferenceState) -> None:
    """Execute one instruction that passed the static checks; FINISH and no-ops do nothing."""
    match int(insn["opcode"]):
        case Opcode.LOAD if insn["x_size"]:
            load(insn, dram, state)
        case Opcode.STORE if insn["x_size"]:
            store(insn, dram, state)
        case Opcode.GEMM if executes(insn):
            gemm(insn, _uops(insn, number, state), state)
        case Opcode.ALU if executes(insn) and is_requantize(insn):
            requantize(insn, _uops(insn, number, state), state)
        case Opcode.ALU if executes(insn):
            alu(insn, _uops(insn, number, state), state)


def load(insn: np.void, dram: NDArray[np.uint8], state: ReferenceState) -> None:
    """Fill dense SRAM rows from strided DRAM rows, with zeros around the y_size x x_size core."""
    machine = state.machine
    buffer = Buffer(int(insn["buffer"]))
    memory = state.sram(Buffer.ACC if buffer == Buffer.ACC_8BIT else buffer)
    unit = machine.entry_bytes(buffer)
    before, core, after = (int(insn[f]) for f in ("x_pad_before", "x_size", "x_pad_after"))
    first_row, rows = int(insn["y_pad_before"]), int(insn["y_size"])
    pitch = before + core + after
    for row in range(first_row + rows + int(insn["y_pad_after"])):
        left = int(insn["sram_base"]) + row * pitch
        memory[left : left + pitch] = 0
        if first_row <= row < first_row + rows:
            entry = int(insn["dram_base"]) + (row - first_row) * int(insn["x_stride"])
            raw = dram[entry * unit : (entry + core) * unit]
            memory[left + before : left + before + core] = _scalars(raw, buffer, machine)


def store(insn: np.void, dram: NDArray[np.uint8], state: ReferenceState) -> None:
    """Write dense OUT rows to strided DRAM rows; where rows overlap, the later one stays."""
    machine = state.machine
    unit = machine.entry_bytes(Buffer.OUT)
    size = int(insn["x_size"])
    for row in range(int(insn["y_size"])):
        left = int(insn["sram_base"]) + row * size
        entry = int(insn["dram_base"]) + row * int(insn["x_stride"])
        narrow = wrap(state.acc[left : left + size], machine.bits(Buffer.OUT))
        packed = pack_entries(narrow, Buffer.OUT, machine)
        dram[entry * unit : (entry + size) * unit] = packed.reshape(-1)


def gemm(insn: np.void, uops: NDArray[np.int32], state: ReferenceState) -> None:
    """ACC[dst] += INP[src] x WGT[wgt] transposed, iteration by iteration.

    With ``overwrite`` ACC[dst] = that product, with ``reset`` ACC[dst] = 0.
    """
    bits = state.machine.bits(Buffer.ACC)
    for dst, src, wgt in _iterations(insn, uops):
        if insn["reset"]:
            state.acc[dst] = 0
        else:
            product_sum = state.inp[src].astype(np.int64) @ state.wgt[wgt].astype(np.int64).T
            before = 0 if insn["overwrite"] else state.acc[dst]
            state.acc[dst] = wrap(before + product_sum, bits)


def alu(insn: np.void, uops: NDArray[np.int32], state: ReferenceState) -> None:
    """ACC[dst] = op(ACC[dst], immediate or ACC[src]), iteration by iteration."""
    bits = state.machine.bits(Buffer.ACC)
    op = AluOp(int(insn["alu_op"]))
    for dst, src, _ in _iterations(insn, uops):
        x = state.acc[dst].astype(np.int64)
        y = np.int64(insn["imm"]) if insn["use_imm"] else state.acc[src].astype(np.int64)
        state.acc[dst] = wrap(alu_result(op, x, y), bits)


def requantize(insn: np.void, uops: NDArray[np.int32], state: ReferenceState) -> None:
    """ACC[dst] = min(max((ACC[dst] + bias) >> shift, low), high), iteration by iteration.

    An outer iteration begins with reading its entry of bias, where there is a bias: src of the
    first micro-op, moved by the outer loop alone. The sum wraps.
    """
    for outer in range(int(insn["iter_out"])):
        bias = np.int64(0) if insn["use_imm"] else state.acc[bias_entry(insn, uops, outer)].copy()
        for dst, _, _ in _iterations(insn, uops, range(outer, outer + 1)):
            state.acc[dst] = requantized(insn, state.acc[dst], bias, state.machine)


def bias_entry(insn: np.void, uops: NDArray[np.int32], outer: int) -> int:
    """The ACC entry that a REQUANTIZE with a bias adds in an outer iteration."""
    return int(uops[0, 1]) + outer * int(insn["src_factor_out"])


def requantized(
    insn: np.void,
    acc: NDArray[np.integer],
    bias: NDArray[np.integer] | np.integer,
    machine: Machine,
) -> NDArray[np.int64]:
    """What a REQUANTIZE makes of accumulators, of any shape."""
    high = int(insn["high"])
    low = {LowKind.ZERO: 0, LowKind.NEGATIVE: -high, LowKind.COMPLEMENT: -high - 1}
    total = wrap(acc.astype(np.int64) + bias, machine.bits(Buffer.ACC))
    shifted = total >> np.int64(insn["shift"])
    clipped: NDArray[np.int64] = np.clip(shifted, low[LowKind(int(insn["low_kind"]))], high)
    return clipped


def alu_result(
    op: AluOp, x: NDArray[np.int64], y: NDArray[np.int64] | np.int64
) -> NDArray[np.int64]:
    """``op`` on exact integers. SHR by a negative amount shifts left."""
    match op:
        case AluOp.MIN:
            return np.minimum(x, y)
        case AluOp.MAX:
            return np.maximum(x, y)
        case AluOp.ADD:
            return x + y
        case AluOp.MUL:
            return x * y
        case AluOp.SHR:
            amount = np.clip(y, -MAX_SHIFT, MAX_SHIFT)
            return (x >> np.maximum(amount, 0)) << np.maximum(-amount, 0)


def wrap(values: NDArray[np.integer], bits: int) -> NDArray[np.int64]:
    """The low ``bits`` of each value, read as two's complement."""
    half = np.int64(1) << np.int64(bits - 1)
    return ((values.astype(np.int64) + half) & (2 * half - 1)) - half


def _uops(insn: np.void, number: int, state: ReferenceState) -> NDArray[np.int32]:
    """``(uop_end - uop_begin, 3)``: dst, src, wgt of the instruction's micro-ops, checked."""
    words = state.uop[int(insn["uop_begin"]) : int(insn["uop_end"])]
    uops = decode_uops(words, state.machine)
    check_uops(insn, number, uops, state.machine)
    return uops


def _iterations(
    insn: np.void, uops: NDArray[np.int32], outer_loop: range | None = None
) -> Iterator[tuple[int, int, int]]:
    """dst, src and wgt index of every iteration; the micro-op runs fastest, then the inner loop.

    ``outer_loop`` are the outer iterations, by default all.
    """
    if outer_loop is None:
        outer_loop = range(int(insn["iter_out"]))
    outer, inner = (
        np.array([int(insn[f"{operand}_factor_{level}"]) for operand in ("dst", "src", "wgt")])
        for level in ("out", "in")
    )
    for i, j in product(outer_loop, range(int(insn["iter_in"]))):
        for uop in uops:
            dst, src, wgt = (uop + i * outer + j * inner).tolist()
            yield dst, src, wgt


def _scalars(raw: NDArray[np.uint8], buffer: Buffer, machine: Machine) -> NDArray[np.integer]:
    """DRAM bytes as entries of the memory that ``buffer`` fills."""
    if buffer == Buffer.UOP:
        return raw.copy().view("<u4")
    return unpack_entries(raw, buffer, machine)
