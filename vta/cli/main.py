"""The ``vta`` command as a whole: its global options, and how it ends when something fails."""

import os
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated

import typer

from . import (
    assembly,
    bitstream,
    check,
    cosim,
    diff,
    execute,
    machines,
    report,
    rtl,
    run,
    sweep,
    synth,
    workloads,
)
from .interrupt import kept_interrupts

TRACEBACK = "--traceback"
FAILURE, MISUSE, INTERRUPTED = 1, 2, 130

app = typer.Typer(
    name="vta",
    help="Machines of the VTA family: compile for them, simulate, check, and build their hardware.",
    add_completion=False,
    pretty_exceptions_enable=False,
)
for group in (
    run,
    sweep,
    diff,
    execute,
    check,
    cosim,
    assembly,
    rtl,
    synth,
    bitstream,
    report,
    machines,
    workloads,
):
    group.register(app)


def _print_version(wanted: bool) -> None:
    if wanted:
        from vta_isa.version import __version__

        print(f"vta {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and end."
        ),
    ] = False,
    show_traceback: Annotated[
        bool,
        typer.Option(
            TRACEBACK, help="When a command fails, show where in the code (anywhere in the line)."
        ),
    ] = False,
) -> None:
    """Options of every command. ``--traceback`` is taken out before parsing, by ``main``."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line; returns its exit status.

    0: done; 1: it failed, and one line on standard error says why; 2: the line itself is wrong;
    130: interrupted. Standard output closed by its reader (``vta isa | head``) is a quiet 1.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    # Whoever wants it has just seen a failure and adds it at the end, so it may stand anywhere.
    words = [word for word in given if word != TRACEBACK]
    try:
        with kept_interrupts():
            status = app(words or ["--help"], prog_name="vta", standalone_mode=False)
        if sys.stdout is not None:  # it is where the caller closed it: vta isa >&-
            sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes standard output once more at its end; there must be something to flush to.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILURE
    except SystemExit as stop:  # rich ends a command so when the reader has gone
        return stop.code if isinstance(stop.code, int) else FAILURE
    except Exception as error:  # the last line of defence: a bug, too, ends in one line
        if TRACEBACK in given:
            traceback.print_exc()
        print(f"vta: {_one_line(error)}", file=sys.stderr)
        return MISUSE if isinstance(error, typer.TyperException) else FAILURE
    if status == INTERRUPTED:
        print("vta: interrupted", file=sys.stderr)
    return status if isinstance(status, int) else 0


def _one_line(error: Exception) -> str:
    from vta_isa.errors import VtaError  # here: `vta --help` need not wait for NumPy

    match error:
        case typer.TyperException():
            context = getattr(error, "ctx", None)
            command = context.command_path if context else "vta"
            message = error.format_message().replace("Value error, ", "")
            text = f"{message} See `{command} --help`"
        case VtaError():
            text = str(error)
        case OSError(filename=str() | bytes() as name, strerror=str() as reason):
            text = f"{os.fsdecode(name)}: {reason[:1].lower()}{reason[1:]}"
        case OSError(filename=None, strerror=str() as reason):  # of a stream, not of a file
            text = f"cannot write the output: {reason[:1].lower()}{reason[1:]}"
        case MemoryError():
            text = f"out of memory: {error or 'try a smaller workload'}"
        case _:
            text = (
                f"internal error: {type(error).__name__}: {error} "
                f"(a fault of vta, please report it; {TRACEBACK} shows where)"
            )
    # Problems listed one per line, as in a machine description with several of them.
    head, *rest = [line.strip() for line in text.splitlines() if line.strip()] or [""]
    return f"{head}: {'; '.join(rest)}" if rest else head
