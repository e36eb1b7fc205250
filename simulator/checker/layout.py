"""What the compiled passes of the checker read and write: columns of arrays, and small numbers."""

from typing import NamedTuple

from vta_isa.insn import INSN_DTYPE

# -- INSN_DTYPE as 32-bit words -------------------------------------------------------------------

_WORD = 4
_AT = {name: field[1] // _WORD for name, field in (INSN_DTYPE.fields or {}).items()}
RECORD = INSN_DTYPE.itemsize // _WORD
W_OPCODE = _AT["opcode"]
W_POP_PREV = _AT["pop_prev"]
W_POP_NEXT = _AT["pop_next"]
W_PUSH_PREV = _AT["push_prev"]
W_PUSH_NEXT = _AT["push_next"]
W_BUFFER = _AT["buffer"]
W_SRAM_BASE = _AT["sram_base"]
W_DRAM_BASE = _AT["dram_base"]  # two words, the low one first
W_Y_SIZE = _AT["y_size"]
W_X_SIZE = _AT["x_size"]
W_X_STRIDE = _AT["x_stride"]
W_Y_PAD_BEFORE = _AT["y_pad_before"]
W_Y_PAD_AFTER = _AT["y_pad_after"]
W_X_PAD_BEFORE = _AT["x_pad_before"]
W_X_PAD_AFTER = _AT["x_pad_after"]
W_RESET = _AT["reset"]
W_UOP_BEGIN = _AT["uop_begin"]
W_UOP_END = _AT["uop_end"]
W_ITER_OUT = _AT["iter_out"]
W_ITER_IN = _AT["iter_in"]
W_DST_OUT = _AT["dst_factor_out"]
W_DST_IN = _AT["dst_factor_in"]
W_SRC_OUT = _AT["src_factor_out"]
W_SRC_IN = _AT["src_factor_in"]
W_WGT_OUT = _AT["wgt_factor_out"]
W_WGT_IN = _AT["wgt_factor_in"]
W_ALU_OP = _AT["alu_op"]
W_USE_IMM = _AT["use_imm"]

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
NOTHING, FILL, DRAIN, MULTIPLY, CLEAR, COMBINE, UOPS, FINISHES = range(8)
# FILL: LOAD of INP, WGT or ACC. DRAIN: STORE. MULTIPLY: dst += src x wgt. CLEAR: reset.
# COMBINE: ALU; its footprint has a src or none. UOPS: LOAD UOP.

# FAULT: bits.
ILLEGAL = 1  # checks.check_static says why
OUT_OF_RANGE = 2  # checks.check_uops says why
NEVER_LOADED = 4  # some of its micro-ops
UNKNOWN_UOPS = 8  # there is no image they could be read from

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
