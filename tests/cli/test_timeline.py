"""``vta run --timeline``: a trace of what ran, whole or not at all."""

import sys
from pathlib import Path

import pytest

pytest.importorskip("perfetto", reason="timelines need perfetto: pip install 'vta-sdk[report]'")

from perfetto_reader import read_trace

from vta import job


@pytest.mark.parametrize("device", ["simulator", "reference"])
def test_the_command_writes_what_the_run_recorded(vta, device: str) -> None:
    shown = []
    job.run("vector-add/ragged", "tiny", watch=lambda *layer: shown.append(layer))
    ended = vta("run", "vector-add/ragged", "-c", "tiny", "--device", device, "--timeline", "t")
    assert ended.status == 0, ended.err
    trace = read_trace(Path("t"))
    assert trace.process == f"vector-add/ragged on tiny ({device})"
    ((layer, _, launches),) = shown
    (outer,) = (each for each in trace.slices["layer"] if each.level == 0)
    assert (outer.name, outer.end) == (layer.name, sum(launch.cycles for _, launch in launches))
    assert outer.arguments == {"count": layer.count, "MACs": layer.macs}
    instructions = sum(len(words) for words, _ in launches)
    assert len(trace.slices["fetch"]) == instructions


def test_a_wrong_result_leaves_no_timeline(vta, compiler, monkeypatch) -> None:
    def failing(*_: object) -> None:
        raise job.WrongResult("a wrong number")

    monkeypatch.setattr(job, "_run_layer", failing)
    ended = vta("run", "vector-add", "-c", "tiny", "--timeline", "t")
    assert ended.status == 1
    assert "a wrong number" in ended.err
    assert list(Path().iterdir()) == []


def test_comparisons_and_missing_folders_are_refused_before_work(vta, compiler) -> None:
    ended = vta("run", "vector-add", "--compare", "--timeline", "t")
    assert (ended.status, "--timeline shows one run; drop --compare." in ended.err) == (2, True)
    ended = vta("run", "vector-add", "--timeline", "no/t")
    assert "no/t: cannot write: there is no folder" in ended.err
    assert compiler.compiled == []


def test_without_perfetto_the_extra_is_named(vta, compiler, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "perfetto.protos.perfetto.trace", None)
    ended = vta("run", "vector-add", "--timeline", "t")
    assert ended.status == 1
    assert "perfetto, which is not installed; it comes with `pip install" in ended.err
    assert compiler.compiled == []


@pytest.mark.slow
def test_the_rtl_gives_the_trace_of_the_simulator(vta) -> None:
    pytest.importorskip("amaranth", reason="RTL needs amaranth: pip install 'vta-sdk[rtl]'")
    for device in ("simulator", "rtl"):
        command = ("run", "vector-add/ragged", "-c", "tiny", "--device", device)
        assert vta(*command, "--timeline", device).status == 0
    simulated, measured = (read_trace(Path(device)) for device in ("simulator", "rtl"))
    assert measured.process == "vector-add/ragged on tiny (rtl)"
    assert measured.slices == simulated.slices
    assert measured.samples == simulated.samples
