"""``vta cosim``: the simulator and the RTL side by side, compared to the cycle and to the bit."""

import contextlib
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from . import options

_ALL_CYCLES = 1 << 62
TRACES = Path("out") / "cosim"  # where a difference is documented if nothing else was asked for


class Memory(StrEnum):
    """Memory models, as in ``vta.cosimulation.MEMORIES``."""

    IDEAL = "ideal"
    LATENCY = "latency"
    JITTER = "jitter"


def register(app: typer.Typer) -> None:
    app.command("cosim")(cosimulate)


def cosimulate(
    program: Annotated[
        str,
        typer.Argument(
            metavar="STREAM|WORKLOAD",
            help="A binary file of 128-bit instructions; or a workload, PRESET/LAYER, a YAML file.",
        ),
    ],
    machine: options.Machine = "default",
    dram: Annotated[
        Path | None,
        typer.Option("--dram", metavar="IMAGE", help="DRAM before a STREAM; zeros if left out."),
    ] = None,
    address: Annotated[
        str,
        typer.Option(
            "--address", metavar="BYTE", help="Where fetch finds a STREAM; a multiple of 16."
        ),
    ] = "0",
    memory: Annotated[
        Memory | None,
        typer.Option(
            "--memory",
            help="Latencies of one cycle; those of the machine, never late; those and late beats. "
            "As the machine says if left out.",
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option("--seed", min=0, help="Of the late beats of `--memory jitter`.")
    ] = 0,
    no_vthreads: options.NoVthreads = False,
    as_json: options.Json = False,
    waves: Annotated[
        Path | None,
        typer.Option("--waves", metavar="FILE", help="Save every signal of the RTL as VCD."),
    ] = None,
    cycles: Annotated[
        str | None,
        typer.Option("--cycles", metavar="FIRST:END", help="The cycles that --waves saves."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FOLDER",
            help=f"Save both traces; a difference saves them in {TRACES} anyway.",
        ),
    ] = None,
) -> None:
    """Run a stream or a workload on the simulator and on the RTL, and compare everything.

    Ends with status 1 if they differ, and then shows the first difference.
    """
    from ..cosimulation import cosim, is_stream
    from .console import print_json
    from .inputs import about

    given = is_stream(program)
    if not given and (dram is not None or address != "0"):
        raise typer.BadParameter(
            f"{program} is not the file of a stream, and a workload brings its own DRAM; "
            "drop --dram and --address."
        )
    try:
        insn_address = int(address, 0)
    except ValueError:
        raise typer.BadParameter(
            f"--address {address} is no number; write 4096 or 0x1000."
        ) from None
    with about(Path(program)) if given else contextlib.nullcontext():
        result = cosim(
            program,
            machine,
            dram=dram.read_bytes() if dram is not None else None,
            insn_address=insn_address,
            memory=memory.value if memory is not None else None,
            seed=seed,
            vthreads=not no_vthreads,
            waves=_window(waves, cycles),
        )
    difference = result.difference
    folder = output if output is not None or difference is None else TRACES
    if folder is not None:
        result.write_traces(folder)
    if as_json:
        print_json(result.as_json())
    else:
        print(result)
        if difference is not None:
            if difference.around:
                print(difference.around)
            print(f"both traces are in {folder}")
    if difference is not None:
        raise typer.Exit(1)


def _window(waves: Path | None, cycles: str | None) -> tuple[Path, int, int] | None:
    """``100:200`` as numbers; either may be left out."""
    from ..files import check_writable

    if waves is None:
        if cycles is not None:
            raise typer.BadParameter("--cycles says what --waves saves; add --waves FILE.")
        return None
    try:
        first, end = (cycles or ":").split(":")
        window = int(first or 0), int(end or _ALL_CYCLES)
    except ValueError:
        raise typer.BadParameter(f"--cycles {cycles} is no window; write 100:200.") from None
    if not 0 <= window[0] < window[1] <= _ALL_CYCLES:
        raise typer.BadParameter(
            f"--cycles {cycles} is empty; write 100:200 for cycles 100 to 199."
        )
    check_writable(waves)
    return waves, *window
