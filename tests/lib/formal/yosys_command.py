"""Yosys as SymbiYosys calls it: ``yosys_command.py -ql LOG SCRIPT``, with the library of pyosys.

It starts in no time, unlike the one compiled to WebAssembly.
"""

import argparse
import os

from pyosys import libyosys


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("-q", action="store_true")
    parser.add_argument("-l", metavar="LOG", default=os.devnull)
    parser.add_argument("-p", metavar="COMMANDS", action="append", default=[])
    parser.add_argument("scripts", nargs="*")
    arguments = parser.parse_args()
    # Yosys writes to the process's standard output, whatever Python's is.
    os.dup2(os.open(arguments.l, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), 1)
    design = libyosys.Design()
    for script in arguments.scripts:
        libyosys.run_pass(f"script {script}", design)
    for commands in arguments.p:
        for command in commands.split(";"):
            libyosys.run_pass(command.strip(), design)


if __name__ == "__main__":
    main()
