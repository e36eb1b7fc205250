"""From instructions to what their timing depends on, in the subset of Python of engine.py."""

from typing import Any, NamedTuple

from vta_isa.enums import AluOp, Buffer, FusedOp, Opcode

from .layout import (
    ADDRESS,
    ALU,
    ALU_OPS,
    BYTES,
    COMPUTE,
    CONNECTED,
    COUNT,
    CYCLES,
    FLAGS,
    GEMM,
    GEMM_OPS,
    HEAD,
    INSN_FIELDS,
    KIND,
    LEAVING,
    LOAD,
    LOADER,
    NEXT,
    NOOP,
    PADS,
    RESET_OPS,
    ROW_BYTES,
    ROWS,
    STAGE,
    STORE,
    STORER,
    STRIDE_BYTES,
    Rules,
)

LOAD_OP = int(Opcode.LOAD)
STORE_OP = int(Opcode.STORE)
GEMM_OP = int(Opcode.GEMM)
ALU_OP = int(Opcode.ALU)
MUL = int(AluOp.MUL)
REQUANTIZE = int(FusedOp.REQUANTIZE)
INP = int(Buffer.INP)
WGT = int(Buffer.WGT)
OUT = int(Buffer.OUT)


class Words(NamedTuple):
    """Where each field of an INSN_DTYPE record is, in 32-bit words, and how long a record is."""

    opcode: int
    pop_prev: int
    pop_next: int
    push_prev: int
    push_next: int
    buffer: int
    dram_base: int  # two words, the low one first
    y_size: int
    x_size: int
    x_stride: int
    y_pad_before: int
    y_pad_after: int
    x_pad_before: int
    x_pad_after: int
    reset: int
    uop_begin: int
    uop_end: int
    iter_out: int
    iter_in: int
    alu_op: int
    use_imm: int
    record: int


def decode(table: Any, words: Words, unit: Any, insns: Any, rules: Rules, state: Any) -> None:
    """Fill in every field of ``insns`` but the results, link the stages, count the events.

    ``table`` is the instructions as int32 words, ``unit`` the bytes per entry of each buffer, 0 for
    numbers that are none. What is undefined takes the time of a no-op; checks.py reports it.
    """
    # Behind which instruction of its stage the next one is linked.
    tail_load = -1
    tail_compute = -1
    tail_store = -1
    for number in range(rules.insns):
        at = number * words.record
        row = number * INSN_FIELDS
        opcode = table[at + words.opcode]
        kind = NOOP
        stage = COMPUTE
        cycles = rules.noop_cycles
        pads = 0
        if opcode == GEMM_OP or opcode == ALU_OP:
            uops = int(table[at + words.uop_end]) - int(table[at + words.uop_begin])
            repeats = max(uops, 0) * int(table[at + words.iter_out])
            repeats *= int(table[at + words.iter_in])
            if repeats > 0:
                if opcode == ALU_OP:
                    kind = ALU
                    cycles = repeats + rules.alu_depth
                    tensor = table[at + words.use_imm] == 0
                    if table[at + words.alu_op] == MUL:
                        cycles = repeats * rules.mul_interval + rules.alu_depth
                    elif table[at + words.alu_op] == REQUANTIZE:
                        cycles = repeats + rules.requantize_depth
                        if tensor:
                            cycles += int(table[at + words.iter_out])
                    elif tensor:
                        cycles = repeats * rules.alu_interval + rules.alu_depth
                    state[ALU_OPS] += repeats
                else:
                    kind = GEMM
                    cycles = repeats + rules.gemm_depth
                    if table[at + words.reset]:
                        state[RESET_OPS] += repeats
                    else:
                        state[GEMM_OPS] += repeats
        elif opcode == LOAD_OP or opcode == STORE_OP:
            buffer = int(table[at + words.buffer]) & 7
            x_size = int(table[at + words.x_size])
            rows = int(table[at + words.y_size])
            if opcode == STORE_OP:
                stage = STORER
                buffer = OUT
                area = x_size * rows
            else:
                if buffer == INP or buffer == WGT:
                    stage = LOADER
                height = table[at + words.y_pad_before] + rows + table[at + words.y_pad_after]
                width = table[at + words.x_pad_before] + x_size + table[at + words.x_pad_after]
                area = int(height * width)
                pads = area - x_size * rows
            if x_size == 0 or area == 0 or unit[buffer] == 0:
                pads = 0
            else:
                kind = LOAD
                if stage == STORER:
                    kind = STORE
                base = (int(table[at + words.dram_base + 1]) << 32) | (
                    int(table[at + words.dram_base]) & 0xFFFFFFFF
                )
                insns[row + ADDRESS] = base * unit[buffer]
                insns[row + ROW_BYTES] = x_size * unit[buffer]
                insns[row + STRIDE_BYTES] = table[at + words.x_stride] * unit[buffer]
                insns[row + ROWS] = rows
                if kind == LOAD:
                    state[BYTES + buffer] += x_size * rows * unit[buffer]
                else:
                    state[BYTES + OUT] += x_size * rows * unit[buffer]
        flags = table[at + words.pop_prev] + 2 * table[at + words.pop_next]
        flags += 4 * table[at + words.push_prev] + 8 * table[at + words.push_next]
        insns[row + STAGE] = stage
        insns[row + KIND] = kind
        insns[row + FLAGS] = int(flags) & CONNECTED[stage]
        insns[row + CYCLES] = cycles
        insns[row + PADS] = pads
        insns[row + NEXT] = -1
        before = tail_compute
        if stage == LOADER:
            before = tail_load
            tail_load = number
        elif stage == COMPUTE:
            tail_compute = number
        else:
            before = tail_store
            tail_store = number
        if before < 0:
            state[HEAD + stage] = number
            state[LEAVING + stage] = number
        else:
            insns[before * INSN_FIELDS + NEXT] = number
        state[COUNT + stage] += 1
