"""``vta synth``: one table, the same as JSON, and failures in one line."""

import json
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VTA_CACHE_DIR", str(tmp_path / "cache"))


GEMM = ("synth", "-c", "tiny", "--top", "gemm", "--family", "ecp5")


def test_table_and_json_show_the_same(vta) -> None:
    ended = vta(*GEMM)
    assert (ended.status, ended.err) == (0, "")
    data = json.loads(vta(*GEMM, "--json").out)
    assert (data["machine"]["name"], data["top"], data["family"]) == ("tiny", "gemm", "ecp5")
    rows = {line.split()[0]: line.split()[1:] for line in ended.out.splitlines() if line.strip()}
    total = data["total"]
    assert rows["total"] == [
        f"{total[name]:,}" for name in ("lut", "lut_ram", "ff", "dsp", "block_ram")
    ]
    assert total["dsp"] == 16
    assert rows["dot_0_3"][0] == str(data["modules"][-1]["all"]["lut"])


def test_depth_chooses_the_modules_of_the_table(vta) -> None:
    assert "dot_0_0" in vta(*GEMM, "--depth", "1").out
    assert "dot_0_0" not in vta(*GEMM, "--depth", "0").out


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (("synth", "-c", "tiny"), 2, "Missing option '--family'"),
        (("synth", "--family", "virtex"), 2, "'virtex' is not one of 'ecp5', 'xc7'"),
        (("synth", "--family", "ecp5", "-o", "x.bit"), 2, "-o saves what --pnr makes; add --pnr"),
        (("synth", "--family", "ecp5", "--clock", "9 MHz"), 2, "--clock is what --pnr aims at"),
        (("synth", "--family", "ecp5", "--pnr", "--clock", "fast"), 2, "'fast' is not a quantity"),
        (("synth", "--family", "ecp5", "--pnr", "--clock", "0"), 2, "'0' is no clock; write one"),
        (("synth", "--family", "xc7", "--pnr"), 1, "no place and route for xc7"),
        (("synth", "--family", "ecp5", "-c", "tinny"), 1, "tiny"),
        (("synth", "--family", "ecp5", "--pnr", "-o", "no/x.bit"), 1, "there is no folder"),
    ],
)
def test_failures_end_in_one_line(vta, words, status, message) -> None:
    ended = vta(*words)
    assert (ended.status, ended.out) == (status, "")
    assert message in ended.err
    assert len(ended.err.splitlines()) == 1
