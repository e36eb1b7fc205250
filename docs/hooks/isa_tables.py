"""The tables of the instruction set reference, made from the tables of ``vta_isa``.

A page says where: ``<!-- isa: mem -->`` becomes the bits of that word, ``<!-- isa: opcodes -->``
the opcodes, and so on; ``<!-- source: simulator.reference.gemm -->`` that function's source.
"""

import importlib
import inspect
import re
from collections.abc import Iterable
from enum import IntEnum

from mkdocs.exceptions import PluginError
from mkdocs.structure.pages import Page

from vta_isa import (
    AluOp,
    Buffer,
    FusedOp,
    LowKind,
    Machine,
    Opcode,
    Stage,
    TokenQueue,
    layouts,
    load_machine,
)
from vta_isa.faults import Fault
from vta_isa.layout import Layout
from vta_isa.table import layout_rows

PLACE = re.compile(r"<!-- (?P<kind>isa|source): (?P<name>\S+) -->")


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    def fill(place: re.Match[str]) -> str:
        if place["kind"] == "source":
            return source(place["name"])
        known = tables(load_machine("default"))
        if place["name"] not in known:
            raise PluginError(
                f"{page.file.src_uri}: there is no table {place['name']!r}; "
                f"there are {', '.join(known)}"
            )
        return known[place["name"]]

    return PLACE.sub(fill, markdown)


def tables(machine: Machine) -> dict[str, str]:
    """Every table by name: one per word of the machine's instruction set, then the numbers.

    ``extended-gemm`` and ``requantize`` are the words that the machine has with extensions.
    """
    words = {part.name.lower(): word_table(part) for part in layouts(machine)}
    every = dict.fromkeys(type(machine.extensions).model_fields, True)
    extended = layouts(machine.replace(extensions=every))
    assert extended.requantize is not None
    words["extended-gemm"] = word_table(extended.gemm)
    words["requantize"] = word_table(extended.requantize)
    faults = ((str(int(each)), f"`{each.name}`", each.sentence) for each in Fault)
    return words | {
        "opcodes": _numbers(Opcode),
        "buffers": _buffers(machine),
        "alu-ops": _numbers(AluOp),
        "fused-ops": _numbers(FusedOp),
        "low-kinds": _numbers(LowKind),
        "stages": _numbers(Stage),
        "token-queues": _numbers(TokenQueue),
        "faults": _table(("number", "fault", "what happened"), faults),
    }


def word_table(layout: Layout) -> str:
    """The bits of one word, the lowest first."""
    rows = (
        (
            row.bits,
            str(row.width),
            f"`{row.field}`" if row.field else "reserved",
            row.meaning or row.allowed or "written as 0, ignored when read",
        )
        for row in layout_rows(layout)
    )
    return _table(("bits", "width", "field", "values"), rows)


def source(name: str) -> str:
    """The source of a function or class, fenced."""
    module, _, attribute = name.rpartition(".")
    text = inspect.getsource(getattr(importlib.import_module(module), attribute))
    return f"```python\n{text.rstrip()}\n```"


def _numbers(enum: type[IntEnum]) -> str:
    return _table(("number", "name"), ((str(int(each)), f"`{each.name}`") for each in enum))


def _buffers(machine: Machine) -> str:
    def row(buffer: Buffer) -> tuple[str, ...]:
        rows, columns = machine.entry_shape(buffer)
        axes = "" if buffer is Buffer.UOP else " x ".join(machine.entry_axes(buffer))
        return (
            str(int(buffer)),
            f"`{buffer.name}`",
            f"{rows} x {columns} x {machine.bits(buffer)} bits",
            axes,
            str(machine.entry_bytes(buffer)),
            str(machine.depth(buffer)),
        )

    head = ("number", "buffer", "entry", "axes", "bytes of an entry in DRAM", "entries")
    return _table(head, map(row, Buffer))


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
