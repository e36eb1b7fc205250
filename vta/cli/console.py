"""Where tables go: the terminal at its width, or a file at a width that cuts nothing."""

import json
import sys

from rich.console import Console
from rich.table import Table

_WIDTH_OF_A_FILE = 160


def print_table(table: Table) -> None:
    console = Console(file=sys.stdout, highlight=False)
    if not console.is_terminal:
        console.width = _WIDTH_OF_A_FILE
    # A title of the table itself would be folded at the table's width.
    title, table.title = table.title, None
    console.print(title, style="bold", soft_wrap=True)
    console.print(table)


def print_json(data: object) -> None:
    print(json.dumps(data, indent=2))
