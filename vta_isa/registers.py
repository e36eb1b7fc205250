"""The registers a host sees: one table, from which RTL, drivers and documentation follow.

Registers are 32-bit words, little-endian; a register of 64 bits is two of them, low word first.
Offsets never move: a new register takes a free place, and ``MAP_VERSION`` goes up when the meaning
of an old one changes.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum

from .counters import COUNTERS
from .enums import Buffer
from .faults import Fault
from .insn import INSN_BYTES
from .machine import Machine
from .version import __version__

WORD_BITS = 32
WORD_BYTES = WORD_BITS // 8
ADDRESS_BITS = 12  # of a byte offset: the registers take one 4 KiB page of the host's addresses
COUNTERS_OFFSET = 0x100
COUNTER_BITS = 64
MAGIC = int.from_bytes(b"VTA1", "big")
MAP_VERSION = 1

# Bursts are cut where addresses are multiples of a page at most, so a base that is one moves
# accesses without changing them.
BASE_ALIGNMENT_BITS = 12
# Buffers with a base of their own; ACC_8BIT is ACC in another format and shares its base.
BASED = (Buffer.UOP, Buffer.WGT, Buffer.INP, Buffer.ACC, Buffer.OUT)


class Access(StrEnum):
    """What reads and writes do. Writes to bits that are read-only have no effect."""

    READ_ONLY = "ro"
    READ_WRITE = "rw"
    WRITE_ONE_TO_CLEAR = "w1c"
    SELF_CLEARING = "sc"  # writing one does something, reading gives zero


class Source(StrEnum):
    """Where the bits of a read-only field come from."""

    CONSTANT = "constant"  # the reset value
    SIGNAL = "signal"
    COUNTER = "counter"


@dataclass(frozen=True)
class BitField:
    """``width`` bits from bit ``low`` of a register on."""

    name: str
    low: int
    width: int
    access: Access
    sentence: str
    reset: int = 0
    source: Source = Source.CONSTANT
    values: type[IntEnum] | None = None

    @property
    def bits(self) -> str:
        """``7:0``, or ``3`` for a single bit."""
        return f"{self.low + self.width - 1}:{self.low}" if self.width > 1 else str(self.low)

    @property
    def mask(self) -> int:
        """Its bits within the register."""
        return ((1 << self.width) - 1) << self.low


@dataclass(frozen=True)
class Register:
    """One or two words of the map; ``fields`` do not overlap, bits outside them read zero."""

    name: str
    offset: int  # bytes
    sentence: str
    fields: tuple[BitField, ...]
    words: int = 1

    @property
    def bits(self) -> int:
        return self.words * WORD_BITS

    @property
    def reset(self) -> int:
        """Its value after reset."""
        return sum(field.reset << field.low for field in self.fields)

    @property
    def access(self) -> str:
        """``ro``, or ``ro w1c`` where fields differ."""
        return " ".join(dict.fromkeys(str(field.access) for field in self.fields))

    @property
    def offsets(self) -> tuple[int, ...]:
        """Byte offset of each word, low word first."""
        return tuple(self.offset + WORD_BYTES * word for word in range(self.words))

    def field(self, name: str) -> BitField:
        return next(field for field in self.fields if field.name == name)

    def signal(self, field: BitField) -> str:
        """The field's name among the ports of the RTL: ``status_done``, ``insn_count``."""
        return self.name if field.name == self.name else f"{self.name}_{field.name}"


def register_map(machine: Machine) -> list[Register]:
    """Every register of the machine in the order of offsets.

    From machine to machine only reset values and the width of addresses differ.
    """
    addr_bits = machine.axi.addr_bits
    ro, rw = Access.READ_ONLY, Access.READ_WRITE
    w1c, sc = Access.WRITE_ONE_TO_CLEAR, Access.SELF_CLEARING
    events = (
        ("done", "a launch has ended, every instruction executed"),
        ("error", "a launch was stopped; see error_cause"),
    )
    head = [
        _single("magic", 0x000, ro, "identifies the machine: VTA1 in ASCII", reset=MAGIC),
        Register("version", 0x004, "of the kit that made the machine, and of this map", _version()),
        _single(
            "machine_hash",
            0x008,
            ro,
            "of the machine description, as `vta machines --json` shows it",
            reset=int(machine.hash, 16),
            words=2,
        ),
        Register(
            "control",
            0x010,
            "starts and stops the machine",
            (
                BitField("start", 0, 1, sc, "begin a launch; ignored while busy"),
                BitField(
                    "soft_reset",
                    1,
                    1,
                    sc,
                    "stop what runs, empty queues and tokens; busy until DRAM has answered",
                ),
            ),
        ),
        Register(
            "status",
            0x014,
            "how far the launch is",
            (
                BitField("busy", 0, 1, ro, "a launch or a reset is under way", 0, Source.SIGNAL),
                *(
                    BitField(name, bit, 1, w1c, f"{what}; a start clears it")
                    for bit, (name, what) in enumerate(events, start=1)
                ),
            ),
        ),
        Register(
            "interrupt_status",
            0x018,
            "reasons for an interrupt",
            tuple(BitField(name, bit, 1, w1c, what) for bit, (name, what) in enumerate(events)),
        ),
        Register(
            "interrupt_enable",
            0x01C,
            "which reasons raise the interrupt line, as long as their status is set",
            tuple(BitField(name, bit, 1, rw, what) for bit, (name, what) in enumerate(events)),
        ),
        _single(
            "insn_address",
            0x020,
            rw,
            f"byte address of the stream, a multiple of {INSN_BYTES}",
            words=2,
            width=addr_bits,
        ),
        _single("insn_count", 0x028, rw, "instructions in the stream"),
        Register(
            "error_cause",
            0x02C,
            "what stopped the last launch",
            (
                BitField(
                    "error_cause", 0, 8, ro, "a Fault", Fault.NONE, Source.SIGNAL, values=Fault
                ),
            ),
        ),
        _single(
            "error_insn",
            0x030,
            ro,
            "number in the stream of the instruction that stopped it; where memory answered with "
            "an error, of the last one dispatched, all ones if none was",
            source=Source.SIGNAL,
        ),
    ]
    bases = [
        _single(
            f"{buffer.name.lower()}_base",
            0x040 + 8 * number,
            rw,
            f"added to the DRAM addresses of {buffer.name}; "
            f"the low {BASE_ALIGNMENT_BITS} bits are zero",
            words=2,
            low=BASE_ALIGNMENT_BITS,
            width=addr_bits - BASE_ALIGNMENT_BITS,
        )
        for number, buffer in enumerate(BASED)
    ]
    counters = [
        _single(
            counter.name,
            COUNTERS_OFFSET + COUNTER_BITS // 8 * number,
            ro,
            f"{counter.sentence} [{counter.unit}]",
            words=2,
            source=Source.COUNTER,
        )
        for number, counter in enumerate(COUNTERS)
    ]
    return head + bases + counters


def _single(
    name: str,
    offset: int,
    access: Access,
    sentence: str,
    *,
    reset: int = 0,
    words: int = 1,
    low: int = 0,
    width: int | None = None,
    source: Source = Source.CONSTANT,
) -> Register:
    """A register that is one field of the same name; as wide as the register unless told."""
    if width is None:
        width = words * WORD_BITS
    field = BitField(name, low, width, access, sentence, reset, source)
    return Register(name, offset, sentence, (field,), words)


def _version() -> tuple[BitField, ...]:
    release = re.match(r"(\d+)\.(\d+)\.(\d+)", __version__)
    assert release is not None
    major, minor, patch = (int(part) for part in release.groups())
    numbers = (("patch", patch), ("minor", minor), ("major", major), ("map", MAP_VERSION))
    return tuple(
        BitField(
            name,
            8 * place,
            8,
            Access.READ_ONLY,
            "version of this map" if name == "map" else f"{name} version of the kit",
            reset=number,
        )
        for place, (name, number) in enumerate(numbers)
    )


def by_name(registers: Sequence[Register]) -> dict[str, Register]:
    return {register.name: register for register in registers}
