"""Tables and JSON on standard output, signs of life on standard error."""

import json
import sys

from rich.console import Console
from rich.status import Status
from rich.table import Table

# Wider than any table of ours. A terminal that is narrower wraps the lines; told so, rich would
# cut digits off numbers instead.
_WIDTH = 250


def print_table(table: Table) -> None:
    console = Console(file=sys.stdout, highlight=False)
    console.width = max(console.width, _WIDTH)
    # A title of the table itself would be folded at the table's width.
    title, table.title = table.title, None
    console.print(title, style="bold", soft_wrap=True)
    console.print(table)


def working(what: str) -> Status:
    """Shows ``what`` while the block runs, where standard error is a terminal."""
    return Console(stderr=True).status(what)


def print_json(data: object) -> None:
    print(json.dumps(data, indent=2))
