"""``vta check``: everything wrong with an instruction stream, before it runs."""

from pathlib import Path
from typing import Annotated

import typer

from . import options


def register(app: typer.Typer) -> None:
    app.command("check")(check_stream)


def check_stream(
    stream: Annotated[Path, typer.Argument(help="Binary file of 128-bit instructions.")],
    machine: options.Machine = "default",
    dram: Annotated[
        Path | None,
        typer.Option(
            "--dram",
            metavar="IMAGE",
            help="DRAM before: byte n is address n. Without it, micro-ops are unknown.",
        ),
    ] = None,
    fresh: Annotated[
        bool,
        typer.Option(
            "--fresh",
            help="Nothing ran before: SRAM read but never written is an error, not a warning.",
        ),
    ] = False,
    expect: Annotated[
        Path | None,
        typer.Option(
            "--expect",
            metavar="IMAGE",
            help="DRAM there should be afterwards; the stream is executed if it has no errors.",
        ),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Find races, deadlocks and stray accesses that some memory timing would bring out.

    Ends with status 1 if there are errors; warnings alone leave it 0.
    """
    import numpy as np

    from simulator.checker import check, errors
    from vta_isa import as_words, load_machine

    from .console import print_json
    from .inputs import about

    target = load_machine(machine)
    image, after = (
        None if file is None else np.fromfile(file, dtype=np.uint8) for file in (dram, expect)
    )
    with about(stream):
        words = as_words(stream.read_bytes())
        findings = check(words, target, image, fresh=fresh, expected=after)
    wrong = sum(1 + each.more for each in errors(findings))
    warned = sum(1 + each.more for each in findings) - wrong
    if as_json:
        print_json(
            {
                "machine": {"name": target.name, "hash": target.hash},
                "instructions": len(words),
                "errors": wrong,
                "warnings": warned,
                "findings": [finding.as_json() for finding in findings],
            }
        )
    else:
        for finding in findings:
            print(finding)
        print(
            f"{stream}: {len(words)} instructions, {_count(wrong, 'error')}, "
            f"{_count(warned, 'warning')}"
        )
    if wrong:
        raise typer.Exit(1)


def _count(number: int, what: str) -> str:
    return f"{number or 'no'} {what}{'' if number == 1 else 's'}"
