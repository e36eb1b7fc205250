"""What stops a run on hardware; the numbers the error register shows."""

from enum import IntEnum


class Fault(IntEnum):
    """Cause of an error. After one, the machine is idle, its tokens and queues are empty.

    ``sentence`` says what happened, for documentation and messages.
    """

    sentence: str

    def __new__(cls, number: int, sentence: str) -> "Fault":
        member = int.__new__(cls, number)
        member._value_ = number
        member.sentence = sentence
        return member

    NONE = 0, "no error since the last start"
    UNDEFINED_OPCODE = 1, "the opcode of the instruction is undefined"
    UNDEFINED_BUFFER = 2, "a LOAD or STORE with something to move names a buffer it cannot move"
    UNDEFINED_ALU_OP = 3, "the operation of the ALU instruction is undefined"
    SRAM_RANGE = 4, "a LOAD, STORE or range of uops reaches past the end of its SRAM"
    INDEX_RANGE = 5, "an index of GEMM or ALU reaches past the end of its SRAM"
    STORE_PADDING = 6, "a STORE asks for padding"
    READ_RESPONSE = 7, "the memory answered a read with an error"
    WRITE_RESPONSE = 8, "the memory answered a write with an error"
    INSN_ADDRESS = 9, "the address of the stream is not a multiple of the instruction size"
    UNDEFINED_GEMM = 10, "a GEMM asks to reset and to overwrite at once"
    TOO_CLOSE = 11, "a REQUANTIZE reads an entry that it has begun to write"
