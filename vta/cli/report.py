"""``vta report``: a sweep or saved runs as a page, as pictures and as tables."""

from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    app.command("report")(report)


def report(
    results: Annotated[
        list[Path],
        typer.Argument(
            metavar="RESULTS...", help="The folder of a sweep, or files of `vta run --json`."
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="HTML", help="Write a page that needs no network."),
    ] = None,
    png: Annotated[
        Path | None, typer.Option("--png", metavar="FOLDER", help="Write each picture as PNG.")
    ] = None,
    csv: Annotated[
        Path | None, typer.Option("--csv", metavar="FILE", help="Write one line per point.")
    ] = None,
    parquet: Annotated[
        Path | None, typer.Option("--parquet", metavar="FILE", help="Write the same as Parquet.")
    ] = None,
    x: Annotated[
        str | None,
        typer.Option("--x", metavar="COLUMN", help="Across the Pareto plot; else an objective."),
    ] = None,
    y: Annotated[
        str | None,
        typer.Option("--y", metavar="COLUMN", help="Up the Pareto plot; else the next objective."),
    ] = None,
    point: Annotated[
        str | None,
        typer.Option("--point", metavar="POINT", help="Shown in detail; else the best one."),
    ] = None,
) -> None:
    """Show the points of a sweep, or runs, as a page to look around in, as pictures, as tables."""
    from ..files import check_writable, write_whole
    from ..report import pictures, point_table
    from ..report.page import report_page
    from ..report.study import ReportError, read_study

    if output is None and png is None and csv is None and parquet is None:
        raise typer.BadParameter("Say what to write: -o, --png, --csv or --parquet.")
    for path in (output, csv, parquet):
        if path is not None:
            check_writable(path)
    study = read_study(results)
    if not any(each.ok for each in study.points):
        raise ReportError(
            f"{results[0]}: none of its {len(study.points)} points has a result; "
            "the first says: " + next((each.error for each in study.points), "nothing was run")
        )
    across, up = study.pareto_axes(x, y)
    selected = study.point(point).label if point is not None else ""
    if output is not None:
        write_whole(output, report_page(study, across, up, selected))
        print(output)
    if csv is not None:
        write_whole(csv, point_table.csv_of(study))
        print(csv)
    if parquet is not None:
        write_whole(parquet, point_table.parquet_of(study))
        print(parquet)
    if png is not None:
        png.mkdir(parents=True, exist_ok=True)
        for name, data in pictures.pictures(study, across, up, selected):
            write_whole(png / name, data)
            print(png / name)
