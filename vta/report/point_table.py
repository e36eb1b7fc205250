"""The points of a report as CSV and Parquet: one row each, in their order."""

import csv
import io
import json
from collections.abc import Iterator
from typing import Any

from .study import ReportError, Study


def point_columns(study: Study) -> dict[str, list[Any]]:
    """Name → the value of every point: what it is, its columns, its whole machine, its error.

    Machine keys that are an axis too are there once; None stands where a point has no value.
    """
    table: dict[str, list[Any]] = {
        "point": [point.label for point in study.points],
        "workload": [point.workload for point in study.points],
        "status": [point.status for point in study.points],
    }
    for column in study.columns:
        table[column.key] = [point.values.get(column.key) for point in study.points]
    for key in dict.fromkeys(key for point in study.points for key in point.machine):
        if key not in table:
            table[key] = [point.machine.get(key) for point in study.points]
    table["error"] = [point.error or None for point in study.points]
    return table


def csv_of(study: Study) -> str:
    """Comma-separated, a heading first; a missing value is an empty cell."""
    table = point_columns(study)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table)
    writer.writerows([_cell(value) for value in row] for row in zip(*table.values(), strict=True))
    return text.getvalue()


def parquet_of(study: Study) -> bytes:
    """An Apache Parquet file; numbers stay numbers. ReportError where pyarrow is missing."""
    try:
        import pyarrow as arrow
        import pyarrow.parquet as parquet
    except ModuleNotFoundError:
        raise ReportError(
            "Parquet needs pyarrow, which is not installed; it comes with "
            "`pip install 'vta-sdk[report]'`"
        ) from None
    columns = {name: arrow.array(_alike(values)) for name, values in point_columns(study).items()}
    file = io.BytesIO()
    parquet.write_table(arrow.table(columns), file)
    return file.getvalue()


def _alike(values: list[Any]) -> list[Any]:
    """Values of one type, as a column of a file needs them: words where they are not."""
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int, float}:
        return (
            [None if value is None else float(value) for value in values]
            if float in kinds
            else values
        )
    if len(kinds) <= 1 and not kinds & {list, dict}:
        return values
    return list(_words(values))


def _words(values: list[Any]) -> Iterator[str | None]:
    for value in values:
        yield None if value is None else value if isinstance(value, str) else json.dumps(value)


def _cell(value: object) -> str:
    match value:
        case None:
            return ""
        case str():
            return value
        case float():
            return repr(value)
    return json.dumps(value)
