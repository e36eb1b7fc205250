"""The checks of ``simulator.checks`` over whole streams at once.

They need not say what is wrong, only where to look: instructions that cannot be ruled out here are
given to the scalar checks, which decide and word the message.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from vta_isa.enums import AluOp, Buffer, FusedOp, LowKind, Opcode
from vta_isa.errors import StreamError
from vta_isa.insn import INSN_DTYPE
from vta_isa.machine import Machine

from ..checks import LOADABLE, PADS, check_finish, check_static

BLOCK_INSNS = 4096  # half a megabyte of records
TRANSFER_FIELDS = (
    *("opcode", "pop_prev", "pop_next", "push_prev", "push_next"),
    *("buffer", "sram_base", "dram_base", "y_size", "x_size", "x_stride"),
    *PADS,
)


class StaticChecks:
    """``simulator.checks.check_program`` for one machine, and the range of every field besides."""

    def __init__(self, machine: Machine):
        self.machine = machine
        # Indexed by buffer number; undefined buffers count as UOP, they are suspect anyway.
        defined = [Buffer(b) if b in tuple(Buffer) else Buffer.UOP for b in range(8)]
        self._depths = np.array([machine.depth(buffer) for buffer in defined])
        self._entry_bytes = np.array([machine.entry_bytes(buffer) for buffer in defined])
        self._loadable = np.isin(np.arange(8), LOADABLE)
        if machine.bits(Buffer.ACC) < machine.bits(Buffer.ACC_8BIT):
            self._loadable[Buffer.ACC_8BIT] = False

    def __call__(self, table: NDArray[np.void], dram_bytes: int) -> None:
        """Raise ``StreamError`` for the first instruction of ``(n,) INSN_DTYPE`` that is illegal.

        Native code computes addresses from the fields, so a table that no encoding can hold must
        not reach it.
        """
        for first, part in blocks(table):
            _check_fields(part, first)
            for place in np.flatnonzero(self._suspects(part, dram_bytes)).tolist():
                check_static(part[place], first + place, self.machine, dram_bytes)
        check_finish(table)

    def _suspects(self, table: NDArray[np.void], dram_bytes: int) -> NDArray[np.bool_]:
        """``(n,) bool``: instructions that ``check_static`` might reject."""
        opcode = table["opcode"]
        loops = (opcode == Opcode.GEMM) | (opcode == Opcode.ALU)
        suspect: NDArray[np.bool_] = opcode > max(Opcode)
        suspect |= loops & (table["uop_end"] > self._depths[Buffer.UOP])
        suspect |= self._undefined(table)
        # Columns are gathered one by one: NumPy is slow at copying whole records.
        transfers = np.flatnonzero((opcode == Opcode.LOAD) | (opcode == Opcode.STORE))
        columns = {name: table[name][transfers] for name in TRANSFER_FIELDS}
        suspect[transfers] = self._suspect_transfers(columns, dram_bytes)
        return suspect

    def _undefined(self, table: NDArray[np.void]) -> NDArray[np.bool_]:
        """GEMM and ALU instructions that ask for what the machine may not have."""
        opcode, alu_op, overwrite = table["opcode"], table["alu_op"], table["overwrite"] != 0
        undefined: NDArray[np.bool_] = (opcode == Opcode.ALU) & (alu_op > max(AluOp))
        if self.machine.extensions.alu_requantize:
            undefined &= (alu_op != FusedOp.REQUANTIZE) | (table["low_kind"] > max(LowKind))
        if overwrite.any():
            refused = table["reset"] != 0 if self.machine.extensions.gemm_overwrite else True
            undefined |= (opcode == Opcode.GEMM) & overwrite & refused
        return undefined

    def _suspect_transfers(
        self, columns: dict[str, NDArray[np.integer]], dram_bytes: int
    ) -> NDArray[np.bool_]:
        """LOADs and STOREs out of bounds, or with a flag, buffer or padding that is not theirs."""
        buffer, loads = columns["buffer"], columns["opcode"] == Opcode.LOAD
        on_load_stage = loads & ((buffer == Buffer.INP) | (buffer == Buffer.WGT))
        suspect: NDArray[np.bool_] = on_load_stage & (
            (columns["pop_prev"] | columns["push_prev"]) != 0
        )
        suspect |= ~loads & ((columns["pop_next"] | columns["push_next"]) != 0)

        pads = columns[PADS[0]] | columns[PADS[1]] | columns[PADS[2]] | columns[PADS[3]]
        storable = (buffer == Buffer.OUT) & (pads == 0)
        moves = ~np.where(loads, self._loadable[buffer & 7], storable) | (buffer > 7)
        moves |= self._out_of_bounds(columns, dram_bytes)
        suspect |= (columns["x_size"] != 0) & moves
        return suspect

    def _out_of_bounds(
        self, columns: dict[str, NDArray[np.integer]], dram_bytes: int
    ) -> NDArray[np.bool_]:
        """Past the SRAM or the DRAM image."""
        buffer = columns["buffer"] & 7
        y_size, x_size = columns["y_size"].astype(np.int64), columns["x_size"]
        rows = y_size + columns["y_pad_before"] + columns["y_pad_after"]
        pitch = x_size + columns["x_pad_before"] + columns["x_pad_after"]
        past_sram = columns["sram_base"] + rows * pitch > self._depths[buffer]
        reached = columns["dram_base"] + (y_size - 1) * columns["x_stride"] + x_size
        past_dram = (y_size > 0) & (reached * self._entry_bytes[buffer] > dram_bytes)
        past: NDArray[np.bool_] = past_sram | past_dram
        return past


def self_modifying(table: NDArray[np.void], machine: Machine) -> bool:
    """Whether a STORE writes DRAM that a LOAD of micro-ops reads."""
    opcode = table["opcode"]
    moves = (table["x_size"] != 0) & (table["y_size"] != 0)
    loads = moves & (opcode == Opcode.LOAD) & (table["buffer"] == Buffer.UOP)
    stores = moves & (opcode == Opcode.STORE)
    if not loads.any() or not stores.any():
        return False
    first, end = _dram_span(table, loads, machine.entry_bytes(Buffer.UOP))
    order = np.argsort(first)
    first, furthest = first[order], np.maximum.accumulate(end[order])
    low, high = _dram_span(table, stores, machine.entry_bytes(Buffer.OUT))
    starting_below = np.searchsorted(first, high)  # loads that start before the store's end
    reaching = furthest[np.maximum(starting_below - 1, 0)]
    return bool(((starting_below > 0) & (reaching > low)).any())


def _dram_span(
    table: NDArray[np.void], chosen: NDArray[np.bool_], unit: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First byte and the byte after the last one that each chosen LOAD or STORE touches."""
    base = table["dram_base"][chosen]
    rows = table["y_size"][chosen].astype(np.int64) - 1
    reach = rows * table["x_stride"][chosen] + table["x_size"][chosen]
    return base * unit, (base + reach) * unit


def blocks(table: NDArray[np.void]) -> Iterator[tuple[int, NDArray[np.void]]]:
    """The table in parts that fit the cache, each with the number of its first instruction.

    A column of the table is one value per cache line or two, and many columns are looked at.
    """
    for first in range(0, len(table), BLOCK_INSNS):
        yield first, table[first : first + BLOCK_INSNS]


def _check_fields(table: NDArray[np.void], first: int) -> None:
    """Every field is one an instruction can hold: 32 bits for dram_base, 16 for the others.

    ``first`` is the number of the first instruction.
    """
    words = np.ascontiguousarray(table).view(np.int32).reshape(len(table), -1)
    imm = table["imm"]
    if not (words & _EXCESS_BITS).any() and (imm == imm.astype(np.int16)).all():
        return
    for name, (low, high) in _RANGES.items():
        wrong = (table[name] < low) | (table[name] > high)
        if wrong.any():
            place = int(np.argmax(wrong))
            raise StreamError(
                f"insn {first + place}: {name} = {int(table[name][place])} fits no instruction; "
                f"allowed are {low}..{high}; encode and decode the stream to find the cause",
                insn=first + place,
            )


_RANGES = {name: (0, 0xFFFF) for name in INSN_DTYPE.names or ()}
_RANGES |= {"imm": (-0x8000, 0x7FFF), "dram_base": (0, 0xFFFFFFFF)}


def _excess_bits() -> NDArray[np.int32]:
    """Of a record as 32-bit words: the bits that are 0 in every unsigned field within its range."""
    record = np.zeros((), dtype=INSN_DTYPE)
    for name, (low, high) in _RANGES.items():
        record[name] = 0 if low else ~high
    return record.reshape(1).view(np.int32)


_EXCESS_BITS = _excess_bits()
