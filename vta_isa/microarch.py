"""Cycle counts of the machine, each with a sentence; the RTL and the timing engine share them.

The page docs/microarchitecture.md says what they mean. ``s`` is the cycle in which a stage starts
an instruction, ``e`` its last cycle, in which its tokens are pushed.
"""

from math import ceil, log2

from .enums import AluOp
from .machine import Machine

# ---- every stage -------------------------------------------------------------------------------

# Decode: in cycle s the instruction leaves its command queue and its tokens are consumed.
DECODE = 1
# An instruction with nothing to do (x_size = 0, no rows, no iterations, FINISH): cycles s and s+1.
NOOP_CYCLES = 2

# ---- fetch -------------------------------------------------------------------------------------

# Instructions are fetched in chunks: the aligned 256-byte blocks of DRAM that hold the stream.
CHUNK_INSNS = 16
# The instruction buffer holds two chunks; one is dispatched while the other arrives.
BUFFER_CHUNKS = 2
# The first chunk is requested this many cycles after the one in which fetch sees the start.
FETCH_REQUEST = 1
# Each further chunk is requested this many cycles after the last grant of the chunk before it, or
# after the last dispatch of the one before that, whichever is later.
CHUNK_REQUEST = 2
# A beat on the bus in cycle b is registered, then written to the instruction buffer: what it
# completes can be dispatched from b + 2.
FETCH_WRITE = 2

# ---- GEMM and ALU pipelines, in cycles ---------------------------------------------------------

UOP_READ = 1  # the address goes to the uop memory; the word is there in the next cycle
INDEX_ADD = 1  # loop offsets are added to the uop's indices and registered
SRAM_READ = 2  # address, then data in the memory's output register
MULTIPLY = 1  # every product, registered
ACCUMULATE = 1  # accumulator entry (or the previous result, forwarded) plus the sum, registered
EXECUTE = 1  # the ALU, its operands forwarded from the previous results, registered
# MUL: its lanes take turns at this many multipliers, however many lanes an entry has.
MUL_LANES = 2
MUL_REGISTERS = 3  # in a multiplier: operands, partial products, their sum
REQUANTIZE = 3  # in place of EXECUTE: bias added, shifted, clipped, a register behind each
# What a slot of a REQUANTIZE (an iteration, or the read of a bias) writes can be read by the slot
# that comes so many later, or after that: nothing is forwarded.
REQUANTIZE_APART = REQUANTIZE + SRAM_READ + 1
WRITE = 1  # ACC and OUT memory are written

# ---- loader ------------------------------------------------------------------------------------

# The first burst request of a LOAD is presented in s + 1.
LOAD_REQUEST = 1
# A beat on the bus in cycle b is registered, rotated to its banks, and written in cycle b + 2.
LOAD_WRITE = 2
# The first zero entry of padding can be written in s + 3.
PAD_FIRST = 3
# Cycles of a LOAD before anything can be written, counted as busy.
LOAD_SETUP = PAD_FIRST

# ---- store -------------------------------------------------------------------------------------

# The first AW is on the bus in s + 3.
STORE_ADDRESS = 3
# OUT memory is addressed in s + 1, its data registered in s + 3 and on the bus from s + 4.
STORE_DATA = STORE_ADDRESS + 1
# Bursts whose AW may have been sent while their last data beat has not.
WRITE_AHEAD = 2
# The B response of the last burst, on the bus in cycle b, ends the STORE in b + 1.
STORE_RESPONSE = 1

# ---- read port ---------------------------------------------------------------------------------

# AR is on the bus the cycle after the grant.
GRANT_TO_ADDRESS = 1
# Bursts never cross this boundary (AXI4).
PAGE_BYTES = 4096
# The smallest window of outstanding beats; it hides memory latencies up to some 120 cycles.
WINDOW_BEATS = 128

# ---- memory model shared by simulator and test bench -------------------------------------------

# Channel numbers in the jitter hash.
READ_CHANNEL, WRITE_CHANNEL = 0, 1


def adder_tree(machine: Machine) -> int:
    """Registers in the adder tree over ``block_in`` products: one every two levels."""
    return ceil(log2(machine.gemm.block_in) / 2)


def gemm_depth(machine: Machine) -> int:
    """A GEMM (reset or not) of N >= 1 uop iterations takes N + gemm_depth cycles."""
    multiply_add = MULTIPLY + adder_tree(machine) + ACCUMULATE
    pipeline = UOP_READ + INDEX_ADD + SRAM_READ + multiply_add + WRITE
    return DECODE + pipeline - 1


def alu_depth() -> int:
    """An ALU instruction of N >= 1 uop iterations takes N * alu_interval + alu_depth cycles.

    MUL as well: its interval is the time of a whole iteration, of which the last cycle is EXECUTE.
    """
    return DECODE + UOP_READ + INDEX_ADD + SRAM_READ + EXECUTE + WRITE - 1


def requantize_depth() -> int:
    """A REQUANTIZE of N >= 1 uop iterations takes N + requantize_depth cycles, and with a bias one
    more for each outer iteration: its first cycle reads the entry of bias."""
    return DECODE + UOP_READ + INDEX_ADD + SRAM_READ + REQUANTIZE + WRITE - 1


def alu_interval(machine: Machine, op: AluOp, *, use_imm: bool) -> int:
    """Cycles between uop iterations of the ALU; the second operand costs a second ACC read."""
    if op == AluOp.MUL:
        return mul_interval(machine)
    return 1 if use_imm else machine.alu.tensor_interval


def mul_steps(machine: Machine) -> int:
    """Turns that the lanes of an entry take at the multipliers."""
    return max(machine.gemm.batch * machine.gemm.block_out // MUL_LANES, 1)


def mul_interval(machine: Machine) -> int:
    """Cycles between uop iterations of MUL, immediate or not: ACC is read twice, then the lanes of
    the entry follow each other through the multipliers, and nothing overlaps."""
    return 1 + mul_steps(machine) + MUL_REGISTERS


def burst_bytes(machine: Machine) -> int:
    """A burst ends at the latest at the next multiple of this many bytes."""
    return min(PAGE_BYTES, machine.axi.burst_beats * machine.bus_bytes)


def read_window(machine: Machine) -> int:
    """Beats granted and not yet received at which the read port stops granting.

    It bounds how long a request waits behind bursts of clients with a lower priority.
    """
    return max(WINDOW_BEATS, 8 * machine.axi.outstanding_reads)


def jitter_hash(x: int) -> int:
    """A 32-bit integer, mixed: xor-shifts and multiplications modulo 2**32.

    Both factors are below 2**31, so products of 32-bit numbers also fit signed 64-bit integers.
    """
    x &= 0xFFFFFFFF
    x ^= x >> 16
    x = (x * 0x21F0AAAD) & 0xFFFFFFFF
    x ^= x >> 15
    x = (x * 0x735A2D97) & 0xFFFFFFFF
    return x ^ (x >> 15)


def jitter_key(seed: int, channel: int) -> int:
    """What a channel's stalls depend on besides the beat number; constant during a launch."""
    return jitter_hash(2 * seed + channel)


def jitter_stall(key: int, beat: int) -> int:
    """Extra cycles before data beat ``beat`` (0, 1, ... in a launch) of the channel: 0 to 8.

    One beat in eight is late, by 1 to 8 cycles.
    """
    mixed = jitter_hash(key ^ (beat & 0xFFFFFFFF))
    return 1 + (mixed >> 3 & 7) if mixed & 7 == 0 else 0
