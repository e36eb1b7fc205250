"""``vta bitstream``: files and summary of a build that is not really done, and failures."""

import json

import pytest

from vta_hw.boards import bitstream
from vta_hw.synth import Route, Synthesis
from vta_hw.synth.place_route import Step
from vta_hw.synth.report import Area, ModuleArea

AREA = Area(lut=20_000, ff=9_000, dsp=112, block_ram=164)


@pytest.fixture
def build(monkeypatch: pytest.MonkeyPatch):
    """A build that reaches 60 MHz; the boards it was asked for."""
    boards = []

    def made(board, *, seed, progress):
        boards.append(board)
        progress("placing")
        figures = Synthesis("ulx3s", "ecp5", (ModuleArea("", AREA, AREA),), (), (), {})
        steps = (
            Step("system.memory", "a", "clk-to-q", 5.6),
            Step("system.accelerator.core", "b", "setup", 11.1),
        )
        used = {"DP16KD": (164, 208), "TRELLIS_COMB": (24_000, 83_640)}
        return figures, Route("LFE5U-85F", seed, 60.0, used, steps, b"\xff\x00bits")

    monkeypatch.setattr(bitstream, "build", made)
    return boards


def test_files_and_summary(vta, build, tmp_path) -> None:
    ended = vta("bitstream", "-c", "tiny", "-o", "out/ulx3s", "--clock", "50 MHz")
    assert (ended.status, ended.err) == (0, "")
    folder = tmp_path / "out" / "ulx3s"
    assert (folder / "ulx3s.bit").read_bytes() == b"\xff\x00bits"
    assert "clk_25mhz" in (folder / "ulx3s.lpf").read_text()
    report = json.loads((folder / "report.json").read_text())
    assert report["machine"]["name"] == "tiny"
    assert report["board"]["clock_hz"] == 50e6
    assert report["board"]["memory_bytes"] == 128 * 1024
    assert report["route"]["clock_mhz"] == 60.0
    for words in (
        "20,000 LUT, 9,000 FF, 112 multipliers, 164 block RAMs",
        "DP16KD 164 of 208",
        "clock 50 MHz; 60.0 MHz would be possible",
        "system.memory (5.6 ns) → system.accelerator.core (11.1 ns)",
    ):
        assert words in ended.out


def test_json_and_options(vta, build) -> None:
    options = ("--memory", "16 KiB", "--baud", "115200", "--seed", "3", "--clock", "25000000")
    ended = vta("bitstream", "-c", "tiny", "-o", "out", *options, "--json")
    data = json.loads(ended.out)
    assert data["board"] == {
        "name": "ulx3s",
        "clock_hz": 25e6,
        "memory_bytes": 16 * 1024,
        "baud": 115_200,
    }
    assert data["route"]["seed"] == 3
    assert build[0].machine.name == "tiny"


def test_a_clock_that_is_not_reached_writes_nothing(vta, build, tmp_path) -> None:
    ended = vta("bitstream", "-c", "tiny", "-o", "out", "--clock", "75 MHz")
    assert (ended.status, ended.out) == (1, "")
    assert "reaches 60.0 MHz with seed 1, and the board would run at 75.0 MHz" in ended.err
    assert "system.memory" in ended.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        ((), 2, "Missing option '-o' / '--output'"),
        (("-o", "out", "--clock", "fast"), 2, "--clock: 'fast' is not a quantity"),
        (("-o", "out", "--memory", "1 MHz"), 2, "--memory: '1 MHz' has the unknown unit"),
        (("-o", "out", "--memory", "1 KiB"), 1, "a multiple of 4 KiB"),
        (("-o", "out", "--clock", "1 GHz", "--baud", "500000000"), 1, "baud cannot be made"),
        (("-o", "out", "-c", "tinny"), 1, "tiny"),
    ],
)
def test_failures_end_in_one_line(vta, build, words, status, message) -> None:
    ended = vta("bitstream", *words)
    assert (ended.status, ended.out) == (status, "")
    assert message in ended.err
    assert len(ended.err.splitlines()) == 1
    assert not build


def test_without_a_wish_the_clock_is_one_that_is_reached(vta, build) -> None:
    ended = vta("bitstream", "-c", "tiny", "-o", "out", "--json")  # a machine of 100 MHz
    data = json.loads(ended.out)
    assert [float(board.clock_hz) / 1e6 for board in build] == pytest.approx([100, 57], abs=1)
    assert data["board"]["clock_hz"] == float(build[1].clock_hz) <= 57e6


def test_a_folder_that_is_not_empty_is_kept(vta, build, tmp_path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("")
    ended = vta("bitstream", "-c", "tiny", "-o", "out", "--clock", "50 MHz")
    assert ended.status == 1
    assert "not empty" in ended.err
    assert not build
    assert vta("bitstream", "-c", "tiny", "-o", "out", "--clock", "50 MHz", "--force").status == 0
