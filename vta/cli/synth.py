"""``vta synth``: what a machine takes on an FPGA, and how fast it runs there."""

import contextlib
import sys
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import options

if TYPE_CHECKING:
    from rich.table import Table

    from vta_hw.synth import Area, Family, Route, Synthesis
    from vta_hw.synth.tools import Progress


class FamilyName(StrEnum):
    """FPGA families that Yosys maps to."""

    ECP5 = "ecp5"
    XC7 = "xc7"
    ICE40 = "ice40"
    GOWIN = "gowin"


class Top(StrEnum):
    """What is synthesised: the machine with its registers, without, or one of its parts."""

    AXI = "axi"
    CORE = "core"
    FETCH = "fetch"
    LOAD = "load"
    COMPUTE = "compute"
    STORE = "store"
    GEMM = "gemm"
    ALU = "alu"


def register(app: typer.Typer) -> None:
    app.command("synth")(synthesize_machine)


def synthesize_machine(
    family: Annotated[FamilyName, typer.Option("--family", help="FPGA family.")],
    machine: options.Machine = "default",
    top: Annotated[
        Top, typer.Option("--top", help="`axi` is the core with its registers.")
    ] = Top.CORE,
    pnr: Annotated[
        bool, typer.Option("--pnr", help="Place and route as well, for the clock (ecp5).")
    ] = False,
    clock: Annotated[
        str | None,
        typer.Option(
            "--clock",
            metavar="HZ",
            help="What --pnr aims at, as '75 MHz'. Without: the clock of the machine.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=1, help="Of place and route.")] = 1,
    bitstream: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Save the bitstream that --pnr makes."),
    ] = None,
    depth: Annotated[
        int, typer.Option("--depth", min=0, help="Levels of modules in the table.")
    ] = 2,
    as_json: options.Json = False,
) -> None:
    """Synthesise a machine with open tools; print what each module takes, and the clock."""
    from vta_isa import load_machine
    from vta_isa.units import HERTZ

    from ..extras import needs_amaranth
    from ..files import check_writable, write_whole
    from .console import print_json, print_table

    with needs_amaranth("synth"):
        from vta_hw.synth import FAMILIES, check_route, check_synthesis, route, synthesize
        from vta_hw.synth.tops import component

    if bitstream is not None and not pnr:
        raise typer.BadParameter("-o saves what --pnr makes; add --pnr.")
    if clock is not None and not pnr:
        raise typer.BadParameter("--clock is what --pnr aims at; add --pnr.")
    target = load_machine(machine)
    target_hz = target.clock if clock is None else options.quantity("--clock", clock, HERTZ)
    if target_hz <= 0:
        raise typer.BadParameter(f"--clock: {clock!r} is no clock; write one like '75 MHz'.")
    if bitstream is not None:
        check_writable(bitstream)
    chosen = FAMILIES[family.value]
    check_synthesis()
    if pnr:
        check_route(chosen)
    routed = None
    with _status() as progress:
        design = component(top.value, target)
        if pnr:
            figures, routed = route(
                design,
                chosen,
                top=top.value,
                seed=seed,
                target_hz=target_hz,
                progress=progress,
            )
        else:
            figures = synthesize(design, chosen, top=top.value, progress=progress)
    if bitstream is not None and routed is not None:
        write_whole(bitstream, routed.bitstream)
    if as_json:
        print_json(
            {
                "machine": {"name": target.name, "hash": target.hash},
                **figures.as_json(),
                **({"route": routed.as_json()} if routed else {}),
            }
        )
        return
    print_table(_area_table(figures, chosen, target.name, depth))
    for line in _findings(figures, chosen):
        print(line)
    if routed:
        print_table(_path_table(routed, top.value, target_hz))


def _area_table(figures: "Synthesis", family: "Family", machine: str, depth: int) -> "Table":
    from rich import box
    from rich.table import Table

    table = Table(
        title=f"{figures.top} of {machine} on {family.name}, by module (with the modules inside)",
        box=box.SIMPLE_HEAD,
    )
    table.add_column("module")
    for heading in ("LUT", "as memory", "FF", family.dsp_name, family.block_ram_name):
        table.add_column(heading, justify="right")
    for module in figures.to_depth(depth):
        if module.path:
            *above, name = module.path.split(".")
            table.add_row("  " * len(above) + name, *_cells(module.all))
    table.add_section()
    table.add_row("total", *_cells(figures.total))
    return table


def _cells(area: "Area") -> tuple[str, ...]:
    whole = (area.lut, area.lut_ram, area.ff, area.dsp)
    return *(f"{number:,}" for number in whole), f"{area.block_ram:g}"


def _findings(figures: "Synthesis", family: "Family") -> Iterator[str]:
    """What a reader of the table would ask next: memories and products in the wrong place."""
    for memory in figures.memories:
        if memory.kind != "block RAM":
            yield f"memory in {memory.kind}: {memory.path}"
    for product in figures.multiplications:
        if not product.dsp:
            a, b, _ = product.bits
            yield f"multiplication in LUTs: {product.path or figures.top}, {a} x {b} bits"
    if family.name == "xc7":
        yield "LUT: logic and memory, without packing two small functions into one LUT"


def _path_table(routed: "Route", top: str, target_hz: int) -> "Table":
    from rich import box
    from rich.table import Table

    used = ", ".join(
        f"{kind} {count:,} of {there:,}" for kind, (count, there) in sorted(routed.used.items())
    )
    table = Table(
        title=f"{routed.clock_mhz:.1f} MHz on {routed.device}, {target_hz / 1e6:g} MHz aimed at "
        f"(seed {routed.seed}); {used}\n"
        "critical path, through modules in this order",
        box=box.SIMPLE_HEAD,
    )
    table.add_column("module")
    table.add_column("ns", justify="right")
    for module, delay_ns in routed.path_modules:
        where = "(scan register)" if module is None else module or top
        table.add_row(where, f"{delay_ns:.2f}")
    return table


@contextlib.contextmanager
def _status() -> "Iterator[Progress]":
    """What is being done, on standard error, while somebody watches it."""
    if not sys.stderr.isatty():
        yield lambda text: None
        return
    from rich.console import Console

    with Console(stderr=True).status("") as status:
        yield status.update
