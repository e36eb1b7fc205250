"""What makes an instruction illegal on a machine: undefined encodings and accesses out of bounds.

Every engine reports through these functions, so the same fault has the same message whichever
engine meets it. Each check looks at one instruction, in plain integers.
"""

from collections.abc import Sequence
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from vta_isa.enums import AluOp, Buffer, FusedOp, LowKind, Opcode
from vta_isa.errors import StreamError
from vta_isa.insn import alu_operations
from vta_isa.machine import Machine
from vta_isa.microarch import REQUANTIZE_APART

from .apart import too_close

LOADABLE = (Buffer.UOP, Buffer.WGT, Buffer.INP, Buffer.ACC, Buffer.ACC_8BIT)
PADS = ("y_pad_before", "y_pad_after", "x_pad_before", "x_pad_after")


def check_program(table: NDArray[np.void], machine: Machine, dram_bytes: int) -> None:
    """Everything that can be known of a stream before it runs; the lowest instruction number first.

    ``table`` is ``(n,) INSN_DTYPE``; ``dram_bytes`` is the size of the DRAM image.
    """
    for number in range(len(table)):
        check_static(table[number], number, machine, dram_bytes)
    check_finish(table)


def check_finish(table: NDArray[np.void]) -> None:
    """FINISH is there, once, and last: it tells the host that everything before it is done."""
    if not len(table):
        raise StreamError("the stream is empty; it needs at least one FINISH, as its last insn")
    finishes = np.flatnonzero(table["opcode"] == Opcode.FINISH)
    last = len(table) - 1
    if not len(finishes):
        raise StreamError(
            f"the stream of {last + 1} insns has no FINISH; append one, as insn {last + 1}"
        )
    first = int(finishes[0])
    if first != last:
        raise StreamError(
            f"insn {first} (FINISH): stands before the end of the stream; only the last insn "
            f"({last}) may be FINISH; move it there or cut the stream behind it",
            insn=first,
        )


def check_static(record: np.void, number: int, machine: Machine, dram_bytes: int) -> None:
    """Every check of one instruction that does not need the contents of the micro-op memory.

    ``record`` is one element of an ``INSN_DTYPE`` table, ``number`` its place in the stream.
    """
    opcode = int(record["opcode"])
    if opcode not in tuple(Opcode):
        raise StreamError(
            f"insn {number}: opcode = {opcode} is undefined; opcodes are {_names(Opcode)}; was the "
            "stream made for this machine and revision B of the instruction set?",
            insn=number,
        )
    if opcode == Opcode.LOAD:
        _check_load(record, number, machine, dram_bytes)
    elif opcode == Opcode.STORE:
        _check_store(record, number, machine, dram_bytes)
    elif opcode in (Opcode.GEMM, Opcode.ALU):
        check_operation(record, number, machine)
        _check_uop_range(record, number, machine)


def check_uops(record: np.void, number: int, uops: NDArray[np.int32], machine: Machine) -> None:
    """Every index a GEMM or ALU instruction reaches through its micro-ops is inside its buffer.

    ``uops`` is ``(uop_end - uop_begin, 3)``: dst, src and wgt index of each micro-op. Fields the
    instruction does not use are not checked: src and wgt of a reset, src of an immediate, wgt of an
    ALU operation. A REQUANTIZE uses one src, that of the first micro-op; what it reads is not what
    it has just begun to write.
    """
    if not executes(record):
        return
    for column, (operand, buffer) in enumerate(_operands(record)):
        if buffer is None:
            continue
        indices = uops[:, column]
        if operand == "src" and is_requantize(record):
            indices = indices[:1]
        outer = int(record[f"{operand}_factor_out"]) * (int(record["iter_out"]) - 1)
        inner = int(record[f"{operand}_factor_in"]) * (int(record["iter_in"]) - 1)
        worst = int(np.argmax(indices))
        index = int(indices[worst])
        highest = index + outer + inner
        depth = machine.depth(buffer)
        if highest >= depth:
            raise _fault(
                record,
                number,
                f"{operand} index of uop {int(record['uop_begin']) + worst} reaches {highest}, "
                f"that is {index} + {outer} (outer loop) + {inner} (inner loop)",
                f"{buffer.name} has entries 0..{depth - 1}",
                "use smaller loops or factors, or check that the uops were loaded",
            )
    if is_requantize(record):
        _check_apart(record, number, uops)


def _check_apart(record: np.void, number: int, uops: NDArray[np.int32]) -> None:
    """No slot of a REQUANTIZE reads what one shortly before it writes."""
    found = too_close(record, uops)
    if found is not None:
        what = "the bias"
        if found.uop is not None:
            what = f"inner iteration {found.inner}, uop {int(record['uop_begin']) + found.uop},"
        raise _fault(
            record,
            number,
            f"outer iteration {found.outer}: {what} reads entry {found.entry} of ACC, written "
            f"{found.apart} places before",
            f"what is written can be read {REQUANTIZE_APART} places later or after that, where "
            "each iteration and each bias is one place",
            "order the uops so that entries repeat later, or use ADD, SHR, MAX and MIN",
        )


def executes(record: np.void) -> bool:
    """Whether a GEMM or ALU instruction does anything: its loops and its micro-op range not empty.

    ``uop_begin`` past ``uop_end`` is an empty range like any other.
    """
    return bool(
        record["iter_out"] > 0 and record["iter_in"] > 0 and record["uop_begin"] < record["uop_end"]
    )


def is_requantize(record: np.void) -> bool:
    """Whether it is an ALU instruction with fields of its own."""
    return bool(record["opcode"] == Opcode.ALU and record["alu_op"] == FusedOp.REQUANTIZE)


def check_operation(record: np.void, number: int, machine: Machine) -> None:
    """What a GEMM or ALU instruction asks for is defined on this machine."""
    if record["opcode"] == Opcode.GEMM:
        if not record["overwrite"]:
            return
        if not machine.extensions.gemm_overwrite:
            raise _fault(
                record,
                number,
                "overwrite = 1, which this machine does not have",
                "only machines with extensions.gemm_overwrite do",
                "reset the entries first, or take such a machine",
            )
        if record["reset"]:
            raise _fault(
                record,
                number,
                "overwrite = 1 and reset = 1",
                "at most one of them may be 1",
                "reset alone if the entries are to be 0",
            )
        return
    operations = alu_operations(machine)
    if int(record["alu_op"]) not in operations:
        raise StreamError(
            f"insn {number} (ALU): alu_op = {int(record['alu_op'])} is undefined; operations are "
            f"{_names(operations)}",
            insn=number,
        )
    if is_requantize(record) and int(record["low_kind"]) not in tuple(LowKind):
        raise StreamError(
            f"insn {number} ({name(record)}): low_kind = {int(record['low_kind'])} is undefined; "
            f"kinds are {_names(LowKind)}",
            insn=number,
        )


def _operands(record: np.void) -> Sequence[tuple[str, Buffer | None]]:
    """For dst, src and wgt: its name and the buffer it indexes, None where it is not used."""
    if record["opcode"] == Opcode.ALU:
        return (
            ("dst", Buffer.ACC),
            ("src", None if record["use_imm"] else Buffer.ACC),
            ("wgt", None),
        )
    if record["reset"]:
        return ("dst", Buffer.ACC), ("src", None), ("wgt", None)
    return ("dst", Buffer.ACC), ("src", Buffer.INP), ("wgt", Buffer.WGT)


def _check_load(record: np.void, number: int, machine: Machine, dram_bytes: int) -> None:
    buffer = int(record["buffer"])
    if buffer in (Buffer.INP, Buffer.WGT):
        for flag in ("pop_prev", "push_prev"):
            _check_flag(record, number, flag, "load", "before")
    if not record["x_size"]:
        return
    if buffer not in LOADABLE:
        raise StreamError(
            f"insn {number} (LOAD): buffer = {buffer} cannot be loaded; loadable are "
            f"{_names(LOADABLE)}; a LOAD with x_size = 0 carries tokens only",
            insn=number,
        )
    _check_sram(record, number, machine)
    _check_dram(record, number, machine, dram_bytes)


def _check_store(record: np.void, number: int, machine: Machine, dram_bytes: int) -> None:
    for flag in ("pop_next", "push_next"):
        _check_flag(record, number, flag, "store", "after")
    if not record["x_size"]:
        return
    if int(record["buffer"]) != Buffer.OUT:
        raise StreamError(
            f"insn {number} (STORE): buffer = {int(record['buffer'])} cannot be stored; only "
            f"{int(Buffer.OUT)} (OUT) can; a STORE with x_size = 0 carries tokens only",
            insn=number,
        )
    for pad in PADS:
        if record[pad]:
            raise _fault(
                record,
                number,
                f"{pad} = {int(record[pad])}",
                "a STORE has no padding, all pads are 0",
                "write the zeros from the host",
            )
    _check_sram(record, number, machine)
    _check_dram(record, number, machine, dram_bytes)


def _check_uop_range(record: np.void, number: int, machine: Machine) -> None:
    depth = machine.depth(Buffer.UOP)
    if executes(record) and record["uop_end"] > depth:
        raise _fault(
            record,
            number,
            f"uop_end = {int(record['uop_end'])} is past the buffer",
            f"UOP has {depth} entries, uop_end is at most {depth}",
            "split the kernel or reuse micro-ops by the loop factors",
        )


def _check_flag(record: np.void, number: int, flag: str, stage: str, side: str) -> None:
    if record[flag]:
        raise _fault(
            record,
            number,
            f"{flag} = 1, but the {stage} stage has no stage {side} it",
            f"{flag} must be 0",
            "hand tokens to and from the compute stage only",
        )


def _check_sram(record: np.void, number: int, machine: Machine) -> None:
    """Entries ``sram_base ..`` up to rows x columns, padding included, are inside the buffer."""
    buffer = Buffer(int(record["buffer"]))
    rows = int(record["y_pad_before"]) + int(record["y_size"]) + int(record["y_pad_after"])
    columns = int(record["x_pad_before"]) + int(record["x_size"]) + int(record["x_pad_after"])
    base = int(record["sram_base"])
    depth = machine.depth(buffer)
    if rows * columns and base + rows * columns > depth:
        raise _fault(
            record,
            number,
            f"sram_base = {base} and {rows} x {columns} entries reach entry "
            f"{base + rows * columns - 1}",
            f"{buffer.name} has entries 0..{depth - 1}",
            "split the tile or start it lower",
        )


def _check_dram(record: np.void, number: int, machine: Machine, dram_bytes: int) -> None:
    """The y_size x x_size core is inside the DRAM image; padding touches no DRAM."""
    rows, columns = int(record["y_size"]), int(record["x_size"])
    if not rows:
        return
    buffer = Buffer(int(record["buffer"]))
    unit = machine.entry_bytes(buffer)
    base, stride = int(record["dram_base"]), int(record["x_stride"])
    end = (base + (rows - 1) * stride + columns) * unit
    if end > dram_bytes:
        raise _fault(
            record,
            number,
            f"dram_base = {base} (byte {base * unit:#x}) with {rows} rows of {columns} entries, "
            f"stride {stride}, reaches byte {end - 1:#x}",
            _image(dram_bytes),
            f"check the base (in entries of {unit} bytes) and the size of the image",
        )


def _image(dram_bytes: int) -> str:
    return (
        f"the DRAM image has bytes 0..{dram_bytes - 1:#x}" if dram_bytes else "the image is empty"
    )


def _fault(record: np.void, number: int, came: str, allowed: str, advice: str) -> StreamError:
    return StreamError(f"insn {number} ({name(record)}): {came}; {allowed}; {advice}", insn=number)


def name(record: np.void) -> str:
    """The instruction in a word or two: ``LOAD INP``, ``GEMM``, ``ALU ADD``."""
    opcode = int(record["opcode"])
    if opcode not in tuple(Opcode):
        return f"opcode {opcode}"
    if opcode in (Opcode.LOAD, Opcode.STORE):
        return f"{Opcode(opcode).name} {_member(Buffer, int(record['buffer']))}"
    if opcode == Opcode.ALU:
        fused = is_requantize(record)
        return f"ALU {_member(FusedOp if fused else AluOp, int(record['alu_op']))}"
    return Opcode(opcode).name


def _member(kind: type[IntEnum], value: int) -> str:
    return kind(value).name if value in tuple(kind) else str(value)


def _names(members: Sequence[IntEnum] | type[IntEnum]) -> str:
    return ", ".join(f"{int(member)} ({member.name})" for member in members)
