"""Bad input through the command itself: one line that says what to do, and no file.

Each case is a process of its own, in an empty folder. The finer points of the messages are tested
where they are made.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import vta_isa

CHECKOUT = Path(__file__).parent.parent.parent
VECTOR = Path(__file__).parent.parent / "vectors" / "01_gemm_reset_store"
DEFAULT = vta_isa.load_machine("default")
FINISH = vta_isa.finish()


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-c", "import sys; from vta.cli import main; sys.exit(main())"]
    return subprocess.run(
        [*command, *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def refused(folder: Path, *words: str) -> str:
    """The one line on standard error; asserts that nothing else was printed or written."""
    before = {path: path.read_bytes() for path in folder.iterdir()}
    ended = run(folder, *words)
    assert (ended.returncode, ended.stdout) == (1, ""), ended
    assert re.fullmatch(r"vta: [^\n]+\n", ended.stderr), ended.stderr
    assert {path: path.read_bytes() for path in folder.iterdir()} == before
    return ended.stderr


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("gem: {batch: 1}", ["unknown key 'gem'", "did you mean 'gemm'?"]),
        ("sram: {inp: 32 KB}", ["sram.inp", "unknown unit 'KB'", "did you mean 'KiB'?"]),
        ("sram: {inp: 48000}", ["sram.inp = 48000", "nearest are 32768 and 65536"]),
        ("sram: {wgt: 8 MiB}", ["GEMM.wgt_factor_in (15 bits)", "sizes that fit: sram.acc = 4"]),
        ("types: {out: int32, acc: int16}", ["types.out = 'int32' is wider than types.acc"]),
        ("- gemm", ["holds a list, not a mapping"]),
        ("gemm: {", ["m.yaml, line 1"]),
    ],
)
def test_a_machine_that_cannot_be(tmp_path: Path, text: str, parts: list[str]) -> None:
    (tmp_path / "m.yaml").write_text(text)
    line = refused(tmp_path, "run", "vector-add", "-c", "m.yaml", "--json", "out.json")
    assert line.startswith("vta: m.yaml")
    assert all(part in line for part in parts), line


def test_a_machine_that_is_not_there(tmp_path: Path) -> None:
    line = refused(tmp_path, "run", "vector-add", "-c", "ultra69.yaml", "--json", "out.json")
    assert "ultra69.yaml: no such machine file or preset; did you mean the preset 'ultra96'" in line


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("layer: []", ["unknown key 'layer'; did you mean 'layers'?"]),
        ("layers: [{name: a, kind: relu, lenght: 3}]", ["(a)", "did you mean 'length'?"]),
        ("layers: [{name: a, kind: add}]", ["layers[0] (a): length is missing"]),
        (
            "layers: [{name: a, kind: dense, m: 1, k: 1, n: 1, epilogue: {shift: 99}}]",
            ["epilogue.shift: 99 is not a shift; use auto or a number in 0..31"],
        ),
        (
            "layers: [{name: big, kind: conv2d, height: 99, width: 99, in_channels: 1,"
            " out_channels: 1, kernel: 99}]",
            ["big", "no tile fits machine 'tiny'"],
        ),
    ],
)
def test_a_workload_that_cannot_be(tmp_path: Path, text: str, parts: list[str]) -> None:
    (tmp_path / "w.yaml").write_text(text)
    line = refused(tmp_path, "run", "w.yaml", "-c", "tiny", "--json", "out.json")
    assert line.startswith("vta: w")
    assert all(part in line for part in parts), line


def load(**changes: int) -> dict[str, int]:
    return vta_isa.load(
        vta_isa.Buffer.INP, **{"sram_base": 0, "dram_base": 0, "x_size": 1} | changes
    )


def encoded(*insns: dict[str, int]) -> bytes:
    return vta_isa.encode_stream(vta_isa.records(insns), DEFAULT).tobytes()


STREAMS = {
    "cut in the middle": (encoded(load(), FINISH)[:-5], ["insn 1 is cut", "27 bytes"]),
    "empty": (b"", ["the stream is empty; it needs at least one FINISH"]),
    "unknown opcode": (
        np.array([[7, 0]], "<u8").tobytes() + encoded(FINISH),
        ["insn 0: opcode = 7 is undefined", "0 (LOAD), 1 (STORE)"],
    ),
    "past a buffer": (
        encoded(load(sram_base=2047, x_size=2), FINISH),
        ["insn 0 (LOAD INP)", "2048", "0..2047"],
    ),
    "past DRAM": (
        encoded(load(dram_base=4, x_size=2), FINISH),
        ["insn 0 (LOAD INP)", "dram_base = 4 (byte 0x40)", "0x5f", "0..0x4f"],
    ),
    "far past DRAM": (
        encoded(load(dram_base=(1 << 32) - 1), FINISH),
        ["insn 0 (LOAD INP)", "dram_base = 4294967295", "0..0x4f"],
    ),
    "without an end": (encoded(load()), ["no FINISH"]),
    "deadlock": (
        encoded(load() | {"pop_next": 1}, FINISH | {"pop_prev": 1}),
        ["deadlock", "load: insn 0", "compute: insn 1", "compute_to_load", "load_to_compute"],
    ),
}


# That both devices find the same faults in the same words is tested with the simulator.
@pytest.mark.parametrize(
    ("name", "device"), [*((name, "simulator") for name in STREAMS), ("deadlock", "reference")]
)
def test_a_stream_that_cannot_run(tmp_path: Path, name: str, device: str) -> None:
    stream, parts = STREAMS[name]
    (tmp_path / "insn.bin").write_bytes(stream)
    (tmp_path / "dram.bin").write_bytes(bytes(80))
    words = ["exec", "insn.bin", "--dram", "dram.bin", "--out", "out.bin", "--device", device]
    line = refused(tmp_path, *words)
    assert line.startswith("vta: insn.bin: ")
    assert all(part in line for part in parts), line


@pytest.mark.parametrize("place", ["no/out", ".", "/proc/out"])
def test_an_output_that_cannot_be_written(tmp_path: Path, place: str) -> None:
    stream, dram = str(VECTOR / "insn.bin"), str(VECTOR / "dram.bin")
    for words in (
        ["exec", stream, "--dram", dram, "--out", place],
        ["run", "resnet18", "--json", place],
        ["run", "resnet18", "--roofline", place],
        ["disasm", stream, "-o", place],
    ):
        assert refused(tmp_path, *words).startswith(f"vta: {place}: ")


def test_an_existing_output_survives_a_failure(tmp_path: Path) -> None:
    (tmp_path / "out.bin").write_bytes(b"precious")
    (tmp_path / "dram.bin").write_bytes(bytes(16))
    stream = str(VECTOR / "insn.bin")
    assert "insn 0" in refused(tmp_path, "exec", stream, "--dram", "dram.bin", "--out", "out.bin")


def test_traceback_is_shown_when_asked_for(tmp_path: Path) -> None:
    ended = run(tmp_path, "run", "resnet19", "--traceback")
    assert ended.returncode == 1
    assert "Traceback (most recent call last)" in ended.stderr
    assert ended.stderr.splitlines()[-1].startswith("vta: there is no workload 'resnet19'")
