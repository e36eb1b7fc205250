"""Hypothesis strategies for machines and instruction records."""

import numpy as np
from hypothesis import reject
from hypothesis import strategies as st
from numpy.typing import NDArray

from vta_isa import (
    INSN_DTYPE,
    AluOp,
    FusedOp,
    Machine,
    MachineError,
    Opcode,
    layouts,
    load_machine,
)
from vta_isa.layout import Layout

OPERAND_TYPES = ("int2", "int4", "int8", "int16")


@st.composite
def machines(draw: st.DrawFn) -> Machine:
    """Machines that encode, of any shape, types and buffer depths."""
    log2 = {key: draw(st.integers(0, 5)) for key in ("batch", "block_in", "block_out")}
    acc = draw(st.sampled_from(["int16", "int32"]))
    description = {
        "gemm": {key: 1 << value for key, value in log2.items()},
        "types": {
            "inp": draw(st.sampled_from(OPERAND_TYPES)),
            "wgt": draw(st.sampled_from(OPERAND_TYPES)),
            "acc": acc,
            "out": draw(st.sampled_from([*OPERAND_TYPES, acc])),
        },
        "sram": {key: 1 << draw(st.integers(4, 17)) for key in ("uop", "inp", "wgt", "acc")},
        "axi": {"data_bits": 1 << draw(st.integers(5, 9))},
    }
    try:
        return load_machine(description)
    except MachineError:
        reject()


def field_values(layout: Layout, name: str) -> st.SearchStrategy[int]:
    """Anything that fits the field, its edges often."""
    field = layout.slots[name].field
    edges = {field.low, field.high, min(1, field.high), 0}
    return st.one_of(st.sampled_from(sorted(edges)), st.integers(field.low, field.high))


@st.composite
def tables(draw: st.DrawFn, machine: Machine, max_insns: int = 8) -> NDArray[np.void]:
    """(n,) INSN_DTYPE of instructions that encode on `machine`; they need not make sense."""
    rows = []
    for _ in range(draw(st.integers(0, max_insns))):
        opcode = draw(st.sampled_from(list(Opcode)))
        fused = machine.extensions.alu_requantize and draw(st.booleans())
        alu_op = int(FusedOp.REQUANTIZE) if fused and opcode == Opcode.ALU else 0
        layout = layouts(machine).of(opcode, alu_op)
        row = {name: draw(field_values(layout, name)) for name in layout.slots}
        if alu_op:
            row["alu_op"] = alu_op
        elif row.get("alu_op") == FusedOp.REQUANTIZE and machine.extensions.alu_requantize:
            row["alu_op"] = int(AluOp.ADD)  # of the other layout
        rows.append(row | {"opcode": int(opcode)})
    table = np.zeros(len(rows), dtype=INSN_DTYPE)
    for number, row in enumerate(rows):
        for name, value in row.items():
            table[name][number] = value
    return table
