"""``vta diff``: two runs, or one workload on two machines, side by side."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import options

if TYPE_CHECKING:
    from ..saved_run import SavedRun


def register(app: typer.Typer) -> None:
    app.command("diff")(diff)


def diff(
    first: Annotated[
        str, typer.Argument(metavar="A", help="A file of `vta run --json`; with -w a machine.")
    ],
    second: Annotated[str, typer.Argument(metavar="B", help="The same for the other side.")],
    workload: Annotated[
        str | None,
        typer.Option(
            "-w", "--workload", metavar="WORKLOAD", help="Run this on the machines A and B."
        ),
    ] = None,
    device: options.Devices = options.Device.SIMULATOR,
    no_vthreads: options.NoVthreads = False,
    json: options.Json = False,
) -> None:
    """Show which layers take longer on one side, and what the cycles are spent on instead."""
    from ..report import tables
    from ..run_diff import diff_runs
    from ..saved_run import RunFileError, read_run
    from .console import print_json, print_table

    if workload is None:
        if no_vthreads or device is not options.Device.SIMULATOR:
            raise typer.BadParameter(
                "--device and --no-vthreads are for new runs; add -w WORKLOAD."
            )
        for path in (first, second):
            if not Path(path).exists():
                raise RunFileError(
                    f"{path}: there is no such file; machines are compared with -w WORKLOAD"
                )
        runs = read_run(first), read_run(second)
    else:
        runs = (
            _run(workload, first, device, no_vthreads),
            _run(workload, second, device, no_vthreads),
        )
    found = diff_runs(*runs, names=_names(first, second))
    if json:
        print_json(found.as_json())
        return
    if found.settings:
        print_table(tables.settings_table(found))
    print_table(tables.diff_table(found))
    print_table(tables.cause_table(found))
    for name, layers in zip(found.names, found.only, strict=True):
        if layers:
            print(f"only in {name}: {', '.join(layers)}")


def _run(workload: str, machine: str, device: options.Device, no_vthreads: bool) -> "SavedRun":
    from .. import job
    from ..saved_run import saved
    from .progress import show_progress

    with show_progress() as show:
        report = job.run(
            workload,
            machine,
            device=device.value,
            vthreads=not no_vthreads,
            progress=lambda layer, done, layers: show(f"{machine}: {layer} ({done} of {layers})"),
        )
    return saved(report)


def _names(first: str, second: str) -> tuple[str, str]:
    """Short ones, as long as they tell the two apart."""
    short = Path(first).stem, Path(second).stem
    return short if short[0] != short[1] else (first, second)
