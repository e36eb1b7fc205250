"""``vta cosim``: the simulator and the RTL side by side, compared to the cycle and to the bit."""

import contextlib
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from . import options

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
    waves: options.Waves = None,
    cycles: options.WaveCycles = None,
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
    from .windows import wave_window

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
            waves=wave_window(waves, cycles),
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
