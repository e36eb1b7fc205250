"""The bytes between a host and a board; ``docs/boards.md`` explains them.

A command is its code, the address of the first word (4 bytes), and the number of words less one
(1 byte). Then a write has its words, 4 bytes each. The board answers a write with a status, a read
with the words and a status. Numbers are little-endian.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from vta_isa.registers import WORD_BYTES

MOST_WORDS = 256  # of one command


class Command(IntEnum):
    """First byte of a command. Every other byte is ignored where a command may begin."""

    READ_MEMORY = ord("R")
    WRITE_MEMORY = ord("W")
    READ_REGISTERS = ord("r")
    WRITE_REGISTERS = ord("w")

    @property
    def writes(self) -> bool:
        return self in (Command.WRITE_MEMORY, Command.WRITE_REGISTERS)


class Status(IntEnum):
    """Last byte of an answer."""

    DONE = 0x06  # ASCII's ACK
    FAILED = 0x15  # ASCII's NAK: at least one of the words is not there, or cannot be written


@dataclass(frozen=True)
class Request:
    """``data`` to send, and how many bytes the answer has."""

    data: bytes
    answer_bytes: int


def read_request(command: Command, address: int, words: int) -> Request:
    assert not command.writes
    return Request(_head(command, address, words), WORD_BYTES * words + 1)


def write_request(command: Command, address: int, values: Sequence[int]) -> Request:
    assert command.writes
    body = b"".join(int(value).to_bytes(WORD_BYTES, "little") for value in values)
    return Request(_head(command, address, len(values)) + body, 1)


def _head(command: Command, address: int, words: int) -> bytes:
    assert 1 <= words <= MOST_WORDS
    return bytes([command]) + address.to_bytes(4, "little") + bytes([words - 1])
