"""Instruction streams as text and back, without loss.

One instruction per line: a mnemonic, then ``field=value`` for every field that is not 0 and the
bare name of every 1-bit field that is 1, in any order::

    .buffer weights = 0x2000, 4096            # DRAM byte address and, optionally, bytes
    load.wgt dram_base=weights+2 y_size=1 x_size=8 x_stride=8 push_next
    gemm uop_end=4 iter_out=12 iter_in=1 dst_factor_out=1 pop_prev
    alu.shr use_imm imm=-8 uop_end=1 iter_out=1 iter_in=16
    alu.requantize shift=8 low_kind=2 high=127 uop_end=1 iter_out=4 iter_in=16 dst_factor_out=16
    finish
    .word 0x0000000000000000_0000000000000005   # any 128 bits

The part after the dot is the buffer of a load or store and the operation of an ALU instruction; a
number stands for an undefined one. Fields and operations of extensions (``alu.requantize``, and
``overwrite`` of a gemm) are there on machines that have them. A label in ``dram_base`` is the
number of the entry, in entries of the instruction's buffer, at its byte address; ``+n`` counts such
entries. ``reserved=`` holds the bits, in place in the 128-bit word, that no field owns; it is
written only where they are not 0. ``#`` and ``;`` start comments. Numbers are decimal, ``0x…`` or
``0b…``, and may contain ``_``.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from .encoding import Stream, as_words, decode_stream
from .enums import Buffer, Opcode, Stage
from .errors import AssemblyError
from .insn import FLAGS, INSN_BITS, INSN_DTYPE, INSN_UNIT_BITS, alu_operations, layouts, stages
from .layout import Layout
from .machine import Machine
from .suggest import did_you_mean

Labels = Mapping[str, tuple[int, int]]
"""DRAM byte address and bytes of named buffers."""

RESERVED = "reserved"
LABEL = re.compile(r"[A-Za-z_][\w.]*")

_TOKEN = re.compile(r"[^\s,=]+|[,=]")
_NUMBER = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F_]+|0[bB][01_]+|[0-9][0-9_]*)")
_MNEMONICS = tuple(op.name.lower() for op in Opcode)
# The field that is written after the dot of the mnemonic, by opcode.
_SUFFIX = {int(Opcode.LOAD): "buffer", int(Opcode.STORE): "buffer", int(Opcode.ALU): "alu_op"}


def format_stream(
    stream: Stream,
    machine: Machine,
    labels: Labels | None = None,
    comments: bool | Mapping[int, str] = True,
) -> str:
    """The stream as text that `parse_stream` turns into the same bits.

    DRAM addresses inside one of `labels` are written relative to it. `comments` adds to each line
    the instruction's number and stage, or the text given for that number.
    """
    words = as_words(stream)
    table = decode_stream(words, machine)
    for name in labels or {}:
        if not LABEL.fullmatch(name):
            raise AssemblyError(f"label {name!r} is no name; a name is letters, digits, _ and .")
    lines = [
        f".buffer {name} = {address:#x}, {size}" for name, (address, size) in (labels or {}).items()
    ]
    notes = _comments(table, comments)
    texts = list(_format_insns(words, table, machine, labels or {}))
    width = min(max((len(text) for text in texts), default=0), 100)
    for number, text in enumerate(texts):
        note = notes.get(number)
        lines.append(f"{text:<{width}}  # {note}" if note else text)
    return "".join(f"{line}\n" for line in lines)


def parse_stream(text: str, machine: Machine, source: str = "") -> NDArray[np.uint64]:
    """(n, 2) uint64 of assembly text; AssemblyError names `source`, line and column."""
    return _Parser(machine, source).parse(text)


def _format_insns(
    words: NDArray[np.uint64], table: NDArray[np.void], machine: Machine, labels: Labels
) -> Iterator[str]:
    kinds = layouts(machine)
    names = INSN_DTYPE.names or ()
    for (low, high), record in zip(words.tolist(), table.tolist(), strict=True):
        word = low | high << INSN_UNIT_BITS
        values = dict(zip(names, record, strict=True))
        layout = kinds.of(values["opcode"], values["alu_op"])
        if layout is None:
            yield f".word {_hex_word(word)}"
            continue
        parts = [_mnemonic(values, machine)]
        shown = [name for name, slot in layout.slots.items() if values[name] and name != "opcode"]
        if values["opcode"] in _SUFFIX:
            shown = [name for name in shown if name != _SUFFIX[values["opcode"]]]
        flags = [name for name in shown if name in FLAGS]
        for name in [name for name in shown if name not in FLAGS] + flags:
            if layout.slots[name].field.width == 1:
                parts.append(name)
            elif name == "dram_base":
                parts.append(f"{name}={_address(values, machine, labels)}")
            else:
                parts.append(f"{name}={values[name]}")
        if reserved := word & layout.reserved_mask:
            parts.append(f"{RESERVED}={reserved:#x}")
        yield " ".join(parts)


def _mnemonic(values: Mapping[str, int], machine: Machine) -> str:
    opcode = Opcode(values["opcode"])
    if opcode not in _SUFFIX:
        return opcode.name.lower()
    name = _SUFFIX[opcode]
    value = values[name]
    word = {int(each): each.name.lower() for each in _variants(name, machine)}.get(value, value)
    return f"{opcode.name.lower()}.{word}"


def _variants(name: str, machine: Machine) -> Sequence[IntEnum]:
    """What may stand after the dot: the values of the field `name`."""
    return alu_operations(machine) if name == "alu_op" else tuple(Buffer)


def _address(values: Mapping[str, int], machine: Machine, labels: Labels) -> str:
    """``label+entries`` if the address lies in a labelled buffer, else the number."""
    entry = values["dram_base"]
    unit = _entry_bytes(values["buffer"], machine)
    if unit is not None:
        for name, (address, size) in labels.items():
            if address % unit == 0 and address <= entry * unit < address + size:
                offset = entry - address // unit
                return f"{name}+{offset}" if offset else name
    return f"{entry:#x}"


def _entry_bytes(buffer: int, machine: Machine) -> int | None:
    """Bytes of the unit of ``dram_base``; None where the buffer is undefined."""
    return machine.entry_bytes(Buffer(buffer)) if buffer in set(Buffer) else None


def _comments(table: NDArray[np.void], comments: bool | Mapping[int, str]) -> dict[int, str]:
    if isinstance(comments, Mapping):
        return {number: " ".join(text.split()) for number, text in comments.items()}
    if not comments:
        return {}
    moves = (table["opcode"] == Opcode.LOAD) | (table["opcode"] == Opcode.STORE)
    noop = moves & (table["x_size"] == 0)
    names = (Stage(stage).name.lower() for stage in stages(table).tolist())
    return {
        number: f"{number}: {name}" + (", no-op" if noop[number] else "")
        for number, name in enumerate(names)
    }


def _hex_word(word: int) -> str:
    digits = f"{word:032x}"
    return f"0x{digits[:16]}_{digits[16:]}"


@dataclass(frozen=True)
class _Token:
    text: str
    line: int  # from 1
    column: int  # from 1


@dataclass(frozen=True)
class _Label:
    address: int
    size: int | None


class _Parser:
    """One text; labels may be used before the line that defines them."""

    def __init__(self, machine: Machine, source: str):
        self.machine = machine
        self.layouts = layouts(machine)
        self.source = source
        self.labels: dict[str, _Label] = {}

    def parse(self, text: str) -> NDArray[np.uint64]:
        lines = []
        for number, line in enumerate(text.splitlines(), start=1):
            code = re.split(r"[#;]", line, maxsplit=1)[0]
            tokens = [
                _Token(match.group(), number, match.start() + 1) for match in _TOKEN.finditer(code)
            ]
            if tokens and tokens[0].text == ".buffer":
                self.buffer(tokens)
            elif tokens:
                lines.append(tokens)
        words = [
            self.word(tokens) if tokens[0].text == ".word" else self.insn(tokens)
            for tokens in lines
        ]
        halves = [(word & (2**INSN_UNIT_BITS - 1), word >> INSN_UNIT_BITS) for word in words]
        return np.array(halves, dtype=np.uint64).reshape(-1, 2)

    def buffer(self, tokens: list[_Token]) -> None:
        """``.buffer NAME = ADDRESS`` or ``.buffer NAME = ADDRESS, BYTES``."""
        texts = [token.text for token in tokens]
        shape = "`.buffer NAME = ADDRESS, BYTES`"
        if len(texts) < 4 or texts[2] != "=" or (len(texts) > 4 and texts[4] != ","):
            raise self.error(tokens[-1], f"expected {shape}")
        if len(texts) not in (4, 6):
            raise self.error(tokens[-1], f"expected {shape} and the end of the line")
        name = tokens[1]
        if not LABEL.fullmatch(name.text):
            raise self.error(name, f"{name.text!r} is no name; a name is letters, digits, _ and .")
        if name.text in self.labels:
            raise self.error(name, f"buffer {name.text!r} is defined twice; rename one")
        address = self.number(tokens[3], "a DRAM byte address")
        size = self.number(tokens[5], "a number of bytes") if len(texts) == 6 else None
        if address < 0 or (size is not None and size < 0):
            raise self.error(tokens[3], "addresses and sizes are not negative")
        self.labels[name.text] = _Label(address, size)

    def word(self, tokens: list[_Token]) -> int:
        """``.word NUMBER``: the 128 bits as they are."""
        if len(tokens) != 2:
            raise self.error(tokens[-1], "expected one number after .word")
        value = self.number(tokens[1], f"a number of {INSN_BITS} bits")
        if not 0 <= value < 1 << INSN_BITS:
            raise self.error(tokens[1], f"{tokens[1].text} does not fit {INSN_BITS} bits")
        return value

    def insn(self, tokens: list[_Token]) -> int:
        opcode, values = self.mnemonic(tokens[0])
        layout = self.layouts.of(opcode, values.get("alu_op", 0))
        assert layout is not None
        reserved = 0
        settable = [name for name in layout.slots if name not in values]
        seen: set[str] = set()
        rest = iter(tokens[1:])
        pending = next(rest, None)
        while pending is not None:
            name, equals = pending, next(rest, None)
            if name.text != RESERVED and name.text not in settable:
                known = [*settable, RESERVED]
                raise self.error(
                    name,
                    f"{tokens[0].text} has no field {name.text!r}{did_you_mean(name.text, known)}",
                )
            if name.text in seen:
                raise self.error(name, f"{name.text} is given twice; remove one")
            seen.add(name.text)
            one_bit = name.text != RESERVED and layout.slots[name.text].field.width == 1
            if equals is None or equals.text != "=":
                if not one_bit:
                    raise self.error(name, f"expected `{name.text}=VALUE`")
                values[name.text] = 1
                pending = equals
                continue
            value = next(rest, None)
            if value is None:
                raise self.error(equals, f"expected a value after `{name.text}=`")
            if name.text == RESERVED:
                reserved = self.reserved(value, layout)
            else:
                values[name.text] = self.value(value, name.text, values, layout)
            pending = next(rest, None)
        return layout.encode(**values) | reserved

    def mnemonic(self, token: _Token) -> tuple[Opcode, dict[str, int]]:
        """The opcode and the fields that the mnemonic sets."""
        head, dot, tail = token.text.partition(".")
        if not head or head not in _MNEMONICS:
            known = (*_MNEMONICS, ".buffer", ".word")
            guess = did_you_mean(head or token.text, known)
            raise self.error(token, f"unknown mnemonic {token.text!r}{guess}")
        opcode = Opcode[head.upper()]
        values = {"opcode": int(opcode)}
        if opcode not in _SUFFIX:
            if dot:
                raise self.error(token, f"{head} has no variants; write `{head}`")
            return opcode, values
        name = _SUFFIX[opcode]
        words = {each.name.lower(): int(each) for each in _variants(name, self.machine)}
        if tail in words:
            values[name] = words[tail]
        elif tail.isascii() and tail.isdigit():
            values[name] = int(tail)
            self.check(token, self.layouts.of(opcode), name, int(tail))
        else:
            raise self.error(
                token,
                f"expected {head}.{name.upper()}, not {token.text!r}{did_you_mean(tail, words)}",
            )
        return opcode, values

    def value(self, token: _Token, name: str, values: Mapping[str, int], layout: Layout) -> int:
        if name == "dram_base" and LABEL.match(token.text):
            value = self.address(token, values["buffer"])
        else:
            value = self.number(token, f"a number for {name}")
        self.check(token, layout, name, value)
        return value

    def address(self, token: _Token, buffer: int) -> int:
        """The entry at ``LABEL`` or ``LABEL+ENTRIES``."""
        name, plus, offset = token.text.partition("+")
        if name not in self.labels:
            raise self.error(
                token, f"no buffer {name!r}{did_you_mean(name, self.labels)}; define it by .buffer"
            )
        unit = _entry_bytes(buffer, self.machine)
        if unit is None:
            raise self.error(token, f"buffer {buffer} is undefined, so its entries have no size")
        label = self.labels[name]
        if label.address % unit:
            raise self.error(
                token,
                f"{name} at {label.address:#x} is no multiple of the {unit} bytes of one "
                f"{Buffer(buffer).name.lower()} entry; align it",
            )
        entries = 0
        if plus:
            column = token.column + len(name) + 1
            entries = self.number(_Token(offset, token.line, column), "a number of entries")
        if label.size is not None and not 0 <= entries * unit < max(label.size, 1):
            raise self.error(
                token, f"{token.text} lies outside {name}, which has {label.size // unit} entries"
            )
        return label.address // unit + entries

    def reserved(self, token: _Token, layout: Layout) -> int:
        value = self.number(token, "the reserved bits")
        if value < 0 or value & ~layout.reserved_mask:
            raise self.error(
                token,
                f"{token.text} has bits that belong to fields of {layout.name}; "
                f"reserved are {layout.reserved_mask:#x}",
            )
        return value

    def check(self, token: _Token, layout: Layout | None, name: str, value: int) -> None:
        assert layout is not None
        field = layout.slots[name].field
        if not field.low <= value <= field.high:
            raise self.error(token, layout.misfit(name, value))

    def number(self, token: _Token, what: str) -> int:
        try:
            if _NUMBER.fullmatch(token.text):
                return int(token.text, 0)
        except ValueError:  # 007, 1__0: numbers to the eye, not to Python
            pass
        raise self.error(token, f"expected {what}, not {token.text!r}")

    def error(self, token: _Token, message: str) -> AssemblyError:
        where = f"{self.source}, " if self.source else ""
        return AssemblyError(f"{where}line {token.line}, column {token.column}: {message}")
