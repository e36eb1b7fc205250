"""What the compiled passes of the checker read and write: columns of arrays, and small numbers."""

from typing import NamedTuple

# -- Fields of instructions -----------------------------------------------------------------------

FIELD_NAMES = (
    "opcode",
    "pop_prev",
    "pop_next",
    "push_prev",
    "push_next",
    "buffer",
    "sram_base",
    "dram_base",
    "y_size",
    "x_size",
    "x_stride",
    "y_pad_before",
    "y_pad_after",
    "x_pad_before",
    "x_pad_after",
    "reset",
    "uop_begin",
    "uop_end",
    "iter_out",
    "iter_in",
    "dst_factor_out",
    "dst_factor_in",
    "src_factor_out",
    "src_factor_in",
    "wgt_factor_out",
    "wgt_factor_in",
    "alu_op",
    "use_imm",
    "overwrite",
    "low_kind",
)
(
    W_OPCODE,
    W_POP_PREV,
    W_POP_NEXT,
    W_PUSH_PREV,
    W_PUSH_NEXT,
    W_BUFFER,
    W_SRAM_BASE,
    W_DRAM_BASE,
    W_Y_SIZE,
    W_X_SIZE,
    W_X_STRIDE,
    W_Y_PAD_BEFORE,
    W_Y_PAD_AFTER,
    W_X_PAD_BEFORE,
    W_X_PAD_AFTER,
    W_RESET,
    W_UOP_BEGIN,
    W_UOP_END,
    W_ITER_OUT,
    W_ITER_IN,
    W_DST_OUT,
    W_DST_IN,
    W_SRC_OUT,
    W_SRC_IN,
    W_WGT_OUT,
    W_WGT_IN,
    W_ALU_OP,
    W_USE_IMM,
    W_OVERWRITE,
    W_LOW_KIND,
) = range(len(FIELD_NAMES))
# The table of slots has four rows of every field: for LOAD, STORE and what all have in common,
# for GEMM, for ALU, and for ALU REQUANTIZE. A row is a number of the 64-bit word, a shift and a
# mask; of a field that instructions of the kind do not have, the mask is 0.
OF_GEMM = len(FIELD_NAMES)
OF_ALU = 2 * len(FIELD_NAMES)
OF_REQUANTIZE = 3 * len(FIELD_NAMES)
SLOT = 3
INSN_WORDS = 2

# -- Stages, and queues as bits -------------------------------------------------------------------

LOADER, COMPUTE, STORER = 0, 1, 2
STAGES = 3
QUEUES = 4  # numbered as vta_isa.enums.TokenQueue
L2C, C2L, C2S, S2C = 1, 2, 4, 8  # of a pop; of a push, times PUSH
PUSH = 16

# -- info: one row per instruction ----------------------------------------------------------------

STAGE, TOKENS, KIND, FIRST, BEHIND, LOW, HIGH, FAULT, SHARED = range(9)
INFO_FIELDS = 9
# FIRST, BEHIND: SRAM slots of a LOAD or STORE; of a GEMM or ALU FIRST is its footprint.
# LOW, HIGH: bytes of DRAM from the first touched up to behind the last, equal if there are none.
# SHARED: its rows in the table of DRAM cells (see dram.py), or -1.

# KIND: what an instruction touches. An instruction that is illegal touches nothing.
NOTHING, FILL, DRAIN, MULTIPLY, CLEAR, COMBINE, UOPS, FINISHES, REPLACE = range(9)
# FILL: LOAD of INP, WGT or ACC. DRAIN: STORE. MULTIPLY: dst += src x wgt. CLEAR: reset.
# COMBINE: ALU; its footprint has a src or none. UOPS: LOAD UOP. REPLACE: dst = src x wgt.

# FAULT: bits.
ILLEGAL = 1  # checks.check_static says why
OUT_OF_RANGE = 2  # checks.check_uops says why
NEVER_LOADED = 4  # some of its micro-ops
UNKNOWN_UOPS = 8  # there is no image they could be read from
TOO_CLOSE = 16  # a REQUANTIZE; checks.check_uops says why

# -- footprints: one row per distinct GEMM or ALU -------------------------------------------------

F_EPOCH, F_NEXT, F_UOPS, F_FAULT, F_DST, F_SRC, F_WGT, F_END = range(8)
FOOTPRINT_FIELDS = 8
# F_EPOCH: state of the micro-op memory it was last known to hold for. F_NEXT: chain of its hash.
# F_UOPS: where its micro-ops are kept. F_DST .. F_END: its intervals, dst then src then wgt.
KEY_FIELDS = 13

# A micro-op in memory: its 32 bits, and above them what is known of it.
LOADED = 1 << 32
UNKNOWN = 2 << 32

# -- events: what the last pass finds -------------------------------------------------------------

E_KIND, E_SECOND, E_FIRST, E_LOW, E_HIGH = range(5)
EVENT_FIELDS = 5
RAW, WAR, NEVER_WRITTEN, STORE_UNFINISHED, LOAD_UNFINISHED, UOPS_STORED, DRAM_RAW, DRAM_WAR = range(
    8
)


class Limits(NamedTuple):
    """What the passes must know of a machine, its memory and how a launch begins.

    SRAM *slots* number the entries of INP, WGT and ACC one memory behind the other; every memory
    has one slot more than entries, so that the end of one is not the beginning of the next.
    """

    inp_depth: int
    wgt_depth: int
    acc_depth: int
    uop_depth: int
    wgt_slot: int  # of entry 0; INP begins at 0
    acc_slot: int
    src_shift: int  # of the fields of a micro-op
    wgt_shift: int
    dst_mask: int
    src_mask: int
    wgt_mask: int
    unit_uop: int  # bytes per entry
    unit_wgt: int
    unit_inp: int
    unit_acc: int
    unit_out: int
    unit_acc_8bit: int
    dram_bytes: int
    image: int  # 1: DRAM contents are known
    zero: int  # 1: micro-ops never loaded are 0, as after reset
    token_depth: int
    command_depth: int
    requantize: int  # 1: the machine has this operation
