"""Where the engine keeps what: indices into its two flat arrays of integers.

Compiled code hands two arrays around much faster than two dozen, and CPython indexes one list as
fast as another. ``insns`` holds INSN_FIELDS numbers per instruction, ``state`` everything else that
changes; a section of ``state`` is indexed ``state[SECTION + stage]`` and the like. What stays the
same during a launch is a field of ``Rules``.
"""

from typing import NamedTuple

NEVER = 1 << 62

# Stages are numbered as in vta_isa.enums.Stage, fetch is 0.
STAGES = 4
FETCH, LOADER, COMPUTE, STORER = range(STAGES)

# Kinds of instruction, by what they keep busy: at once the first five causes of a stage's cycles.
NOOP, GEMM, ALU, LOAD, STORE, KINDS = range(6)
BUSY_OTHER, BUSY_GEMM, BUSY_ALU, BUSY_LOAD, BUSY_STORE = range(5)
WAIT_DRAM, WAIT_PREV, WAIT_NEXT, WAIT_FULL, IDLE, CAUSES = range(5, 11)

# Bits of FLAGS.
POP_PREV, POP_NEXT, PUSH_PREV, PUSH_NEXT = 1, 2, 4, 8
# Those with a token queue behind them, by stage: load has no stage before it, store none after it.
CONNECTED = (0, POP_NEXT | PUSH_NEXT, 15, POP_PREV | PUSH_PREV)

# The token queue behind each flag, by stage (vta_isa.enums.TokenQueue); -1 where there is none.
QUEUES = 4
FROM_PREV = (-1, -1, 0, 2)
FROM_NEXT = (-1, 1, 3, -1)
TO_PREV = (-1, -1, 1, 3)
TO_NEXT = (-1, 0, 2, -1)

# Clients of the read port in falling priority, and whose they are.
CLIENTS = 3
STAGE_OF = (COMPUTE, FETCH, LOADER)
CLIENT_OF = (1, 2, 0, -1)  # by stage

# Phases of a stage.
WAITING, LOADING, PUSHING = range(3)

BUFFERS = 8  # numbers a buffer field can hold

# fmt: off
# ---- insns[row + FIELD], row being the instruction's number times INSN_FIELDS -------------------
(
    STAGE, KIND, FLAGS,
    CYCLES,                 # of NOOP, GEMM and ALU, from start to last cycle, both included
    ADDRESS,                # of LOAD and STORE: byte address of the first row
    ROW_BYTES,
    STRIDE_BYTES,
    ROWS,                   # in DRAM, padding excluded
    PADS,                   # entries of zeros to write
    NEXT,                   # next instruction of the same stage; -1 behind the last
    DISPATCH, START, END,   # results: cycles
    FETCH_DRAM, FETCH_FULL, # cycles that fetch waited for it to arrive, for room in its queue
    AFTER_PREV, AFTER_NEXT, # cycles that it waited for tokens
    STALLED,                # cycles of a LOAD or STORE in which no data moved
    HELD,                   # cycles that it waited for room for its tokens
    INSN_FIELDS,
) = range(20)

# ---- state[FIELD] -------------------------------------------------------------------------------
(
    DISPATCHED,             # instructions dispatched
    LAST_DISPATCH,          # cycle of the last of them; -1 before
    ARRIVED,                # instructions whose arrival is known
    CHUNK_BEGIN, CHUNK_END, # instructions of the chunk requested last
    FETCH_GRANT,            # cycle of fetch's last grant
    LAST_GRANT, LAST_BEAT,  # cycles on the read port; -1 before the first
    READ_BURSTS, READ_BEATS,# granted so far
    WINDOW_BURST,           # burst that holds the beat whose arrival opens the window
    WRITE_BURSTS, WRITE_BEATS,
    GEMM_OPS, RESET_OPS, ALU_OPS,
    SCALARS,
) = range(17)

# ---- state[SECTION + stage] ---------------------------------------------------------------------
COUNT    = SCALARS              # instructions of the stage
SENT     = COUNT    + STAGES    # dispatched to it
STARTED  = SENT     + STAGES    # started by it
HEAD     = STARTED  + STAGES    # next to start, -1 if none is left; while it runs, itself
LEAVING  = HEAD     + STAGES    # the one that must leave the full command queue first
PHASE    = LEAVING  + STAGES
FREE     = PHASE    + STAGES    # first cycle in which it could start its next instruction
READY    = FREE     + STAGES    # when PUSHING: first cycle in which it would push its tokens
# ---- state[SECTION + queue] ---------------------------------------------------------------------
PUSHED   = READY    + STAGES    # tokens ever pushed, those left by earlier launches included
POPPED   = PUSHED   + QUEUES
# ---- state[SECTION + client] --------------------------------------------------------------------
PRESENT   = POPPED    + QUEUES  # first cycle in which the request is presented, NEVER without one
POSITION  = PRESENT   + CLIENTS # byte address of the next burst
ROW_START = POSITION  + CLIENTS # byte address of the row in progress
ROW_END   = ROW_START + CLIENTS # byte address behind it; neither is rounded
ROWS_LEFT = ROW_END   + CLIENTS # behind the one in progress
BEATS     = ROWS_LEFT + CLIENTS # requested for the instruction so far
# ---- others -------------------------------------------------------------------------------------
BYTES    = BEATS    + CLIENTS           # read, by buffer
SPENT    = BYTES    + BUFFERS           # cycles: state[SPENT + stage * CAUSES + cause]
ARRIVAL  = SPENT    + STAGES * CAUSES   # ring: cycle of the beat that completes an instruction
# fmt: on


class Rules(NamedTuple):
    """The machine, the memory and the launch, in numbers; sizes of rings are powers of two."""

    insns: int
    insn_address: int  # bytes, a multiple of insn_bytes
    insn_bytes: int
    chunk_insns: int
    buffer_insns: int  # size of ring ARRIVAL
    fetch_request: int
    command_depth: int
    token_depth: int
    token_ring: int  # at least token_depth
    bus_bytes: int
    burst_bytes: int
    outstanding: int
    window: int
    read_latency: int
    write_latency: int
    noop_cycles: int
    gemm_depth: int
    alu_depth: int
    alu_interval: int  # of an operation on two tensors
    mul_interval: int
    requantize_depth: int
    jitter: int  # 1 if there is any
    read_key: int
    write_key: int
    beat_ring: int  # at least the window and the longest burst
    record_bursts: int  # 1 to fill the burst log
    # Sections of `state` whose size depends on the machine.
    push_cycle: int  # rings: state[push_cycle + queue * token_ring + slot]
    pop_cycle: int
    burst_first: int  # rings of `outstanding`: cycle of the first beat,
    burst_last: int  # of the last beat,
    burst_begin: int  # number of the first beat
    beat_cycle: int  # ring: cycle of each beat, with jitter only
    size: int  # of `state`
