"""``vta rtl``: the machine as Verilog, with what other tools need to use it."""

import contextlib
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import options

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class Top(StrEnum):
    """What is written: the machine with registers, or its core alone."""

    AXI = "axi"
    CORE = "core"


def register(app: typer.Typer) -> None:
    app.command("rtl")(write_rtl)


def write_rtl(
    folder: Annotated[
        Path, typer.Option("-o", "--output", metavar="DIR", help="Folder to write, new or empty.")
    ],
    machine: options.Machine = "default",
    top: Annotated[
        Top, typer.Option("--top", help="`axi`: with registers and interrupt; `core`: without.")
    ] = Top.AXI,
    force: Annotated[
        bool, typer.Option("--force", help="Write into a folder that is not empty.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Write a machine as Verilog, with registers for C, constraints and scripts for Vivado."""
    from vta_isa import load_machine

    from ..extras import needs_amaranth
    from ..folders import whole_folder
    from .console import print_json

    with needs_amaranth("rtl"):
        from vta_hw.package import Kind, digest, package

    target = load_machine(machine)
    with whole_folder(folder, force=force) as write, _status(f"making {target.name} as Verilog"):
        texts = package(target, Kind(top.value))
        for name, text in texts.items():
            write(name, text)
    listed = {name: digest(text) for name, text in texts.items()}
    if as_json:
        print_json(
            {
                "machine": {"name": target.name, "hash": target.hash},
                "top": top.value,
                "folder": str(folder),
                "files": [{"name": name, **each} for name, each in listed.items()],
            }
        )
        return
    _print_files(folder, listed)


def _print_files(folder: Path, listed: "Mapping[str, Mapping[str, object]]") -> None:
    for name, each in listed.items():
        print(f"{each['bytes']:>12,} bytes  {folder / name}")


@contextlib.contextmanager
def _status(text: str) -> "Iterator[None]":
    """What takes so long, on standard error, while somebody watches it."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(text):
        yield
