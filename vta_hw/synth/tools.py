"""The tools behind synthesis: where they come from, which version, and how they are run."""

import importlib.metadata
import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from .errors import SynthesisError

Progress = Callable[[str], None]  # told what begins, in a few words

EXTRA = "vta-sdk[synth]"  # what to install


def version(distribution: str) -> str:
    """Of an installed tool; raises where it is missing."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        raise SynthesisError(
            f"{distribution} is not installed; it comes with `pip install '{EXTRA}'`"
        ) from None


def run_yosys(script: str, folder: Path) -> str:
    """Runs the commands in ``folder``; returns the log."""
    version("pyosys")
    (folder / "script.ys").write_text(script)
    worker = Path(__file__).with_name("worker.py")
    # -P: the files beside the worker must not hide modules of the same name.
    return _run([sys.executable, "-P", str(worker), "script.ys"], folder, "Yosys")


def run_wasm_tool(module: str, function: str, arguments: Sequence[str], folder: Path) -> str:
    """A tool of the yowasp-* wheels. Paths in ``arguments`` must be relative to ``folder``: inside
    the tool, /tmp is another one."""
    version(module.replace("_", "-"))
    call = f"import sys, {module} as tool; sys.exit(tool.{function}(sys.argv[1:]))"
    return _run([sys.executable, "-P", "-c", call, *arguments], folder, function[4:])


def _run(command: list[str], folder: Path, name: str) -> str:
    # Warnings of a tool's own code must not end it where the caller makes warnings errors.
    environment = {**os.environ, "PYTHONWARNINGS": ""}
    ended = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    if ended.returncode:
        raise SynthesisError(
            f"{name} stopped with status {ended.returncode}: {last_words(ended.stdout)}"
        )
    return ended.stdout


def last_words(log: str) -> str:
    """The line of a log that says what is wrong, or the last one."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    errors = [line for line in lines if line.upper().startswith("ERROR")]
    return (errors or lines or ["it said nothing"])[-1]
