"""Opcodes, buffers, ALU operations, stages and token queues: the only place their numbers appear.

Source: published VTA instruction set, revision B.
"""

from enum import IntEnum


class Opcode(IntEnum):
    """What an instruction does; the lowest three bits of its word."""

    LOAD = 0
    STORE = 1
    GEMM = 2
    FINISH = 3
    ALU = 4


class Buffer(IntEnum):
    """The SRAM a LOAD or STORE addresses, and with it the unit of its addresses.

    ``ACC_8BIT`` is the accumulator memory filled from 8-bit scalars in DRAM.
    """

    UOP = 0
    WGT = 1
    INP = 2
    ACC = 3
    OUT = 4
    ACC_8BIT = 5


class AluOp(IntEnum):
    """What the tensor ALU computes from the destination ``x`` and the operand ``y``."""

    MIN = 0
    MAX = 1
    ADD = 2
    SHR = 3
    MUL = 4


class FusedOp(IntEnum):
    """Operations of the ALU that extensions add; their numbers follow those of `AluOp`.

    ``REQUANTIZE`` adds a bias, shifts right and clips, all in one pass (docs/extensions.md).
    """

    REQUANTIZE = 5


class LowKind(IntEnum):
    """How the lower bound of a REQUANTIZE follows from its upper bound ``high``."""

    ZERO = 0  # 0: a ReLU that is clipped
    NEGATIVE = 1  # -high: symmetric
    COMPLEMENT = 2  # -high - 1: every value of a two's complement type


class Stage(IntEnum):
    """The stages that execute instructions, numbered as the published runtime numbers them."""

    LOAD = 1
    COMPUTE = 2
    STORE = 3


class TokenQueue(IntEnum):
    """The four dependence queues between neighbouring stages, named producer first."""

    LOAD_TO_COMPUTE = 0
    COMPUTE_TO_LOAD = 1
    COMPUTE_TO_STORE = 2
    STORE_TO_COMPUTE = 3
