"""What a stream leaves in DRAM, compared with what it should leave."""

import numpy as np
from numpy.typing import NDArray

from vta_isa.encoding import decode_stream
from vta_isa.enums import Buffer, Opcode
from vta_isa.errors import StreamError
from vta_isa.machine import Machine

from ..machine import Simulator
from .findings import Code, Finding, severity_of
from .report import DRAM, insn_lines


def wrong_result(
    words: NDArray[np.uint64],
    machine: Machine,
    dram: NDArray[np.uint8],
    expected: NDArray[np.uint8],
) -> Finding | None:
    """The first byte in which ``dram (bytes,) uint8`` differs from ``expected`` after the launch.

    For a stream without errors: any memory gives the bytes computed here. It runs on a machine
    fresh from reset. Raises StreamError where the images have different lengths.
    """
    if len(dram) != len(expected):
        raise StreamError(
            f"the expected DRAM image has {len(expected)} bytes, the one before the launch "
            f"{len(dram)}; give two images of the same memory"
        )
    after = dram.copy()
    Simulator(machine, timing=False).launch(words, after)
    wrong = np.flatnonzero(after != expected)
    if not wrong.size:
        return None
    first, last = int(wrong[0]), int(wrong[-1])
    insn = last_store(decode_stream(words, machine), machine, first)
    origin = "no instruction stores there" if insn is None else f"insn {insn} (STORE) stores it"
    detail = () if insn is None else insn_lines(words, machine, insn)
    return Finding(
        Code.WRONG_RESULT,
        severity_of(Code.WRONG_RESULT, fresh=True),
        f"{wrong.size} byte{'s' * (wrong.size > 1)} of DRAM in {first:#x}..{last:#x} "
        f"{'are' if wrong.size > 1 else 'is'} not as expected; byte {first:#x} is "
        f"{after[first]:#04x} instead of {expected[first]:#04x}, and {origin}",
        insn=insn,
        memory=DRAM,
        low=first,
        high=last,
        detail=detail,
    )


def last_store(table: NDArray[np.void], machine: Machine, address: int) -> int | None:
    """Number of the last STORE that writes the byte at ``address``; None if there is none."""
    unit = machine.entry_bytes(Buffer.OUT)
    entry = address // unit
    for number in reversed(np.flatnonzero(table["opcode"] == Opcode.STORE).tolist()):
        record = table[number]
        rows = int(record["dram_base"]) + np.arange(record["y_size"]) * int(record["x_stride"])
        if ((rows <= entry) & (entry < rows + int(record["x_size"]))).any():
            return int(number)
    return None
