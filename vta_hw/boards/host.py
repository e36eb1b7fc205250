"""A board on a serial line as a device: the host's side of ``protocol``."""

import time
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from vta_isa.counters import COUNTERS
from vta_isa.errors import DeadlockError, StreamError, VtaError
from vta_isa.faults import Fault
from vta_isa.launch import Launch, Timeline
from vta_isa.machine import Machine
from vta_isa.registers import MAGIC, WORD_BITS, WORD_BYTES, by_name, register_map

from .bram_memory import PAGE_BYTES
from .protocol import MOST_WORDS, Command, Request, Status, read_request, write_request

FILLER = bytes(5 + WORD_BYTES * MOST_WORDS)
"""Ends any command of which only a part has come, and begins none."""


class BytePipe(Protocol):
    """What is needed of a serial port; ``serial.Serial`` of pyserial is one, given a timeout."""

    def write(self, data: bytes, /) -> object:
        """Send all of it."""
        ...

    def read(self, size: int, /) -> bytes:
        """``size`` bytes, or fewer when no more came in time."""
        ...


class BoardError(VtaError):
    """The board does not answer, or not as the machine that was expected."""


class Board:
    """A machine on a board, behind a byte pipe; a device as the runtime knows them.

    ``memory_bytes`` is found out by asking. Raises BoardError where there is no board, or another
    machine on it. A launch that takes longer than ``patience`` seconds of ``clock`` is stopped.
    """

    def __init__(
        self,
        pipe: BytePipe,
        machine: Machine,
        *,
        memory_bytes: int | None = None,
        patience: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
    ):
        self.machine = machine
        self.patience = patience
        self._pipe = pipe
        self._clock = clock
        self._registers = by_name(register_map(machine))
        self._identify()
        self.memory_bytes = self._find_memory() if memory_bytes is None else memory_bytes

    # ---- registers ------------------------------------------------------------------------------

    def read_register(self, name: str) -> int:
        """All words of a register as one number."""
        register = self._registers[name]
        words = self._read(Command.READ_REGISTERS, register.offset, register.words)
        return sum(word << (WORD_BITS * i) for i, word in enumerate(words))

    def write_register(self, name: str, value: int) -> None:
        """All words of a register from one number."""
        register = self._registers[name]
        words = [value >> (WORD_BITS * i) & 0xFFFF_FFFF for i in range(register.words)]
        self._write(Command.WRITE_REGISTERS, register.offset, words)

    # ---- memory ---------------------------------------------------------------------------------

    def write(self, address: int, data: NDArray[np.uint8]) -> None:
        """Copy bytes to ``address``; words at the ends are read first where they are shared."""
        content = np.ascontiguousarray(data, dtype=np.uint8).reshape(-1)
        self._check_range(address, len(content))
        if not len(content):
            return
        first, before, after = _words_around(address, len(content))
        image = np.empty(before + len(content) + after, dtype=np.uint8)
        if before:
            image[:WORD_BYTES] = self._bytes(first, 1)
        if after:
            image[-WORD_BYTES:] = self._bytes(first + len(image) - WORD_BYTES, 1)
        image[before : before + len(content)] = content
        self._write(Command.WRITE_MEMORY, first, image.view("<u4").tolist())

    def read(self, address: int, size: int) -> NDArray[np.uint8]:
        """``size`` bytes from ``address``."""
        self._check_range(address, size)
        if not size:
            return np.empty(0, dtype=np.uint8)
        first, before, after = _words_around(address, size)
        return self._bytes(first, (before + size + after) // WORD_BYTES)[before : before + size]

    # ---- launches -------------------------------------------------------------------------------

    def run(self, insn_address: int, insn_count: int) -> Launch:
        """Execute ``insn_count`` instructions from ``insn_address``.

        Raises StreamError where the machine reports a fault, and DeadlockError when patience ends.
        The machine keeps no trace, so the timeline is empty.
        """
        self.write_register("insn_address", insn_address)
        self.write_register("insn_count", insn_count)
        control = self._registers["control"]
        status = self._registers["status"]
        self.write_register("control", control.field("start").mask)
        ended = status.field("done").mask | status.field("error").mask
        deadline = self._clock() + self.patience
        while not (now := self.read_register("status")) & ended:
            if self._clock() > deadline:
                self.reset()
                raise DeadlockError(
                    f"the launch of {insn_count} instructions has not ended within "
                    f"{self.patience:g} s and was stopped; stages wait for tokens that never "
                    "come, or patience is too short"
                )
        if now & status.field("error").mask:
            fault, insn = Fault(self.read_register("error_cause")), self.read_register("error_insn")
            raise StreamError(f"the machine stopped at insn {insn}: {fault.sentence}", insn=insn)
        counters = self._counters()
        nothing = np.empty(0, dtype=np.int64)
        timeline = Timeline(np.empty(0, dtype=np.int8), nothing, nothing, nothing)
        return Launch(counters["cycles"], counters, timeline)

    def _counters(self) -> dict[str, int]:
        """All of them in one command: they lie behind each other."""
        places = [self._registers[counter.name] for counter in COUNTERS]
        first = places[0].offset
        words = (places[-1].offset - first) // WORD_BYTES + places[-1].words
        read = self._read(Command.READ_REGISTERS, first, words)
        return {
            place.name: read[i] | read[i + 1] << WORD_BITS
            for place in places
            for i in [(place.offset - first) // WORD_BYTES]
        }

    def reset(self) -> None:
        """Stop what runs, and forget tokens; SRAM and memory stay."""
        self.write_register("control", self._registers["control"].field("soft_reset").mask)
        busy = self._registers["status"].field("busy").mask
        deadline = self._clock() + self.patience
        while self.read_register("status") & busy:
            if self._clock() > deadline:
                raise BoardError(
                    f"the machine is still busy {self.patience:g} s after a soft reset; "
                    "reset the board"
                )

    # ---- the line -------------------------------------------------------------------------------

    def _identify(self) -> None:
        try:
            magic = self.read_register("magic")
        except BoardError:
            # A host before us may have left in the middle of a command.
            self._pipe.write(FILLER)
            while self._pipe.read(MOST_WORDS):  # until the line is quiet
                pass
            magic = self.read_register("magic")
        if magic != MAGIC:
            raise BoardError(f"register 0 is {magic:#010x}, not {MAGIC:#010x}: not a machine")
        there = self.read_register("machine_hash")
        if there != int(self.machine.hash, 16):
            raise BoardError(
                f"the machine on the board has the hash {there:016x}, and {self.machine.name!r} "
                f"has {self.machine.hash}; give the description that the bitstream was made from"
            )

    def _find_memory(self) -> int:
        """The first page without memory, by bisection."""
        here, gone = 0, 2**32 // PAGE_BYTES
        while gone - here > 1:
            page = (here + gone) // 2
            request = read_request(Command.READ_MEMORY, page * PAGE_BYTES, 1)
            if self._exchange(request)[-1] == Status.DONE:
                here = page
            else:
                gone = page
        return gone * PAGE_BYTES

    def _check_range(self, address: int, size: int) -> None:
        if address < 0 or size < 0 or address + size > self.memory_bytes:
            raise BoardError(
                f"bytes {address:#x} to {address + size:#x} are not all in memory, which has "
                f"{self.memory_bytes:#x}"
            )

    def _bytes(self, address: int, words: int) -> NDArray[np.uint8]:
        values = self._read(Command.READ_MEMORY, address, words)
        return np.array(values, dtype="<u4").view(np.uint8)

    def _read(self, command: Command, address: int, words: int) -> list[int]:
        values: list[int] = []
        while len(values) < words:
            part = min(words - len(values), MOST_WORDS)
            place = address + WORD_BYTES * len(values)
            answer = self._exchange(read_request(command, place, part))
            self._check_status(answer[-1], command, place, part)
            values += np.frombuffer(answer[:-1], dtype="<u4").tolist()
        return values

    def _write(self, command: Command, address: int, values: Sequence[int]) -> None:
        for first in range(0, len(values), MOST_WORDS):
            part = values[first : first + MOST_WORDS]
            place = address + WORD_BYTES * first
            answer = self._exchange(write_request(command, place, part))
            self._check_status(answer[-1], command, place, len(part))

    def _exchange(self, request: Request) -> bytes:
        self._pipe.write(request.data)
        answer = self._pipe.read(request.answer_bytes)
        if len(answer) < request.answer_bytes:
            raise BoardError(
                f"{len(answer)} of {request.answer_bytes} bytes came as an answer; is the board "
                "configured, and the speed of the line right?"
            )
        return bytes(answer)

    def _check_status(self, status: int, command: Command, address: int, words: int) -> None:
        if status == Status.FAILED:
            what = command.name.lower().replace("_", " ")
            raise BoardError(f"{what}: {words} words from {address:#x} are not all there")
        if status != Status.DONE:
            raise BoardError(
                f"an answer ended with {status:#04x} instead of a status; bytes were lost on the "
                "line"
            )


def _words_around(address: int, size: int) -> tuple[int, int, int]:
    """Address of the first whole word, and the bytes of words before and after the range."""
    before = address % WORD_BYTES
    return address - before, before, -(before + size) % WORD_BYTES
