"""Runs a Yosys script, one command per line: ``python -P worker.py SCRIPT``.

A process of its own, because an error in Yosys ends the process, and it logs to standard output.
"""

import sys
from pathlib import Path

from pyosys import libyosys


def main() -> None:
    design = libyosys.Design()
    for command in Path(sys.argv[1]).read_text().splitlines():
        print(f"@@ {command}", flush=True)
        libyosys.run_pass(command, design)


if __name__ == "__main__":
    main()
