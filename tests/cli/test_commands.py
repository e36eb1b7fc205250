"""What the commands print and write when all is well."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

import vta_isa
from vta_isa.presets import preset_names

VECTORS = Path(__file__).parent.parent / "vectors"
VECTOR = VECTORS / "01_gemm_reset_store"


def test_no_words_at_all_print_the_help(vta) -> None:
    assert vta() == vta("--help")
    assert "Usage: vta" in vta().out


def test_version(vta) -> None:
    assert vta("--version").out == f"vta {vta_isa.__version__}\n"


@pytest.mark.parametrize("machine", preset_names("machines"))
def test_isa_tables_cover_every_bit(vta, machine: str) -> None:
    data = json.loads(vta("isa", "-c", machine, "--json").out)
    words = [layout["name"] for layout in data["layouts"]]
    extended = ["REQUANTIZE"] if machine == "default-ext" else []
    assert words == ["MEM", "GEMM", "ALU", *extended, "FINISH", "UOP"]
    for layout in data["layouts"]:
        free = 0
        for field in layout["fields"]:
            assert field["start"] >= free
            free = field["start"] + field["width"]
        assert free <= layout["bits"]
    table = vta("isa", "-c", machine)
    assert table.status == 0
    for layout in data["layouts"]:
        for field in layout["fields"]:
            assert field["name"] in table.out


def test_isa_table_of_the_default_machine(vta) -> None:
    lines = [line.split() for line in vta("isa").out.splitlines()]
    assert [
        "9..7",
        "3",
        "buffer",
        "0=UOP",
        "1=WGT",
        "2=INP",
        "3=ACC",
        "4=OUT",
        "5=ACC_8BIT",
    ] in lines
    assert ["117..108", "10", "wgt_factor_out", "0..1023", "entry", "per", "iteration"] in lines


def test_machines_and_workloads_are_listed(vta) -> None:
    for kind in ("machines", "workloads"):
        names = preset_names(kind)
        table = vta(kind).out
        assert [each["name"] for each in json.loads(vta(kind, "--json").out)] == names
        assert all(name in table for name in names)


def test_assembly_goes_there_and_back(vta) -> None:
    assert vta("disasm", VECTOR / "insn.bin", "-o", "insn.s").out == ""
    assert vta("disasm", VECTOR / "insn.bin").out == Path("insn.s").read_text()
    ended = vta("asm", "insn.s", "-o", "insn.bin")
    assert ended.out == "insn.bin: 7 instructions, 112 bytes\n"
    assert Path("insn.bin").read_bytes() == (VECTOR / "insn.bin").read_bytes()


def test_buffers_get_names(vta) -> None:
    text = vta("disasm", VECTOR / "insn.bin", "--buffer", "inp=0x1000,384").out
    assert text.startswith(".buffer inp = 0x1000, 384\n")
    assert "dram_base=inp " in text
    Path("insn.s").write_text(text)
    assert vta("asm", "insn.s", "-o", "insn.bin").status == 0
    assert Path("insn.bin").read_bytes() == (VECTOR / "insn.bin").read_bytes()


def test_a_stream_as_json_has_every_field(vta) -> None:
    data = json.loads(vta("disasm", VECTOR / "insn.bin", "--json").out)
    assert len(data) == 7
    assert list(data[0]) == list(vta_isa.INSN_DTYPE.names)
    assert data[0]["x_size"] == 4


@pytest.mark.parametrize("device", ["simulator", "reference"])
def test_exec_gives_the_image_of_the_vector(vta, device: str) -> None:
    words = ["exec", VECTOR / "insn.bin", "--dram", VECTOR / "dram.bin", "--out", "out.bin"]
    ended = vta(*words, "--device", device, "--json")
    assert ended.err == ""
    assert Path("out.bin").read_bytes() == (VECTOR / "dram_out.bin").read_bytes()
    data = json.loads(ended.out)
    assert data["device"] == device
    assert data["machine"]["name"] == "default"
    assert data["cycles"] == data["counters"]["cycles"] > 0


def test_exec_prints_what_was_counted(vta) -> None:
    ended = vta("exec", VECTOR / "insn.bin", "--dram", VECTOR / "dram.bin")
    assert "gemm_ops" in ended.out
    assert "insn.bin on default: " in ended.out
    assert os.listdir() == []


def test_exec_does_what_python_does(vta) -> None:
    import vta as package

    image = np.fromfile(VECTOR / "dram.bin", dtype=np.uint8)
    result = package.execute(
        (VECTOR / "insn.bin").read_bytes(), image, package.load_machine("default")
    )
    data = json.loads(vta("exec", VECTOR / "insn.bin", "--dram", VECTOR / "dram.bin", "--json").out)
    assert data["counters"] == result.counters


def test_run_prints_a_table_and_says_that_all_was_checked(vta, compiler) -> None:
    ended = vta("run", "matmul", "-c", "tiny")
    assert ended.status == 0
    assert ended.err == ""
    assert "matmul on tiny, with virtual threads (simulator; every output checked)" in ended.out
    for word in ("GEMM use", "over bound", "DRAM read", "ragged", "total", "by cause"):
        assert word in ended.out


def test_every_option_of_run_changes_something(vta, compiler) -> None:
    vta("run", "matmul/single", "--no-vthreads")
    assert compiler.compiled == [("single", False)]
    assert json.loads(vta("run", "matmul/single", "--json", "-").out)["vthreads"] is True
    data = json.loads(vta("run", "matmul/single", "--device", "reference", "--json", "-").out)
    assert data["device"] == "reference"
    assert (
        json.loads(vta("run", "matmul", "-c", "tiny", "--json", "-").out)["machine"]["name"]
        == "tiny"
    )


def test_run_saves_figures_and_picture(vta, compiler) -> None:
    ended = vta("run", "matmul", "--compare", "--json", "r.json", "--roofline", "r.png")
    assert ended.status == 0
    data = json.loads(Path("r.json").read_text())
    assert [layer["name"] for layer in data["layers"]] == [
        layer["name"] for layer in data["without_vthreads"]["layers"]
    ]
    assert Path("r.png").read_bytes().startswith(b"\x89PNG")
    assert sorted(os.listdir()) == ["r.json", "r.png"]
    assert "what virtual threads gain" in ended.out


def test_a_file_of_ones_own_runs(vta, compiler) -> None:
    Path("mine.yaml").write_text("layers: [{name: a, kind: dense, m: 1, k: 2, n: 3}]")
    assert "mine on default" in vta("run", "mine.yaml").out
    assert "mine/a on default" in vta("run", "mine.yaml/a").out


FORMS = {
    "te": "= placeholder int32",
    "schedule": "s.cache_read(",
    "loops": "alloc ",
    "calls": "VTALoadBuffer2D(",
    "llvm": "define ",
    "stream": "alu.add",
}


@pytest.mark.parametrize("form", FORMS)
def test_a_program_is_shown_in_every_form(vta, form: str) -> None:
    ended = vta("lower", "vector-add/short", "--emit", form)
    assert (ended.status, ended.err) == (0, "")
    assert ended.out.splitlines()[0].lstrip("#; ") == "vector-add/short: short"
    assert FORMS[form] in ended.out


def test_a_printed_stream_is_assembly(vta) -> None:
    Path("add.s").write_text(vta("lower", "vector-add", "--emit", "stream").out)
    ended = vta("asm", "add.s", "-o", "add.bin")
    assert (ended.status, ended.err) == (0, "")


def test_virtual_threads_can_be_left_out_of_a_printed_program(vta) -> None:
    words = ["lower", "matmul/square", "--emit", "schedule"]
    assert "vthread(" in vta(*words).out
    assert "vthread(" not in vta(*words, "--no-vthreads").out


@pytest.mark.parametrize("device", ["simulator", "reference"])
def test_a_run_for_real(vta, device: str) -> None:
    Path("mine.yaml").write_text(
        "layers:\n"
        "  - {name: stem, kind: conv2d, height: 6, width: 5, in_channels: 3, out_channels: 6,"
        " kernel: 3, padding: 1, stride: 2}\n"
        "  - {name: fc, kind: dense, m: 3, k: 9, n: 5}\n"
        "  - {name: sum, kind: add, length: 21}\n"
        "  - {name: positive, kind: relu, length: 21}\n"
        "  - {name: halves, kind: shift, length: 21, amount: 1}\n"
        "  - {name: doubles, kind: shift, length: 21, amount: -1}\n"
        "  - {name: cut, kind: clip, length: 21, low: -5, high: 6}\n"
    )
    ended = vta("run", "mine.yaml", "-c", "tiny", "--device", device, "--json", "-")
    assert (ended.status, ended.err) == (0, "")
    for layer in json.loads(ended.out)["layers"]:
        assert layer["checked"] is True
        assert layer["cycles"] >= layer["bound_cycles"], layer["name"]


def test_both_devices_count_the_same(vta) -> None:
    words = ["run", "vector-add/ragged", "-c", "tiny", "--json", "-"]
    layers = [
        json.loads(vta(*words, "--device", device).out)["layers"][0]
        for device in ("simulator", "reference")
    ]
    for layer in layers:
        del layer["seconds"]
    assert layers[0] == layers[1]
