"""The tools behind synthesis: where they come from, which version, and how they are run."""

import importlib.metadata
import importlib.util
import os
import re
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


def run_yosys(script: str, folder: Path, progress: Progress = lambda text: None) -> str:
    """Runs the commands in ``folder``; returns the log. ``progress`` is told every pass."""
    version("pyosys")
    (folder / "script.ys").write_text(script)
    worker = Path(__file__).with_name("worker.py")
    # -P: the files beside the worker must not hide modules of the same name.
    command = [sys.executable, "-P", str(worker), "script.ys"]
    return _run(command, folder, "Yosys", _YOSYS_STEP, progress)


def run_wasm_tool(
    module: str,
    function: str,
    arguments: Sequence[str],
    folder: Path,
    progress: Progress = lambda text: None,
) -> str:
    """Runs a tool of the yowasp-* wheels in ``folder``; returns the log. ``progress`` is told what
    a place and route does. Paths in ``arguments`` must be relative to ``folder``: inside the tool,
    /tmp is another one."""
    version(module.replace("_", "-"))
    call = f"import sys, {module} as tool; sys.exit(tool.{function}(sys.argv[1:]))"
    command = [sys.executable, "-P", "-c", call, *arguments]
    return _run(command, folder, function.removeprefix("run_"), _NEXTPNR_STEP, progress)


_YOSYS_STEP = re.compile(r"[\d.]+ Executing (\w+) pass")
_NEXTPNR_STEP = re.compile(r"Info:\s+(at i[\w #]+|Running [\w ]+|Routing[\w ]+|\d+(?= \|))")


def _run(
    command: list[str], folder: Path, name: str, step: re.Pattern[str], progress: Progress
) -> str:
    # Warnings of a tool's own code must not end it where the caller makes warnings errors.
    environment = {**os.environ, "PYTHONWARNINGS": ""}
    log = []
    with subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            log.append(line)
            if found := step.match(line):
                progress(found[1].strip())
    text = "".join(log)
    if process.returncode:
        raise SynthesisError(f"{name} stopped with status {process.returncode}: {last_words(text)}")
    return text


def last_words(log: str) -> str:
    """The line of a log that says what is wrong, or the last one."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    errors = [line for line in lines if line.upper().startswith("ERROR")]
    return (errors or lines or ["it said nothing"])[-1]
