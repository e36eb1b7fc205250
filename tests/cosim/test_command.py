"""``vta.cosim`` and the command: what is run, what is printed, what is written. Needs no RTL."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from other_core import OtherCore

import vta
from vta import lockstep
from vta.cli.main import main
from vta.cosimulation import MEMORIES, with_memory
from vta_isa.errors import StreamError, VtaError
from vta_isa.machine import load_machine
from vta_runtime.devices import rtl

VECTOR = Path(__file__).parents[1] / "vectors" / "01_gemm_reset_store"
STREAM, DRAM = VECTOR / "insn.bin", VECTOR / "dram.bin"
PRODUCTS = """
layers:
  - {name: first, kind: dense, m: 2, n: 3, k: 5}
  - {name: second, kind: dense, m: 1, n: 1, k: 1}
"""


@pytest.fixture
def equal(monkeypatch):
    monkeypatch.setattr(lockstep, "make_core", OtherCore)


@pytest.fixture
def late(monkeypatch):
    """A core whose last instruction ends a cycle late and spoils a byte."""

    def change(launch, dram):
        dram[5] ^= 1
        end = launch.timeline.end.copy()
        end[-1] += 1
        timeline = replace(launch.timeline, end=end)
        return replace(launch, cycles=launch.cycles + 1, timeline=timeline)

    monkeypatch.setattr(lockstep, "make_core", lambda *how: OtherCore(*how, change=change))


def test_a_stream(equal, capsys):
    assert main(["cosim", str(STREAM), "--dram", str(DRAM)]) == 0
    line = capsys.readouterr().out
    assert line.count("\n") == 1
    for part in ("insn.bin on default", "agree on 1 launch:", "501 cycles", "7 instructions"):
        assert part in line


def test_where_the_stream_lies_matters(equal):
    stream = STREAM.read_bytes()
    bursts = [vta.cosim(stream, insn_address=at).total("bursts") for at in (0, 0xF0)]
    assert bursts[0] + 1 == bursts[1]  # fetch needs a second chunk
    with pytest.raises(StreamError, match="aligned to 16"):
        vta.cosim(stream, insn_address=8)


def test_a_stream_without_dram_has_zeros(equal):
    result = vta.cosim(np.fromfile(STREAM, "<u8").reshape(-1, 2))
    assert result.agrees
    assert result.total("dram_bytes") == len(DRAM.read_bytes())


def test_a_stream_that_reaches_far_needs_an_image(equal):
    from vta_isa.encoding import encode_stream
    from vta_isa.enums import Buffer
    from vta_isa.insn import finish, load, records

    insns = [load(Buffer.WGT, sram_base=0, dram_base=1 << 31, x_size=1), finish()]
    stream = encode_stream(records(insns), load_machine("default"))
    with pytest.raises(StreamError, match="give it one"):
        vta.cosim(stream)


def test_a_workload(equal, tmp_path, capsys):
    (tmp_path / "mine.yaml").write_text(PRODUCTS)
    assert main(["cosim", str(tmp_path / "mine.yaml"), "-c", "tiny", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["agrees"]
    assert {run["name"] for run in shown["launches"]} == {"first", "second"}
    assert all(run["difference"] is None for run in shown["launches"])
    assert main(["cosim", f"{tmp_path}/mine.yaml/second", "-c", "tiny"]) == 0
    assert "second on tiny" in capsys.readouterr().out


def test_a_difference_is_shown_and_both_traces_saved(late, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["cosim", str(STREAM), "--dram", str(DRAM)]) == 1
    out = capsys.readouterr().out
    assert "they differ: end of instruction 6: simulator 500, RTL 501" in out
    assert ">    6 " in out
    assert "both traces are in out/cosim" in out
    folder = tmp_path / "out" / "cosim"
    texts = [(folder / f"launch0-{side}.txt").read_text() for side in ("simulator", "rtl")]
    lines = [text.splitlines() for text in texts]
    assert len(lines[0]) == len(lines[1])
    differing = [pair for pair in zip(*lines, strict=True) if pair[0] != pair[1]]
    assert len(differing) == 2  # the title with its cycles, and the instruction
    images = [(folder / f"launch0-{side}-dram.bin").read_bytes() for side in ("simulator", "rtl")]
    assert images[0][5] ^ images[1][5] == 1


def test_a_difference_as_json(late, tmp_path, capsys):
    assert main(["cosim", str(STREAM), "--json", "-o", str(tmp_path / "here")]) == 1
    shown = json.loads(capsys.readouterr().out)
    assert not shown["agrees"]
    assert shown["launches"][0]["difference"]["insn"] == 6
    assert (tmp_path / "here" / "launch0-rtl.txt").exists()


def test_traces_on_request(equal, tmp_path):
    folder = tmp_path / "traces"
    assert main(["cosim", str(STREAM), "--dram", str(DRAM), "-o", str(folder)]) == 0
    texts = [(folder / f"launch0-{side}.txt").read_text() for side in ("simulator", "rtl")]
    assert texts[0] == texts[1]
    assert "gemm" in texts[0]
    assert sorted(path.name for path in folder.iterdir()) == [
        "launch0-rtl.txt",
        "launch0-simulator.txt",
    ]


def test_nothing_follows_a_difference(late, tmp_path):
    (tmp_path / "mine.yaml").write_text(PRODUCTS)
    result = vta.cosim(tmp_path / "mine.yaml", "tiny")
    assert not result.agrees
    assert [name for name, _ in result.launches] == ["first"]
    assert "launch of first" in str(result)


@pytest.mark.parametrize("memory", MEMORIES)
def test_memory_models(memory):
    machine = load_machine("default").replace(memory={"jitter": 3})
    model = with_memory(machine, memory, seed=9).memory
    ideal, jitter = memory == "ideal", memory == "jitter"
    assert (model.read_latency, model.write_latency) == ((1, 1) if ideal else (32, 8))
    assert model.jitter == (9 if jitter else None)


def test_a_machine_keeps_its_memory_unless_told():
    machine = load_machine("default").replace(memory={"jitter": 3})
    assert with_memory(machine, None) is machine
    with pytest.raises(VtaError, match=r"'jiter'.*did you mean 'jitter'"):
        with_memory(machine, "jiter")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["resnet18/C2", "--dram", str(DRAM)], "brings its own DRAM"),
        ([str(STREAM), "--address", "far"], "is no number"),
        ([str(STREAM), "--memory", "slow"], "'slow' is not one of"),
        ([str(STREAM), "--address", "8"], "aligned to 16"),
        ([str(STREAM), "--cycles", "1:2"], "add --waves"),
        ([str(STREAM), "--waves", "w.vcd", "--cycles", "1"], "is no window"),
        ([str(STREAM), "--waves", "w.vcd", "--cycles", "7:7"], "is empty"),
        ([str(STREAM), "--waves", "nowhere/w.vcd"], "there is no folder"),
        (["resnet18", "--waves", "w.vcd"], "hold the waves of one layer"),
        (["resnet19"], "there is no workload"),
    ],
)
def test_what_is_wrong_is_said(equal, words, says, capsys):
    assert main(["cosim", *words]) in (1, 2)
    assert says in capsys.readouterr().err


def test_without_amaranth_the_extra_is_named(monkeypatch):
    import builtins

    real = builtins.__import__

    def refuse(name, *rest):
        if name == "vta_hw.verilated":
            raise ModuleNotFoundError("No module named 'amaranth'", name="amaranth.hdl")
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(VtaError, match=r"vta-sdk\[rtl\]"):
        rtl.make_core(load_machine("tiny"))
