"""Bad input ends in one line on standard error that says what to do, and in no file."""

import os
from pathlib import Path

import pytest

import vta_isa
from vta.cli.main import INTERRUPTED
from vta_isa.errors import DeadlockError

VECTOR = Path(__file__).parent.parent / "vectors" / "01_gemm_reset_store"


def ended_in_one_line(ended, message: str, status: int = 1) -> None:
    assert ended.status == status, ended
    assert ended.out == ""
    assert ended.err.startswith("vta: ")
    assert ended.err.count("\n") == 1
    assert ended.err.endswith("\n")
    assert message in ended.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("rn resnet18", "No such command 'rn'. Did you mean 'run'? See `vta --help`"),
        ("isa --jsn", "No such option: --jsn (Possible options: --json) See `vta isa --help`"),
        ("run", "Missing argument 'WORKLOAD'"),
        ("run matmul --waves w.vcd", "add --device rtl"),
        ("run matmul --device rtl --compare --waves w.vcd", "those of one run"),
        ("run matmul --device rtl --cycles 1:2", "add --waves FILE"),
        ("run matmul --device fpga", "'fpga' is not one of 'simulator', 'reference'"),
        ("run matmul --compare --no-vthreads", "--compare runs both ways; drop --no-vthreads"),
        ("lower matmul", "Missing option '--emit'"),
        ("lower matmul --emit ast", "'ast' is not one of 'te', 'schedule', 'loops'"),
        ("asm x.s", "Missing option '-o'"),
        ("disasm x --buffer w=1", "--buffer 'w=1' is not NAME=ADDRESS,BYTES, as in"),
    ],
)
def test_a_wrong_command_line(vta, arguments: str, message: str) -> None:
    ended_in_one_line(vta(*arguments.split()), message, status=2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("isa -c pinq", "pinq: no such machine file or preset; did you mean the preset 'pynq'?"),
        ("isa -c my/pinq.yaml", "my/pinq.yaml: no such machine file or preset; did you mean"),
        ("run resnet19", "there is no workload 'resnet19'; did you mean 'resnet18'?"),
        ("run resnet18/C22", "workload resnet18 has no layer 'C22'; did you mean 'C2'?"),
        ("run mine.yaml", "mine.yaml: no such workload file"),
        ("disasm gone.bin", "gone.bin: no such file or directory"),
        ("disasm .", ".: is a directory"),
        ("asm gone.s -o x", "gone.s: no such file or directory"),
        ("exec gone.bin --dram gone.bin", "gone.bin: no such file or directory"),
        ("run matmul --json no/x.json", "no/x.json: cannot write: there is no folder"),
        ("run matmul --roofline no/x.png", "no/x.png: cannot write: there is no folder"),
        ("run matmul --device rtl --waves no/w.vcd", "no/w.vcd: cannot write: there is no folder"),
        ("run matmul --device rtl --waves w.vcd", "hold the waves of one layer, and matmul has"),
        ("run matmul --json .", ".: is a folder; name a file in it"),
    ],
)
def test_names_that_lead_nowhere(vta, compiler, arguments: str, message: str) -> None:
    ended_in_one_line(vta(*arguments.split()), message)
    assert compiler.compiled == []
    assert os.listdir() == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gem: {batch: 1}", "unknown key 'gem'; did you mean 'gemm'?"),
        ("sram: {inp: 32 KB}", "sram.inp"),
        ("sram: {inp: 48000}", "is not a power of two; the nearest are 32768 and 65536"),
        ("sram: {wgt: 8 MiB}", "cannot encode this machine"),
        ("gemm: {batch: 3}\nclock: fast", "2 problems: "),
        ("gemm: [", "machine.yaml"),
    ],
)
def test_machines_that_cannot_be(vta, text: str, message: str) -> None:
    Path("machine.yaml").write_text(text)
    ended = vta("isa", "-c", "machine.yaml")
    ended_in_one_line(ended, message)
    assert ended.err.startswith("vta: machine.yaml")


def test_a_workload_that_cannot_be(vta, compiler) -> None:
    Path("mine.yaml").write_text("layers: [{name: a, kind: dense, m: 1, k: 2, nn: 3}]")
    ended = vta("run", "mine.yaml")
    ended_in_one_line(ended, "vta: mine.yaml: layers[0] (a): n is missing; unknown key 'nn'")


@pytest.mark.parametrize("command", ["run", "lower"])
def test_a_layer_that_no_tile_fits(vta, command: str) -> None:
    Path("mine.yaml").write_text(
        "layers: [{name: big, kind: conv2d, height: 99, width: 99, in_channels: 1,"
        " out_channels: 1, kernel: 99}]"
    )
    emit = ["--emit", "te"] if command == "lower" else []
    ended = vta(command, "mine.yaml", "-c", "tiny", *emit)
    ended_in_one_line(ended, "vta: mine: big: conv: no tile fits machine 'tiny'")


def test_a_stream_cut_in_the_middle(vta) -> None:
    Path("cut.bin").write_bytes((VECTOR / "insn.bin").read_bytes()[:-3])
    message = "vta: cut.bin: insn 6 is cut: the stream has 109 bytes"
    ended_in_one_line(vta("disasm", "cut.bin"), message)
    ended_in_one_line(vta("exec", "cut.bin", "--dram", "cut.bin", "--out", "o"), message)
    assert os.listdir() == ["cut.bin"]


def test_a_stream_that_reaches_outside_dram_leaves_no_file(vta) -> None:
    Path("small.bin").write_bytes(bytes(64))
    ended = vta("exec", VECTOR / "insn.bin", "--dram", "small.bin", "--out", "out.bin")
    ended_in_one_line(ended, "insn.bin: insn 0")
    assert os.listdir() == ["small.bin"]


def test_a_stream_that_deadlocks(vta) -> None:
    table = vta_isa.records([vta_isa.finish(pop_prev=True)])
    machine = vta_isa.load_machine("default")
    Path("stuck.bin").write_bytes(vta_isa.encode_stream(table, machine).tobytes())
    Path("dram.bin").write_bytes(bytes(64))
    ended_in_one_line(vta("exec", "stuck.bin", "--dram", "dram.bin"), "token")


def test_an_output_that_cannot_be_written_is_told_before_the_stream_runs(vta) -> None:
    ended = vta("exec", VECTOR / "insn.bin", "--dram", VECTOR / "dram.bin", "--out", "no/out.bin")
    ended_in_one_line(ended, "no/out.bin: cannot write: there is no folder")


def test_assembly_that_does_not_parse_is_named_by_line(vta) -> None:
    Path("bad.s").write_text("finish\nfnish\n")
    ended = vta("asm", "bad.s", "-o", "bad.bin")
    ended_in_one_line(ended, "vta: bad.s, line 2")
    assert os.listdir() == ["bad.s"]


def test_text_that_is_no_text_is_named(vta) -> None:
    Path("bad.s").write_bytes(b"finish \xff")
    ended_in_one_line(vta("asm", "bad.s", "-o", "x"), "bad.s: not UTF-8 text, see byte 7")


def test_a_wrong_number_fails_the_run_and_writes_nothing(vta, compiler) -> None:
    compiler.wrong = ("ragged",)
    ended = vta("run", "matmul", "--json", "r.json", "--roofline", "r.png")
    ended_in_one_line(ended, "matmul: ragged: wrong number from the simulator: output[36, 82] = ")
    assert ", expected " in ended.err
    assert os.listdir() == []


def test_an_error_of_several_lines_becomes_one(vta, compiler) -> None:
    compiler.error = DeadlockError("no stage can go on\n  load: insn 3\n  store: insn 4")
    ended = vta("run", "matmul/single")
    ended_in_one_line(ended, "single: no stage can go on: load: insn 3; store: insn 4")


def test_a_fault_of_ours_ends_in_one_line_too(vta, compiler) -> None:
    compiler.error = ZeroDivisionError("division by zero")
    ended = vta("run", "matmul/single")
    ended_in_one_line(ended, "internal error: ZeroDivisionError: division by zero (a fault of vta")


@pytest.mark.parametrize("place", [0, 1, 3])
def test_traceback_shows_the_rest_wherever_it_stands(vta, place: int) -> None:
    words = ["run", "nothing", "--compare"]
    ended = vta(*words[:place], "--traceback", *words[place:])
    assert ended.status == 1
    assert ended.err.startswith("Traceback (most recent call last):")
    assert ended.err.splitlines()[-1].startswith("vta: there is no workload 'nothing'")


def test_an_interrupted_run_says_so(vta, compiler, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(type(compiler), "__call__", interrupt)
    ended_in_one_line(vta("run", "matmul"), "interrupted", status=INTERRUPTED)
