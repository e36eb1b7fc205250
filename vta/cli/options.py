"""Options that several commands share, so that they are spelled and explained once."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Device(StrEnum):
    """What executes the instruction streams."""

    SIMULATOR = "simulator"
    REFERENCE = "reference"
    RTL = "rtl"


Machine = Annotated[
    str,
    typer.Option(
        "-c",
        "--machine",
        metavar="MACHINE",
        help="A preset (see `vta machines`), a YAML file, or a published vta_config.json.",
    ),
]
Devices = Annotated[
    Device,
    typer.Option(
        "--device", help="`reference` is the slow, obvious judge, `rtl` the hardware in Verilator."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the same as JSON.")]
Workload = Annotated[
    str,
    typer.Argument(
        metavar="WORKLOAD",
        help="A preset (see `vta workloads`) or a YAML file; PRESET/LAYER picks one layer.",
    ),
]
NoVthreads = Annotated[
    bool, typer.Option("--no-vthreads", help="Compile without virtual threads: nothing overlaps.")
]
Output = Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="File to write.")]
Waves = Annotated[
    Path | None,
    typer.Option("--waves", metavar="FILE", help="Save every signal of the RTL, as .vcd or .fst."),
]
WaveCycles = Annotated[
    str | None,
    typer.Option("--cycles", metavar="FIRST:END", help="The cycles that --waves saves."),
]


def quantity(option: str, text: str, units: dict[str, int]) -> int:
    """What is given to ``option``: a number with one of ``units``. Raises BadParameter."""
    from vta_isa.units import parse_quantity

    try:
        return parse_quantity(text, units)
    except ValueError as error:
        raise typer.BadParameter(f"{option}: {text!r} {error}") from None
