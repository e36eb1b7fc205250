"""``vta exec``: run one instruction stream on one DRAM image."""

from pathlib import Path
from typing import Annotated

import typer

from . import options


def register(app: typer.Typer) -> None:
    app.command("exec")(execute_stream)


def execute_stream(
    stream: Annotated[Path, typer.Argument(help="Binary file of 128-bit instructions.")],
    dram: Annotated[
        Path, typer.Option("--dram", metavar="FILE", help="DRAM before: byte n is address n.")
    ],
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Where to write DRAM after.")
    ] = None,
    machine: options.Machine = "default",
    device: options.Devices = options.Device.SIMULATOR,
    as_json: options.Json = False,
) -> None:
    """Run an instruction stream; print its cycles and counters, save what it left in DRAM."""
    import numpy as np

    from simulator.machine import Result, execute
    from vta_isa import load_machine
    from vta_runtime.devices.rtl import make_core

    from ..files import check_writable, write_whole
    from .console import print_json, print_table, working
    from .inputs import about

    target = load_machine(machine)
    image = np.frombuffer(dram.read_bytes(), dtype=np.uint8)
    words = stream.read_bytes()
    if out is not None:
        check_writable(out)
    # The first run on a host compiles the timing engine, for seconds; later ones find it cached.
    with about(stream), working(f"{stream.name} on {target.name}"):
        if device is options.Device.RTL:
            left = image.copy()
            launch = make_core(target).launch(words, left)
            result = Result(left, launch.cycles, launch.counters, launch.timeline)
        else:
            result = execute(words, image, target, device=device.value)
    if out is not None:
        write_whole(out, result.dram.tobytes())
    counters = {name: int(value) for name, value in result.counters.items()}
    if as_json:
        print_json(
            {
                "machine": {"name": target.name, "hash": target.hash},
                "device": device.value,
                "cycles": int(result.cycles),
                "counters": counters,
            }
        )
        return
    from ..report.tables import counter_table

    print_table(
        counter_table(counters, f"{stream.name} on {target.name}: {result.cycles:,} cycles")
    )
