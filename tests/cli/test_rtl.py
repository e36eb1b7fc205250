"""``vta rtl``: files whole or absent, folders refused before work, a missing library named."""

import hashlib
import json
import sys
from pathlib import Path

import pytest

from vta_isa import load_machine

pytest.importorskip("amaranth", reason="RTL needs amaranth: pip install 'vta-sdk[rtl]'")


def one_line(ended, message: str, status: int = 1) -> None:
    assert ended.status == status, ended
    assert ended.out == ""
    assert ended.err.startswith("vta: ")
    assert ended.err.count("\n") == 1
    assert message in ended.err


@pytest.fixture
def instant(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Verilog without the work; which tops were asked for."""
    import vta_hw.package.files as module

    asked = []

    def made(name: str):
        def verilog(machine) -> str:
            asked.append(name)
            return f"module {name}; endmodule\n"

        return verilog

    monkeypatch.setattr(module, "top_verilog", made("vta"))
    monkeypatch.setattr(module, "core_verilog", made("vta_core"))
    return asked


def test_writes_what_it_lists(vta) -> None:
    ended = vta("rtl", "-c", "tiny", "-o", "new/folder", "--json")
    assert ended.status == 0, ended.err
    listed = json.loads(ended.out)
    assert listed["machine"] == {"name": "tiny", "hash": load_machine("tiny").hash}
    assert listed["top"] == "axi"
    found = {path.name: path.read_bytes() for path in Path("new/folder").iterdir()}
    assert {each["name"] for each in listed["files"]} == set(found)
    for each in listed["files"]:
        assert each["bytes"] == len(found[each["name"]])
        assert each["sha256"] == hashlib.sha256(found[each["name"]]).hexdigest()
    assert b"module vta(" in found["vta.v"]


def test_every_option_changes_something(vta, instant) -> None:
    assert vta("rtl", "-o", "a").status == 0
    assert vta("rtl", "-o", "b", "--top", "core").status == 0
    assert vta("rtl", "-o", "c", "-c", "tiny").status == 0
    assert instant == ["vta", "vta_core", "vta"]
    hashes = [json.loads(Path(f"{d}/manifest.json").read_text())["machine"]["hash"] for d in "abc"]
    assert hashes[0] == hashes[1] == load_machine("default").hash
    assert hashes[2] == load_machine("tiny").hash
    assert Path("b/vta_core.v").exists()
    assert not Path("b/vta_registers.h").exists()


def test_the_table_names_every_file(vta, instant) -> None:
    ended = vta("rtl", "-o", "out")
    assert ended.status == 0
    for path in Path("out").iterdir():
        assert f"{path}\n" in ended.out


def test_a_folder_with_something_in_it(vta, instant) -> None:
    Path("out").mkdir()
    Path("out/mine.txt").write_text("mine")
    one_line(vta("rtl", "-o", "out"), "out: the folder is not empty; name a new one, or add")
    assert instant == []
    assert [path.name for path in Path("out").iterdir()] == ["mine.txt"]
    assert vta("rtl", "-o", "out", "--force").status == 0
    assert Path("out/mine.txt").read_text() == "mine"
    assert vta("rtl", "-o", "out", "--force").status == 0, "over its own files"


def test_an_empty_folder_is_fine(vta, instant) -> None:
    Path("out").mkdir()
    assert vta("rtl", "-o", "out").status == 0


@pytest.mark.parametrize("place", ["file", "file/below", "file/below/that"])
def test_places_that_cannot_be_folders(vta, instant, place: str) -> None:
    Path("file").write_text("")
    ended = vta("rtl", "-o", place)
    one_line(ended, f"{place}: ")
    assert instant == []
    assert [path.name for path in Path().iterdir()] == ["file"]


def test_nothing_is_left_when_it_fails(vta, monkeypatch: pytest.MonkeyPatch) -> None:
    import vta_hw.package.files as module

    def fail(machine) -> str:
        raise MemoryError("no room for a netlist")

    monkeypatch.setattr(module, "top_verilog", fail)
    one_line(vta("rtl", "-o", "a/b"), "no room for a netlist")
    assert list(Path().iterdir()) == []


def test_a_machine_that_is_none_is_told_first(vta, instant) -> None:
    one_line(vta("rtl", "-c", "tinny", "-o", "a/b"), "did you mean the preset 'tiny'?")
    one_line(vta("rtl", "-c", "tiny"), "Missing option '-o'", status=2)
    one_line(vta("rtl", "-o", "a", "--top", "cor"), "'cor' is not one of 'axi', 'core'", status=2)
    assert list(Path().iterdir()) == []


def test_without_amaranth(vta, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [n for n in sys.modules if n.partition(".")[0] in ("amaranth", "vta_hw")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "amaranth", None)
    one_line(
        vta("rtl", "-o", "a"),
        "amaranth is not installed; it comes with `pip install 'vta-sdk[rtl]'`",
    )
    assert list(Path().iterdir()) == []
