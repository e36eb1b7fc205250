"""``vta asm``, ``vta disasm``, ``vta isa``: the instruction set as text."""

from pathlib import Path
from typing import Annotated

import typer

from . import options


def register(app: typer.Typer) -> None:
    app.command("asm")(assemble)
    app.command("disasm")(disassemble)
    app.command("isa")(describe)


def assemble(
    source: Annotated[Path, typer.Argument(help="Assembly text, as `vta disasm` prints it.")],
    output: options.Output,
    machine: options.Machine = "default",
) -> None:
    """Translate assembly into a binary instruction stream."""
    from vta_isa import load_machine
    from vta_isa.assembly import parse_stream

    from ..files import check_writable, write_whole
    from .inputs import read_text

    target = load_machine(machine)
    text = read_text(source)
    check_writable(output)
    words = parse_stream(text, target, source=str(source))
    write_whole(output, words.tobytes())
    print(f"{output}: {len(words)} instructions, {words.nbytes} bytes")


def disassemble(
    stream: Annotated[Path, typer.Argument(help="Binary file of 128-bit instructions.")],
    machine: options.Machine = "default",
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Write here instead of printing."),
    ] = None,
    buffer: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=ADDRESS,BYTES",
            help="Write DRAM addresses inside this buffer as NAME+entry. May be repeated.",
        ),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Print an instruction stream as assembly, which `vta asm` turns back into the same bytes."""
    from vta_isa import as_words, load_machine
    from vta_isa.assembly import format_stream

    from ..files import check_writable, write_whole
    from .inputs import about

    target = load_machine(machine)
    labels = dict(_label(text) for text in buffer or ())
    if output is not None:
        check_writable(output)
    with about(stream):
        words = as_words(stream.read_bytes())
    if as_json:
        import json

        from vta_isa import decode_stream

        table = decode_stream(words, target)
        rows = (dict(zip(table.dtype.names or (), row, strict=True)) for row in table.tolist())
        text = json.dumps(list(rows), indent=2) + "\n"
    else:
        text = format_stream(words, target, labels)
    if output is not None:
        write_whole(output, text)
    else:
        print(text, end="" if text.endswith("\n") else "\n")


def _label(text: str) -> tuple[str, tuple[int, int]]:
    name, _, place = text.partition("=")
    try:
        address, size = (int(number, base=0) for number in place.split(","))
    except ValueError:
        raise typer.BadParameter(
            f"--buffer {text!r} is not NAME=ADDRESS,BYTES, as in weights=0x2000,4096."
        ) from None
    return name.strip(), (address, size)


def describe(machine: options.Machine = "default", as_json: options.Json = False) -> None:
    """Print the bits of every instruction and micro-op of a machine."""
    from vta_isa import load_machine

    from ..report import isa
    from .console import print_json, print_table

    target = load_machine(machine)
    if as_json:
        print_json(isa.as_json(target))
        return
    for table in isa.tables(target):
        print_table(table)
