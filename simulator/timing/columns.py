"""What the timing of an instruction depends on, for a whole stream at once."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vta_isa import microarch
from vta_isa.enums import Buffer, Opcode, Stage
from vta_isa.insn import stages
from vta_isa.machine import Machine

# Kinds of instruction, by what they keep busy. The numbers are array indices in engine.py.
NOOP, GEMM, ALU, LOAD, STORE = range(5)

# Bits of the flags column.
POP_PREV, POP_NEXT, PUSH_PREV, PUSH_NEXT = 1, 2, 4, 8

# Flags with a token queue behind them; load has no stage before it, store none after it.
CONNECTED = {
    Stage.LOAD: POP_NEXT | PUSH_NEXT,
    Stage.COMPUTE: POP_PREV | POP_NEXT | PUSH_PREV | PUSH_NEXT,
    Stage.STORE: POP_PREV | PUSH_PREV,
}


class Columns(NamedTuple):
    """One element per instruction, (n,) int64 each (lists where the engine runs uncompiled)."""

    stage: Any
    kind: Any
    flags: Any
    cycles: Any  # from start to last cycle, both included; NOOP, GEMM and ALU only
    address: Any  # bytes; LOAD and STORE only, as all that follows
    row_bytes: Any
    stride_bytes: Any
    rows: Any  # in DRAM, padding excluded
    pads: Any  # entries of zeros to write

    def to_lists(self) -> "Columns":
        """The same numbers as Python lists, which CPython indexes faster than arrays."""
        return Columns(*(column.tolist() for column in self))


def entry_bytes(machine: Machine) -> NDArray[np.int64]:
    """(8,) bytes per entry of each buffer number; 0 where the number is undefined."""
    sizes = [machine.entry_bytes(Buffer(b)) if b in tuple(Buffer) else 0 for b in range(8)]
    return np.array(sizes, dtype=np.int64)


def iterations(table: NDArray[np.void]) -> NDArray[np.int64]:
    """(n,) uop iterations of each GEMM and ALU instruction, 0 for the others."""
    uops = table["uop_end"].astype(np.int64) - table["uop_begin"]
    np.maximum(uops, 0, out=uops)
    uops *= table["iter_out"]
    uops *= table["iter_in"]
    return uops


def columns(table: NDArray[np.void], machine: Machine) -> Columns:
    """Timing columns of ``(n,) INSN_DTYPE``.

    What is undefined (opcodes, buffers) takes the time of a no-op; checks.py reports it.
    """
    n = len(table)
    opcode = table["opcode"]
    stage = stages(table).astype(np.int64)
    kind = np.full(n, NOOP, dtype=np.int64)
    cycles = np.full(n, microarch.NOOP_CYCLES, dtype=np.int64)

    flags = np.zeros(n, dtype=np.int64)
    for bit, name in ((1, "pop_prev"), (2, "pop_next"), (4, "push_prev"), (8, "push_next")):
        flags += table[name] * bit
    connected = np.zeros(len(Stage) + 1, dtype=np.int64)
    connected[list(CONNECTED)] = list(CONNECTED.values())
    flags &= connected[stage]

    where = np.flatnonzero((opcode == Opcode.GEMM) | (opcode == Opcode.ALU))
    work = table[where]
    repeats = iterations(work)
    alu = work["opcode"] == Opcode.ALU
    tensor = microarch.alu_interval(machine, use_imm=False)
    interval = np.where(alu & (work["use_imm"] == 0), tensor, 1)
    depth = np.where(alu, microarch.alu_depth(), microarch.gemm_depth(machine))
    some = repeats > 0
    kind[where] = np.where(some, np.where(alu, ALU, GEMM), NOOP)
    cycles[where] = np.where(some, repeats * interval + depth, microarch.NOOP_CYCLES)

    address, row_bytes, stride_bytes, rows, pads = (np.zeros(n, dtype=np.int64) for _ in range(5))
    where = np.flatnonzero((opcode == Opcode.LOAD) | (opcode == Opcode.STORE))
    mem = table[where]
    store = mem["opcode"] == Opcode.STORE
    unit = entry_bytes(machine)[np.where(store, Buffer.OUT, mem["buffer"] & 7)]
    x_size, y_size = mem["x_size"].astype(np.int64), mem["y_size"].astype(np.int64)
    padded = (mem["y_pad_before"] + y_size + mem["y_pad_after"]) * (
        mem["x_pad_before"] + x_size + mem["x_pad_after"]
    )
    area = np.where(store, y_size, padded)
    some = (x_size > 0) & (area > 0) & (unit > 0)
    kind[where] = np.where(some, np.where(store, STORE, LOAD), NOOP)
    address[where] = mem["dram_base"] * unit
    row_bytes[where] = x_size * unit
    stride_bytes[where] = mem["x_stride"] * unit
    rows[where] = np.where(some, y_size, 0)
    pads[where] = np.where(some & ~store, padded - x_size * y_size, 0)
    return Columns(stage, kind, flags, cycles, address, row_bytes, stride_bytes, rows, pads)
