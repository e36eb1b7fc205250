"""First pass: what every instruction touches, in the subset of Python that numba compiles.

Compiled streams repeat a few GEMMs and ALU operations many times. Their footprints are therefore
kept: an instruction with the same loops, factors and micro-ops as an earlier one costs a
comparison. Wherever an access begins or ends, the SRAM is marked; the last pass works on the cells
between two marks, which every access covers wholly or not at all.

A hot path, hence flat arrays and few functions. The plain statement of it is simulator/hazards.py.
"""

from typing import Any

import numpy as np

from vta_isa.enums import AluOp, Buffer, FusedOp, LowKind, Opcode
from vta_isa.microarch import REQUANTIZE_APART

from .layout import (
    BEHIND,
    C2L,
    C2S,
    CLEAR,
    COMBINE,
    COMPUTE,
    DRAIN,
    F_DST,
    F_END,
    F_EPOCH,
    F_FAULT,
    F_NEXT,
    F_UOPS,
    FAULT,
    FILL,
    FINISHES,
    FIRST,
    FOOTPRINT_FIELDS,
    HIGH,
    ILLEGAL,
    INSN_WORDS,
    KEY_FIELDS,
    KIND,
    L2C,
    LOADED,
    LOADER,
    LOW,
    MULTIPLY,
    NEVER_LOADED,
    OF_ALU,
    OF_GEMM,
    OF_REQUANTIZE,
    OUT_OF_RANGE,
    PUSH,
    REPLACE,
    S2C,
    SHARED,
    SLOT,
    STAGE,
    STORER,
    TOKENS,
    TOO_CLOSE,
    UNKNOWN,
    UNKNOWN_UOPS,
    UOPS,
    W_ALU_OP,
    W_BUFFER,
    W_DRAM_BASE,
    W_DST_IN,
    W_DST_OUT,
    W_ITER_IN,
    W_ITER_OUT,
    W_LOW_KIND,
    W_OPCODE,
    W_OVERWRITE,
    W_POP_NEXT,
    W_POP_PREV,
    W_PUSH_NEXT,
    W_PUSH_PREV,
    W_RESET,
    W_SRAM_BASE,
    W_SRC_IN,
    W_SRC_OUT,
    W_UOP_BEGIN,
    W_UOP_END,
    W_USE_IMM,
    W_WGT_IN,
    W_WGT_OUT,
    W_X_PAD_AFTER,
    W_X_PAD_BEFORE,
    W_X_SIZE,
    W_X_STRIDE,
    W_Y_PAD_AFTER,
    W_Y_PAD_BEFORE,
    W_Y_SIZE,
    Limits,
)

LOAD_OP, STORE_OP, GEMM_OP, FINISH_OP, ALU_OP = (
    int(op) for op in (Opcode.LOAD, Opcode.STORE, Opcode.GEMM, Opcode.FINISH, Opcode.ALU)
)
UOP, WGT, INP, ACC, OUT, ACC_8BIT = (
    int(b) for b in (Buffer.UOP, Buffer.WGT, Buffer.INP, Buffer.ACC, Buffer.OUT, Buffer.ACC_8BIT)
)
LAST_ALU_OP = int(max(AluOp))
REQUANTIZE = int(FusedOp.REQUANTIZE)
LAST_LOW_KIND = int(max(LowKind))
HASH_HEADS = 4096  # a power of two


def grown(array: Any, size: int) -> Any:
    """The array, or a longer copy of it that holds ``size`` numbers."""
    if size <= len(array):
        return array
    longer = np.zeros(2 * size, dtype=np.int64)
    longer[: len(array)] = array
    return longer


def get(words: Any, at: int, slots: Any, which: int) -> int:
    """A field of the instruction whose words begin at ``at``."""
    row = which * SLOT
    return words[at + slots[row]] >> slots[row + 1] & slots[row + 2]  # type: ignore[no-any-return]


def tokens_of(words: Any, at: int, slots: Any, stage: int) -> int:
    """The queues an instruction pops and pushes; flags towards no stage have no queue."""
    prev, following = (
        get(words, at, slots, W_POP_PREV) != 0,
        get(words, at, slots, W_POP_NEXT) != 0,
    )
    to_prev, to_next = (
        get(words, at, slots, W_PUSH_PREV) != 0,
        get(words, at, slots, W_PUSH_NEXT) != 0,
    )
    tokens = 0
    if stage == LOADER:
        tokens = following * C2L + to_next * (PUSH * L2C)
    elif stage == COMPUTE:
        tokens = prev * L2C + following * S2C + to_prev * (PUSH * C2L) + to_next * (PUSH * C2S)
    else:
        tokens = prev * C2S + to_prev * (PUSH * S2C)
    return int(tokens)


def unit_of(buffer: int, limits: Limits) -> int:
    """Bytes per entry of a buffer in DRAM."""
    if buffer == UOP:
        return limits.unit_uop
    if buffer == WGT:
        return limits.unit_wgt
    if buffer == INP:
        return limits.unit_inp
    if buffer == ACC:
        return limits.unit_acc
    if buffer == OUT:
        return limits.unit_out
    return limits.unit_acc_8bit


def transfer(
    words: Any, at: int, slots: Any, number: int, info: Any, marks: Any, limits: Limits
) -> None:
    """A LOAD or STORE: fill in its row, illegal or not."""
    opcode, buffer = get(words, at, slots, W_OPCODE), get(words, at, slots, W_BUFFER)
    if opcode == LOAD_OP:
        one_sided = info[number, STAGE] == LOADER
        illegal = (
            one_sided and get(words, at, slots, W_POP_PREV) + get(words, at, slots, W_PUSH_PREV) > 0
        )
    else:
        illegal = get(words, at, slots, W_POP_NEXT) + get(words, at, slots, W_PUSH_NEXT) > 0
    columns, rows = get(words, at, slots, W_X_SIZE), get(words, at, slots, W_Y_SIZE)
    if columns == 0:
        if illegal:
            info[number, FAULT] = ILLEGAL
        return
    pad_rows = get(words, at, slots, W_Y_PAD_BEFORE) + get(words, at, slots, W_Y_PAD_AFTER)
    pad_columns = get(words, at, slots, W_X_PAD_BEFORE) + get(words, at, slots, W_X_PAD_AFTER)
    depth = limits.acc_depth
    slot = limits.acc_slot
    kind = FILL
    if opcode == STORE_OP:
        kind = DRAIN
        illegal |= buffer != OUT or pad_rows + pad_columns > 0
    elif buffer == UOP:
        kind = UOPS
        depth = limits.uop_depth
        slot = 0
    elif buffer == INP:
        depth = limits.inp_depth
        slot = 0
    elif buffer == WGT:
        depth = limits.wgt_depth
        slot = limits.wgt_slot
    else:
        illegal |= buffer != ACC and buffer != ACC_8BIT
    area = (rows + pad_rows) * (columns + pad_columns)
    base = get(words, at, slots, W_SRAM_BASE)
    illegal |= area > 0 and base + area > depth
    entry = get(words, at, slots, W_DRAM_BASE)
    unit = unit_of(buffer, limits)
    if rows > 0:
        info[number, LOW] = entry * unit
        info[number, HIGH] = (
            entry + (rows - 1) * get(words, at, slots, W_X_STRIDE) + columns
        ) * unit
        illegal |= info[number, HIGH] > limits.dram_bytes
    if illegal:
        info[number, FAULT] = ILLEGAL
        info[number, HIGH] = info[number, LOW]
        return
    info[number, KIND] = kind
    info[number, FIRST] = slot + base
    info[number, BEHIND] = slot + base + area
    if kind != UOPS:
        marks[slot + base] = 1
        marks[slot + base + area] = 1


def load_uops(
    words: Any, at: int, slots: Any, first: int, dram: Any, uops: Any, limits: Limits
) -> bool:
    """Carry out a LOAD UOP; returns whether any micro-op changed."""
    left, right = get(words, at, slots, W_X_PAD_BEFORE), get(words, at, slots, W_X_PAD_AFTER)
    above, below = get(words, at, slots, W_Y_PAD_BEFORE), get(words, at, slots, W_Y_PAD_AFTER)
    columns, rows = get(words, at, slots, W_X_SIZE), get(words, at, slots, W_Y_SIZE)
    source, stride = get(words, at, slots, W_DRAM_BASE), get(words, at, slots, W_X_STRIDE)
    changed = False
    target = first
    for row in range(-above, rows + below):
        for column in range(-left, columns + right):
            value = LOADED
            if 0 <= row < rows and 0 <= column < columns:
                if limits.image:
                    value = LOADED | int(dram[source + row * stride + column])
                else:
                    value = UNKNOWN
            if uops[target] != value:
                uops[target] = value
                changed = True
            target += 1
    return changed


def dilate(work: Any, distance: Any, highest: int, count: int, factor: int) -> None:
    """Add to a set of entries those ``factor``, ``2 factor`` .. ``(count-1) factor`` further up."""
    if factor == 0 or count <= 1:
        return
    for entry in range(highest + 1):
        if work[entry]:
            distance[entry] = 0
        else:
            steps = -1
            if entry >= factor and distance[entry - factor] >= 0:
                steps = distance[entry - factor] + 1
                if steps >= count:
                    steps = -1
            distance[entry] = steps
            if steps > 0:
                work[entry] = 1


def accumulated(slot: int, bias: bool, uops: Any, key: Any, limits: Limits) -> int:
    """The ACC entry that a slot of a REQUANTIZE writes; of a bias, that it reads, or -1 if ``bias``
    is not set.

    As in simulator/apart.py; ``key`` is what the footprint depends on.
    """
    biased = int(key[0]) & 1
    begin, count = int(key[1]), int(key[2] - key[1])
    row = int(key[4]) * count + biased
    outer = slot // row
    iteration = slot - outer * row - biased
    if slot < 0:
        return -1
    if iteration < 0:
        if bias:
            first = (uops[begin] >> limits.src_shift) & limits.src_mask
            return int(first) + outer * int(key[7])
        return -1
    inner = iteration // count
    entry = uops[begin + iteration - inner * count] & limits.dst_mask
    return int(entry) + outer * int(key[5]) + inner * int(key[6])


def too_close(uops: Any, key: Any, limits: Limits) -> bool:
    """Whether a slot of a REQUANTIZE reads what one shortly before it writes.

    Every bias is looked at, but of the iterations only those at the beginning of both loops.
    """
    count = int(key[2] - key[1])
    biased = int(key[0]) & 1
    row = int(key[4]) * count + biased
    within_end = min(int(key[4]), REQUANTIZE_APART + 1) * count + biased
    for outer in range(int(key[3])):
        if outer > REQUANTIZE_APART:
            within_end = biased
        for within in range(within_end):
            slot = outer * row + within
            entry = accumulated(slot, True, uops, key, limits)
            for apart in range(1, REQUANTIZE_APART):
                if accumulated(slot - apart, False, uops, key, limits) == entry:
                    return True
    return False


def run(
    words: Any,
    slots: Any,
    limits: Limits,
    dram: Any,
    uops: Any,
    info: Any,
    marks: Any,
    tokens: Any,
) -> tuple[Any, Any, Any]:
    """Fill in ``info`` but SHARED, mark the ends of SRAM accesses, count the tokens of each queue.

    ``words`` are the instructions, two int64 each, ``slots`` says where their fields are. ``dram``
    is the image as uint32, ``uops`` the micro-op memory with what is known of it, which is brought
    up to date. ``tokens (2, 4)``: pushes and pops of each queue. Returns footprints, their
    intervals (first slot, slot behind; in pairs) and the micro-ops kept for them.
    """
    heads = np.full(HASH_HEADS, -1, dtype=np.int64)
    footprints = np.zeros(64 * FOOTPRINT_FIELDS, dtype=np.int64)
    keys = np.zeros(64 * KEY_FIELDS, dtype=np.int64)
    intervals = np.zeros(256, dtype=np.int64)
    kept = np.zeros(256, dtype=np.int64)  # micro-ops of footprints
    footprint_count = 0
    interval_end = 0
    kept_end = 0
    deepest = max(limits.inp_depth, max(limits.wgt_depth, limits.acc_depth))
    work = np.zeros(deepest, dtype=np.uint8)
    distance = np.zeros(deepest, dtype=np.int64)
    key = np.zeros(KEY_FIELDS, dtype=np.int64)
    epoch = 0

    for number in range(len(info)):
        at = number * INSN_WORDS
        opcode = get(words, at, slots, W_OPCODE)
        buffer = get(words, at, slots, W_BUFFER)
        stage = COMPUTE
        if opcode == STORE_OP:
            stage = STORER
        elif opcode == LOAD_OP and (buffer == INP or buffer == WGT):
            stage = LOADER
        info[number, STAGE] = stage
        flags = tokens_of(words, at, slots, stage)
        info[number, TOKENS] = flags
        for queue in range(4):
            tokens[0, queue] += flags >> queue + 4 & 1
            tokens[1, queue] += flags >> queue & 1
        info[number, SHARED] = -1
        if opcode == FINISH_OP:
            info[number, KIND] = FINISHES
            continue
        if opcode == LOAD_OP or opcode == STORE_OP:
            transfer(words, at, slots, number, info, marks, limits)
            if info[number, KIND] == UOPS:
                epoch += load_uops(words, at, slots, info[number, FIRST], dram, uops, limits)
            continue
        if opcode != GEMM_OP and opcode != ALU_OP:
            info[number, FAULT] = ILLEGAL
            continue
        loops = OF_GEMM if opcode == GEMM_OP else OF_ALU
        overwrite = opcode == GEMM_OP and get(words, at, slots, OF_GEMM + W_OVERWRITE) != 0
        fused = False
        illegal = overwrite and get(words, at, slots, OF_GEMM + W_RESET) != 0
        if opcode == ALU_OP:
            operation = get(words, at, slots, OF_ALU + W_ALU_OP)
            if operation == REQUANTIZE and limits.requantize:
                fused = True
                loops = OF_REQUANTIZE
                illegal = get(words, at, slots, loops + W_LOW_KIND) > LAST_LOW_KIND
            else:
                illegal = operation > LAST_ALU_OP
        if illegal:
            info[number, FAULT] = ILLEGAL
            continue
        begin, end = (
            get(words, at, slots, loops + W_UOP_BEGIN),
            get(words, at, slots, loops + W_UOP_END),
        )
        iter_out, iter_in = (
            get(words, at, slots, loops + W_ITER_OUT),
            get(words, at, slots, loops + W_ITER_IN),
        )
        if begin >= end or iter_out <= 0 or iter_in <= 0:
            continue
        if end > limits.uop_depth:
            info[number, FAULT] = ILLEGAL
            continue

        # What the footprint depends on: all of these, and the micro-ops.
        reset = opcode == GEMM_OP and get(words, at, slots, loops + W_RESET) != 0
        tensors = opcode == ALU_OP and get(words, at, slots, loops + W_USE_IMM) == 0
        kind = COMBINE
        if reset:
            kind = CLEAR
        elif overwrite:
            kind = REPLACE
        elif opcode == GEMM_OP:
            kind = MULTIPLY
        products = kind == MULTIPLY or kind == REPLACE
        key[0] = 4 * kind + 2 * fused + tensors
        key[1] = begin
        key[2] = end
        key[3] = iter_out
        key[4] = iter_in
        key[5] = get(words, at, slots, loops + W_DST_OUT)
        key[6] = get(words, at, slots, loops + W_DST_IN)
        key[7] = get(words, at, slots, loops + W_SRC_OUT)
        key[8] = get(words, at, slots, loops + W_SRC_IN)
        key[9] = get(words, at, slots, loops + W_WGT_OUT)
        key[10] = get(words, at, slots, loops + W_WGT_IN)
        hashed = 0
        for field in range(KEY_FIELDS):
            hashed = (hashed * 1000003 + int(key[field])) & 0x3FFFFFFF
        head = (hashed ^ hashed >> 15) & (HASH_HEADS - 1)
        found = heads[head]
        while found >= 0:
            row = found * FOOTPRINT_FIELDS
            same = True
            for field in range(KEY_FIELDS):
                if keys[found * KEY_FIELDS + field] != key[field]:
                    same = False
                    break
            if same and footprints[row + F_EPOCH] != epoch:
                copy = footprints[row + F_UOPS]
                for index in range(end - begin):
                    if kept[copy + index] != uops[begin + index]:
                        same = False
                        break
                if same:
                    footprints[row + F_EPOCH] = epoch
            if same:
                break
            found = footprints[row + F_NEXT]

        if found < 0:
            found = footprint_count
            footprint_count += 1
            footprints = grown(footprints, footprint_count * FOOTPRINT_FIELDS)
            keys = grown(keys, footprint_count * KEY_FIELDS)
            keys[found * KEY_FIELDS : (found + 1) * KEY_FIELDS] = key
            kept = grown(kept, kept_end + end - begin)
            kept[kept_end : kept_end + end - begin] = uops[begin:end]
            row = found * FOOTPRINT_FIELDS
            footprints[row + F_EPOCH] = epoch
            footprints[row + F_NEXT] = heads[head]
            footprints[row + F_UOPS] = kept_end
            heads[head] = found
            kept_end += end - begin
            fault = 0
            for index in range(begin, end):
                if uops[index] & UNKNOWN:
                    fault |= UNKNOWN_UOPS
                elif not uops[index] & LOADED:
                    fault |= NEVER_LOADED
            for operand in range(3):
                footprints[row + F_DST + operand] = interval_end
                used = operand == 0 or products or (operand == 1 and tensors)
                if not used or fault & UNKNOWN_UOPS or (fault and not limits.zero):
                    continue
                shift, mask, depth, slot = 0, limits.dst_mask, limits.acc_depth, limits.acc_slot
                if operand == 1:
                    shift, mask = limits.src_shift, limits.src_mask
                    if products:
                        depth, slot = limits.inp_depth, 0
                elif operand == 2:
                    shift, mask = limits.wgt_shift, limits.wgt_mask
                    depth, slot = limits.wgt_depth, limits.wgt_slot
                factor_out, factor_in = int(key[5 + 2 * operand]), int(key[6 + 2 * operand])
                behind = end
                if operand == 1 and fused:  # the src of the first micro-op alone
                    behind = begin + 1
                highest = 0
                for index in range(begin, behind):
                    highest = max(highest, (uops[index] >> shift) & mask)
                highest += factor_out * (iter_out - 1) + factor_in * (iter_in - 1)
                if highest >= depth:
                    fault |= OUT_OF_RANGE
                    continue
                work[: highest + 1] = 0
                for index in range(begin, behind):
                    work[(uops[index] >> shift) & mask] = 1
                dilate(work, distance, highest, iter_in, factor_in)
                dilate(work, distance, highest, iter_out, factor_out)
                inside = False
                for entry in range(highest + 1):
                    if (work[entry] != 0) != inside:
                        if not inside:
                            intervals = grown(intervals, interval_end + 2)
                        intervals[interval_end] = slot + entry
                        marks[slot + entry] = 1
                        interval_end += 1
                        inside = not inside
                if inside:
                    intervals[interval_end] = slot + highest + 1
                    marks[slot + highest + 1] = 1
                    interval_end += 1
            footprints[row + F_END] = interval_end
            if fused and not fault & (UNKNOWN_UOPS | OUT_OF_RANGE) and (not fault or limits.zero):
                if too_close(uops, key, limits):
                    fault |= TOO_CLOSE
            footprints[row + F_FAULT] = fault
        row = found * FOOTPRINT_FIELDS
        info[number, FIRST] = found
        info[number, FAULT] = footprints[row + F_FAULT]
        if not info[number, FAULT] & (OUT_OF_RANGE | TOO_CLOSE):
            info[number, KIND] = kind
    return footprints, intervals, kept


PARTS = (grown, get, tokens_of, unit_of, transfer, load_uops, dilate, accumulated, too_close)
