"""``vta check``: what it prints and how it ends."""

import json
from pathlib import Path

import numpy as np
import pytest

import vta as package
from vta import checked_device, compile, job
from vta.workload_data import make_arrays
from vta_isa import load_machine
from vta_isa.assembly import parse_stream

VECTOR = Path(__file__).parent.parent / "vectors" / "01_gemm_reset_store"
RACE = """
load.acc y_size=1 x_size=4 dram_base=16 push_next
store.out y_size=1 x_size=4 dram_base=512 push_prev
load.uop pop_next
finish
"""
UNWRITTEN = "store.out y_size=1 x_size=4 push_prev\nfinish pop_next\n"


@pytest.fixture
def streams(vta) -> None:
    """Files of streams for ``tiny`` in the folder the command runs in."""
    for name, text in (("race", RACE), ("unwritten", UNWRITTEN), ("good", "finish\n")):
        Path(name).write_bytes(parse_stream(text, load_machine("tiny")).tobytes())
    Path("dram").write_bytes(bytes(4096))


def test_a_stream_without_findings(vta) -> None:
    machine = json.loads((VECTOR / "meta.json").read_text())["config"]
    Path("machine.json").write_text(json.dumps(machine))
    ended = vta(
        "check", VECTOR / "insn.bin", "-c", "machine.json", "--dram", VECTOR / "dram.bin", "--fresh"
    )
    assert ended.out.endswith("insn.bin: 7 instructions, no errors, no warnings\n")
    assert (ended.status, ended.err, len(ended.out.splitlines())) == (0, "", 1)


def test_errors_end_with_status_1(vta, streams) -> None:
    ended = vta("check", "race", "-c", "tiny", "--dram", "dram")
    assert (ended.status, ended.err) == (1, "")
    lines = ended.out.splitlines()
    assert lines[0].startswith("error token-left: 1 token of queue compute -> store")
    assert "error race: insn 1 reads ACC entries 0..3 that insn 0 writes" in ended.out
    assert lines[-1] == "race: 4 instructions, 2 errors, no warnings"


def test_warnings_do_not(vta, streams) -> None:
    ended = vta("check", "unwritten", "-c", "tiny")
    assert ended.status == 0
    assert ended.out.startswith("warning sram-never-written: insn 0 (STORE OUT) reads ACC entries")
    assert ended.out.endswith("unwritten: 2 instructions, no errors, 1 warning\n")
    assert vta("check", "unwritten", "-c", "tiny", "--fresh").status == 1


def test_json(vta, streams) -> None:
    ended = vta("check", "race", "-c", "tiny", "--dram", "dram", "--json")
    assert ended.status == 1
    data = json.loads(ended.out)
    assert (data["instructions"], data["errors"], data["warnings"]) == (4, 2, 0)
    (race,) = (each for each in data["findings"] if each["code"] == "race")
    assert (race["severity"], race["kind"], race["memory"]) == ("error", "RAW", "ACC")
    assert (race["insn"], race["other"], race["low"], race["high"]) == (1, 0, 0, 3)
    assert len(race["detail"]) == 3
    good = vta("check", "good", "-c", "tiny", "--json")
    assert (good.status, json.loads(good.out)["findings"]) == (0, [])


def test_files_that_are_no_streams(vta, streams) -> None:
    Path("cut").write_bytes(bytes(15))
    for arguments in (["cut"], ["absent"], ["good", "--dram", "absent"]):
        ended = vta("check", *arguments)
        assert ended.status == 1
        assert ended.err.startswith(f"vta: {arguments[-1]}")


def test_the_same_in_python() -> None:
    words = parse_stream(RACE, load_machine("tiny"))
    found = package.check(words, "tiny", np.zeros(4096, dtype=np.uint8))
    assert [finding.code for finding in found] == ["token-left", "race"]
    assert all(isinstance(finding, package.Finding) for finding in found)


def test_a_run_ends_where_a_stream_fails(vta, monkeypatch) -> None:
    """A compiler that forgets to wait: the text of the finding is what the command ends with."""
    looked = []

    class Forgetful(checked_device.Checker):
        def check(self, stream, dram=None, insn_address=None):
            table = stream.copy()
            table[:, 0] &= ~np.uint64(0b1111 << 3)  # every flag
            looked.append(len(stream))
            return super().check(table, dram, insn_address)

    monkeypatch.setattr(checked_device, "Checker", Forgetful)
    ended = vta("run", "matmul", "-c", "default")
    assert ended.status == 1
    assert "the stream fails its check: error race: insn" in ended.err
    assert looked


def test_a_run_checks_every_launch(monkeypatch) -> None:
    looked = []
    original = checked_device.Checker.check

    def check(self, stream, dram=None, insn_address=None):
        looked.append(insn_address)
        return original(self, stream, dram, insn_address)

    monkeypatch.setattr(checked_device.Checker, "check", check)
    layer = job.load_workload("vector-add").layers[0]
    machine = load_machine("default")
    program = compile.compile_layer(layer, machine, True)
    for device in ("simulator", "reference"):
        _, launches = program.run(make_arrays(layer, machine), device)
        assert len(looked) == len(launches) > 0
        looked.clear()


def test_expected_result(vta, streams) -> None:
    """Bytes that are not as expected are an error; those that are, are none."""
    Path("copy").write_bytes(
        parse_stream(
            "load.acc y_size=1 x_size=1 push_next\n"
            "store.out y_size=1 x_size=1 dram_base=512 pop_prev push_prev\nfinish pop_next\n",
            load_machine("tiny"),
        ).tobytes()
    )
    before = np.zeros(4096, dtype=np.uint8)
    before[0] = 7
    before.tofile("before")
    ended = vta("check", "copy", "-c", "tiny", "--dram", "before", "--expect", "before")
    assert ended.status == 1
    assert ended.out.startswith(
        "error wrong-result: 1 byte of DRAM in 0x800..0x800 is not as expected; byte 0x800 is 0x07 "
        "instead of 0x00, and insn 1 (STORE) stores it\n"
    )
    before[0x800] = 7
    before.tofile("after")
    ended = vta("check", "copy", "-c", "tiny", "--dram", "before", "--expect", "after")
    assert (ended.status, ended.out.splitlines()[-1]) == (
        0,
        "copy: 3 instructions, no errors, no warnings",
    )
    changed = np.fromfile("after", dtype=np.uint8)
    changed[9] = 1
    changed.tofile("elsewhere")
    ended = vta("check", "copy", "-c", "tiny", "--dram", "before", "--expect", "elsewhere")
    assert "byte 0x9 is 0x00 instead of 0x01, and no instruction stores there" in ended.out


def test_expected_result_without_or_of_another_size(vta, streams) -> None:
    ended = vta("check", "good", "-c", "tiny", "--expect", "dram")
    assert (ended.status, ended.out) == (1, "")
    assert "there is none before it; give both" in ended.err
    Path("short").write_bytes(bytes(16))
    ended = vta("check", "good", "-c", "tiny", "--dram", "dram", "--expect", "short")
    assert "the expected DRAM image has 16 bytes, the one before the launch 4096" in ended.err
