"""The checks of ``simulator.checks`` over whole streams at once.

They need not say what is wrong, only where to look: instructions that cannot be ruled out here are
given to the scalar checks, which decide and word the message.
"""

import numpy as np
from numpy.typing import NDArray

from vta_isa.enums import AluOp, Buffer, Opcode
from vta_isa.errors import StreamError
from vta_isa.insn import INSN_DTYPE
from vta_isa.machine import Machine

from ..checks import LOADABLE, PADS, check_finish, check_static


def check_program(table: NDArray[np.void], machine: Machine, dram_bytes: int) -> None:
    """What ``simulator.checks.check_program`` does, and the range of every field besides.

    Native code computes addresses from the fields, so a table that no encoding can hold must not
    reach it. ``table`` is ``(n,) INSN_DTYPE``.
    """
    _check_fields(table)
    for number in np.flatnonzero(_suspects(table, machine, dram_bytes)).tolist():
        check_static(table[number], number, machine, dram_bytes)
    check_finish(table)


def self_modifying(table: NDArray[np.void], machine: Machine) -> bool:
    """Whether a STORE writes DRAM that a LOAD of micro-ops reads."""
    mem = np.flatnonzero((table["x_size"] != 0) & (table["y_size"] != 0))
    records = table[mem]
    loads = records[(records["opcode"] == Opcode.LOAD) & (records["buffer"] == Buffer.UOP)]
    stores = records[records["opcode"] == Opcode.STORE]
    if not len(loads) or not len(stores):
        return False
    first, end = _dram_span(loads, machine.entry_bytes(Buffer.UOP))
    order = np.argsort(first)
    first, furthest = first[order], np.maximum.accumulate(end[order])
    low, high = _dram_span(stores, machine.entry_bytes(Buffer.OUT))
    starting_below = np.searchsorted(first, high)  # loads that start before the store's end
    reaching = furthest[np.maximum(starting_below - 1, 0)]
    return bool(((starting_below > 0) & (reaching > low)).any())


def _dram_span(records: NDArray[np.void], unit: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First byte and the byte after the last one that each access touches."""
    base = records["dram_base"]
    rows = (records["y_size"].astype(np.int64) - 1) * records["x_stride"]
    return base * unit, (base + rows + records["x_size"]) * unit


def _check_fields(table: NDArray[np.void]) -> None:
    """Every field is one an instruction can hold: 32 bits for dram_base, 16 for the others."""
    if not len(table):
        return
    words = np.ascontiguousarray(table).view(np.int32).reshape(len(table), -1)
    low, high = words.min(axis=0), words.max(axis=0)
    for name, (kind, offset) in _FIELDS.items():
        signed = name == "imm"
        allowed = (-0x8000, 0x7FFF) if signed else (0, 0xFFFF)
        if kind.itemsize == 8:
            allowed = (0, 0xFFFFFFFF)
            column = table[name]
            found = (int(column.min()), int(column.max()))
        else:
            found = (int(low[offset // 4]), int(high[offset // 4]))
        if found[0] < allowed[0] or found[1] > allowed[1]:
            wrong = (table[name] < allowed[0]) | (table[name] > allowed[1])
            number = int(np.argmax(wrong))
            raise StreamError(
                f"insn {number}: {name} = {int(table[name][number])} fits no instruction; allowed "
                f"are {allowed[0]}..{allowed[1]}; encode and decode the stream to find the cause",
                insn=number,
            )


_FIELDS: dict[str, tuple[np.dtype[np.generic], int]] = {
    name: (entry[0], entry[1]) for name, entry in (INSN_DTYPE.fields or {}).items()
}


def _suspects(table: NDArray[np.void], machine: Machine, dram_bytes: int) -> NDArray[np.bool_]:
    """``(n,) bool``: instructions that ``check_static`` might reject."""
    opcode = table["opcode"]
    suspect = opcode > max(Opcode)
    loads = np.flatnonzero(opcode == Opcode.LOAD)
    suspect[loads] |= _suspect_loads(table[loads], machine, dram_bytes)
    stores = np.flatnonzero(opcode == Opcode.STORE)
    suspect[stores] |= _suspect_stores(table[stores], machine, dram_bytes)
    loops = np.flatnonzero((opcode == Opcode.GEMM) | (opcode == Opcode.ALU))
    suspect[loops] |= table["uop_end"][loops] > machine.depth(Buffer.UOP)
    suspect[loops] |= table["alu_op"][loops] > max(AluOp)
    return suspect


def _suspect_loads(loads: NDArray[np.void], machine: Machine, dram_bytes: int) -> NDArray[np.bool_]:
    buffer = loads["buffer"]
    on_load_stage = (buffer == Buffer.INP) | (buffer == Buffer.WGT)
    flags = (loads["pop_prev"] | loads["push_prev"]) != 0
    known = np.isin(buffer, LOADABLE)
    if machine.bits(Buffer.ACC) < machine.bits(Buffer.ACC_8BIT):
        known &= buffer != Buffer.ACC_8BIT
    moves = ~known | _out_of_bounds(loads, machine, dram_bytes)
    suspect: NDArray[np.bool_] = (on_load_stage & flags) | ((loads["x_size"] != 0) & moves)
    return suspect


def _suspect_stores(
    stores: NDArray[np.void], machine: Machine, dram_bytes: int
) -> NDArray[np.bool_]:
    flags = (stores["pop_next"] | stores["push_next"]) != 0
    wrong = stores["buffer"] != Buffer.OUT
    for pad in PADS:
        wrong |= stores[pad] != 0
    moves = wrong | _out_of_bounds(stores, machine, dram_bytes)
    suspect: NDArray[np.bool_] = flags | ((stores["x_size"] != 0) & moves)
    return suspect


def _out_of_bounds(
    records: NDArray[np.void], machine: Machine, dram_bytes: int
) -> NDArray[np.bool_]:
    """Past the SRAM or the DRAM image; undefined buffers count as UOP, they are suspect anyway."""
    defined = [buffer if buffer in tuple(Buffer) else Buffer.UOP for buffer in range(8)]
    depths = np.array([machine.depth(Buffer(buffer)) for buffer in defined])
    units = np.array([machine.entry_bytes(Buffer(buffer)) for buffer in defined])
    buffer = records["buffer"] & 7
    wide = {name: records[name].astype(np.int64) for name in ("y_size", "x_size", *PADS)}
    rows = wide["y_pad_before"] + wide["y_size"] + wide["y_pad_after"]
    columns = wide["x_pad_before"] + wide["x_size"] + wide["x_pad_after"]
    past_sram = records["sram_base"] + rows * columns > depths[buffer]
    reached = records["dram_base"] + (wide["y_size"] - 1) * records["x_stride"] + wide["x_size"]
    past_dram = (wide["y_size"] > 0) & (reached * units[buffer] > dram_bytes)
    past: NDArray[np.bool_] = past_sram | past_dram
    return past
