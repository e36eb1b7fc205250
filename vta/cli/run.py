"""``vta run`` and ``vta lower``: workloads, executed and shown on their way down."""

import contextlib
import sys
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import options

if TYPE_CHECKING:
    from ..job import Comparison, Progress, RunReport, Watch


class Emit(StrEnum):
    """The forms a program takes, first to last."""

    TE = "te"
    SCHEDULE = "schedule"
    LOOPS = "loops"
    CALLS = "calls"
    LLVM = "llvm"
    STREAM = "stream"


def register(app: typer.Typer) -> None:
    app.command("run")(run_workload)
    app.command("lower")(lower_workload)


def run_workload(
    workload: options.Workload,
    machine: options.Machine = "default",
    device: options.Devices = options.Device.SIMULATOR,
    no_vthreads: options.NoVthreads = False,
    compare: Annotated[
        bool,
        typer.Option("--compare", help="Without virtual threads, then with, and what they gain."),
    ] = False,
    json_file: Annotated[
        str | None,
        typer.Option("--json", metavar="FILE", help="Save the figures; - prints only them."),
    ] = None,
    roofline: Annotated[
        Path | None, typer.Option("--roofline", metavar="PNG", help="Save a roofline plot.")
    ] = None,
    waves: options.Waves = None,
    cycles: options.WaveCycles = None,
    timeline: Annotated[
        Path | None,
        typer.Option(
            "--timeline", metavar="FILE", help="Save every instruction and burst for Perfetto."
        ),
    ] = None,
) -> None:
    """Compile every layer, simulate it, check every number, and print where the cycles went."""
    import json

    from .. import job
    from ..files import check_writable, write_whole
    from .windows import wave_window

    if compare and no_vthreads:
        raise typer.BadParameter("--compare runs both ways; drop --no-vthreads.")
    if waves is not None and (compare or device is not options.Device.RTL):
        raise typer.BadParameter("--waves are those of one run on the RTL; add --device rtl.")
    window = wave_window(waves, cycles)
    if compare and timeline is not None:
        raise typer.BadParameter("--timeline shows one run; drop --compare.")
    quiet = json_file == "-"
    figures_file = Path(json_file) if json_file is not None and not quiet else None
    for path in (figures_file, roofline, timeline):
        if path is not None:  # now, not after a minute of work
            check_writable(path)
    result: RunReport | Comparison
    with contextlib.ExitStack() as stack:
        progress = stack.enter_context(_progress_bar())
        watch = None
        if timeline is not None:
            watch = stack.enter_context(_trace(timeline, f"{workload} on {machine} ({device})"))
        if compare:
            result = job.compare(workload, machine, device=device.value, progress=progress)
        else:
            result = job.run(
                workload,
                machine,
                device=device.value,
                vthreads=not no_vthreads,
                waves=window,
                progress=progress,
                watch=watch,
            )
    text = json.dumps(result.as_json(), indent=2) + "\n"
    if quiet:
        print(text, end="")
    else:
        _print_tables(result)
    if figures_file is not None:
        write_whole(figures_file, text)
    if roofline is not None:
        from ..report.roofline import draw

        write_whole(roofline, draw(result))


def lower_workload(
    workload: options.Workload,
    emit: Annotated[Emit, typer.Option("--emit", help="Which form to print.")],
    machine: options.Machine = "default",
    no_vthreads: options.NoVthreads = False,
) -> None:
    """Print a workload's program at any stage between tensor expression and instruction stream."""
    from ..compile import lower

    for name, text in lower(workload, machine, emit=emit.value, vthreads=not no_vthreads):
        # As a comment of the form that follows, so that the output stays a valid program.
        comment = ";" if emit in (Emit.LLVM, Emit.STREAM) else "#"
        print(f"{comment} {name}")
        print(text, end="" if text.endswith("\n") else "\n")


def _print_tables(result: "RunReport | Comparison") -> None:
    from ..job import Comparison
    from ..report import tables
    from .console import print_table

    reports = (result.without, result.threaded) if isinstance(result, Comparison) else (result,)
    for report in reports:
        print_table(tables.layer_table(report))
        print_table(tables.stall_table(report))
    if isinstance(result, Comparison):
        print_table(tables.gain_table(result))


@contextlib.contextmanager
def _trace(path: Path, title: str) -> "Iterator[Watch]":
    """Writes every layer it is shown to a trace, which becomes ``path`` when all went well."""
    from ..files import whole_file
    from ..report.perfetto_trace import TraceWriter

    with whole_file(path) as file:
        writer = TraceWriter(file, title)
        yield lambda layer, machine, launches: writer.layer(
            layer.name, machine, launches, {"count": layer.count, "MACs": layer.macs}
        )


@contextlib.contextmanager
def _progress_bar() -> "Iterator[Progress | None]":
    """A bar on standard error while somebody watches it; gone when the work is done."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda name, done, total: bar.update(
            task, description=name, completed=done, total=total
        )
