"""``vta diff``: files or machines, tables or JSON."""

import json
from pathlib import Path


def saved(vta, name: str, *options: str) -> None:
    assert vta("run", "matmul", "--json", name, *options).status == 0


def test_two_files(vta, compiler) -> None:
    saved(vta, "tiny.json", "-c", "tiny")
    saved(vta, "default.json")
    ended = vta("diff", "tiny.json", "default.json")
    assert ended.status == 0, ended.err
    data = json.loads(vta("diff", "tiny.json", "default.json", "--json").out)
    assert data["runs"] == ["tiny", "default"]
    for layer in (*data["layers"], data["total"]):
        line = next(line for line in ended.out.splitlines() if line.split()[:1] == [layer["name"]])
        assert f"{layer['cycles'][0]:,}" in line
        assert f"{layer['cycles'][1]:,}" in line
        assert f"{layer['change']:+,}" in line
    assert "gemm.block_in" in ended.out
    assert "wait for dram" in ended.out


def test_two_machines_give_what_their_files_give(vta, compiler) -> None:
    saved(vta, "tiny.json", "-c", "tiny")
    saved(vta, "default.json")
    files = vta("diff", "tiny.json", "default.json")
    assert vta("diff", "-w", "matmul", "tiny", "default").out == files.out


def test_a_run_and_itself_differ_in_nothing(vta, compiler) -> None:
    saved(vta, "a.json")
    data = json.loads(vta("diff", "a.json", "a.json", "--json").out)
    assert data["settings"] == {}
    assert data["total"]["change"] == 0
    assert data["runs"] == ["a.json", "a.json"]


def test_options_reach_the_runs(vta, compiler) -> None:
    vta("diff", "-w", "vector-add/short", "tiny", "default", "--no-vthreads")
    assert compiler.compiled == [("short", False), ("short", False)]
    data = vta("diff", "-w", "vector-add/ragged", "tiny", "tiny", "--device", "reference")
    assert data.status == 0


def test_options_of_new_runs_are_refused_for_files(vta, compiler) -> None:
    saved(vta, "a.json")
    for option in (("--no-vthreads",), ("--device", "reference")):
        ended = vta("diff", "a.json", "a.json", *option)
        assert ended.status == 2
        assert "--device and --no-vthreads are for new runs; add -w WORKLOAD." in ended.err


def test_a_machine_in_place_of_a_file_is_explained(vta) -> None:
    Path("b.json").write_text("{}")
    ended = vta("diff", "default", "b.json")
    assert ended.status == 1
    assert (
        ended.err == "vta: default: there is no such file; machines are compared with -w WORKLOAD\n"
    )
    ended = vta("diff", "b.json", "b.json")
    assert ended.err.startswith("vta: b.json: version: field required; give a file that `vta run")


def test_layers_of_one_side_are_named(vta, compiler) -> None:
    saved(vta, "all.json")
    assert vta("run", "matmul/square", "--json", "one.json").status == 0
    assert "only in all: " in vta("diff", "all.json", "one.json").out
