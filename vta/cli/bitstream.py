"""``vta bitstream``: a machine as the file that configures an FPGA board."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options

if TYPE_CHECKING:
    from vta_hw.boards.ecp5 import Ulx3s
    from vta_hw.synth import Route, Synthesis
    from vta_isa import Machine

MARGIN = 0.95  # of a clock that was reached, so that another placement reaches it, too
BITSTREAM, CONSTRAINTS, REPORT = "ulx3s.bit", "ulx3s.lpf", "report.json"


def register(app: typer.Typer) -> None:
    app.command("bitstream")(write_bitstream)


def write_bitstream(
    folder: Annotated[
        Path, typer.Option("-o", "--output", metavar="DIR", help="Folder to write, new or empty.")
    ],
    machine: options.Machine = "ecp5",
    clock: Annotated[
        str | None,
        typer.Option(
            "--clock",
            metavar="HZ",
            help="As '25 MHz'. Without: that of the machine, or what is reached.",
        ),
    ] = None,
    memory: Annotated[
        str, typer.Option("--memory", metavar="BYTES", help="Block RAM that serves as DRAM.")
    ] = "128 KiB",
    baud: Annotated[int, typer.Option("--baud", help="Bits per second of the serial line.")] = (
        1_000_000
    ),
    seed: Annotated[int, typer.Option("--seed", min=1, help="Of place and route.")] = 1,
    force: Annotated[
        bool, typer.Option("--force", help="Write into a folder that is not empty.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Make a bitstream of a machine with memory and serial line for the ULX3S board (ECP5)."""
    from vta_isa import VtaError, load_machine
    from vta_isa.units import BYTES, HERTZ

    from ..extras import needs_amaranth
    from ..folders import whole_folder
    from .console import print_json
    from .progress import show_progress

    with needs_amaranth("synth"):
        from vta_hw.boards.bitstream import build, check_tools
        from vta_hw.boards.ecp5 import Ulx3s

    target = load_machine(machine)

    def board_at(clock_hz: int) -> "Ulx3s":
        return Ulx3s(
            target,
            clock_hz=clock_hz,
            memory_bytes=options.quantity("--memory", memory, BYTES),
            baud=baud,
        )

    board = board_at(target.clock if clock is None else options.quantity("--clock", clock, HERTZ))
    check_tools()
    with whole_folder(folder, force=force) as write, show_progress() as progress:
        figures, routed = build(board, seed=seed, progress=progress)
        while routed.clock_mhz * 1e6 < board.clock_hz:
            if clock is not None:
                raise VtaError(
                    f"{target.name} reaches {routed.clock_mhz:.1f} MHz with seed {seed}, and the "
                    f"board would run at {float(board.clock_hz) / 1e6:.1f} MHz; lower --clock, or "
                    f"try another --seed. The critical path goes through {_path(routed)}"
                )
            # Another clock is another design: the serial line's divider depends on it.
            board = board_at(int(routed.clock_mhz * 1e6 * MARGIN))
            progress(f"again, for {float(board.clock_hz) / 1e6:.1f} MHz")
            figures, routed = build(board, seed=seed, progress=progress)
        report = _report(target, board, figures, routed)
        write(BITSTREAM, routed.bitstream)
        write(CONSTRAINTS, board.constraints())
        write(REPORT, json.dumps(report, indent=2) + "\n")
    if as_json:
        print_json({"folder": str(folder), **report})
        return
    for line in _summary(target, board, figures, routed):
        print(line)
    for name in (BITSTREAM, CONSTRAINTS, REPORT):
        print(f"{(folder / name).stat().st_size:>12,} bytes  {folder / name}")


def _report(
    machine: "Machine", board: "Ulx3s", figures: "Synthesis", routed: "Route"
) -> dict[str, Any]:
    return {
        "machine": {"name": machine.name, "hash": machine.hash},
        "board": {
            "name": "ulx3s",
            "clock_hz": float(board.clock_hz),
            "memory_bytes": board.memory_bytes,
            "baud": board.baud,
        },
        **figures.as_json(),
        "route": routed.as_json(),
    }


def _summary(
    machine: "Machine", board: "Ulx3s", figures: "Synthesis", routed: "Route"
) -> tuple[str, ...]:
    total = figures.total
    used = ", ".join(
        f"{kind} {count:,} of {there:,}"
        for kind, (count, there) in sorted(routed.used.items())
        if kind in ("TRELLIS_COMB", "TRELLIS_FF", "MULT18X18D", "DP16KD")
    )
    return (
        f"{machine.name} with {board.memory_bytes // 1024} KiB of memory on a ULX3S "
        f"({routed.device}), {board.baud:,} baud",
        f"  {total.lut:,} LUT, {total.ff:,} FF, {total.dsp} multipliers, "
        f"{total.block_ram:g} block RAMs",
        f"  placed: {used}",
        f"  clock {float(board.clock_hz) / 1e6:g} MHz; {routed.clock_mhz:.1f} MHz would be "
        f"possible (seed {routed.seed})",
        f"  critical path: {_path(routed)}",
    )


def _path(routed: "Route") -> str:
    return " → ".join(
        f"{'outside' if module is None else module or 'top'} ({delay:.1f} ns)"
        for module, delay in routed.path_modules
    )
