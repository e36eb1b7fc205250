"""``vta sweep``: many machines, many workloads, and which of them are worth building."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import options

if TYPE_CHECKING:
    from ..sweep import Results


def register(app: typer.Typer) -> None:
    app.command("sweep")(sweep_machines)


def sweep_machines(
    file: Annotated[
        str,
        typer.Argument(metavar="FILE", help="`tiny`, `bandwidth`, `gemm-shapes`, or a YAML file."),
    ],
    folder: Annotated[
        Path,
        typer.Option("-o", "--output", metavar="DIR", help="Folder of the results, new or begun."),
    ],
    workers: Annotated[
        int | None,
        typer.Option("--workers", min=1, help="Processes on this machine; default one per core."),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            "--cluster",
            metavar="ADDRESS",
            help="A dask scheduler (tcp://host:8786), or a YAML file for dask-jobqueue.",
        ),
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="Run only the first so many points.")
    ] = None,
    restart: Annotated[
        bool,
        typer.Option("--restart", help="Throw away what DIR holds of another sweep or other code."),
    ] = False,
    synth: Annotated[
        str | None,
        typer.Option(
            "--synth", metavar="top:K", help="Synthesise the K best by the first objective."
        ),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Compile and simulate every point of a sweep; show the ones no other point beats.

    Kill it when you like: the same command goes on where it stopped.
    """
    from ..sweep import run_sweep
    from .console import print_json, print_table
    from .progress import show_count

    if workers is not None and cluster is not None:
        raise typer.BadParameter("--workers are those of this machine; drop it or --cluster.")
    count = _top(synth) if synth is not None else 0
    with show_count("points") as progress:
        results = run_sweep(
            file,
            folder,
            workers=workers,
            cluster=cluster,
            limit=limit,
            restart=restart,
            synthesise=count,
            progress=progress,
        )
    if as_json:
        print_json(_summary(results))
        return
    from ..report.sweep_tables import area_lines, failure_lines, front_tables

    for table in front_tables(results):
        print_table(table)
    for line in (*area_lines(results), *failure_lines(results)):
        print(line)
    print(
        f"{len(results.points)} of {results.planned} points in {folder}, as a table in points.csv"
    )


def _top(text: str) -> int:
    head, _, count = text.partition(":")
    if head != "top" or not count.isdecimal() or int(count) < 1:
        raise typer.BadParameter(f"--synth {text}: write top:3 for the three best machines.")
    return int(count)


def _summary(results: "Results") -> dict[str, object]:
    from ..sweep import front
    from ..sweep.area import held_out

    return {
        "sweep": results.spec["name"],
        "folder": str(results.folder),
        "objectives": results.objectives,
        "planned": results.planned,
        "finished": len(results.points),
        "failed": sum(not point.ok for point in results.points),
        "area": {"family": results.spec["area"], **held_out(results.spec["area"])},
        "synthesised": {
            point.machine_hash: {"model": point.area, "synthesis": point.synthesis}
            for point in results.points
            if point.synthesis is not None
        },
        "front": [
            {
                "point": point.index,
                "workload": point.workload,
                "machine_hash": point.machine_hash,
                "axes": point.axes,
                "objectives": point.objectives,
            }
            for point in front(results.points, results.objectives)
        ],
    }
