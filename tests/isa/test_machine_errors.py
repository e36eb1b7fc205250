"""Descriptions that are refused, and what the user reads."""

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vta_isa import Machine, MachineError, load_machine

LARGE = {"uop": "32 KiB", "inp": "32 KiB", "wgt": "256 KiB", "acc": "128 KiB"}

# fmt: off
REFUSED: list[tuple[dict[str, Any], str]] = [
    # keys
    ({"gem": {}}, "unknown key 'gem'; did you mean 'gemm'?"),
    ({"sram": {"inpt": 1}},
     "unknown key 'sram.inpt'; did you mean 'inp'? known: uop, inp, wgt, acc"),
    ({"gemm": 3}, "gemm = 3 is not a mapping; its keys are batch, block_in, block_out, packing"),
    ({"axi": None}, "axi = None is not a mapping"),
    # whole numbers and powers of two
    ({"gemm": {"batch": 0}}, "gemm.batch = 0 is out of range; allowed are 1 to 1024"),
    ({"gemm": {"batch": 3}}, "gemm.batch = 3 is not a power of two; the nearest are 2 and 4"),
    ({"gemm": {"batch": True}}, "gemm.batch = True is not a whole number"),
    ({"gemm": {"batch": 1.5}}, "gemm.batch = 1.5 is not a whole number"),
    ({"gemm": {"batch": "2"}}, "gemm.batch = '2' is not a whole number"),
    ({"sram": {"inp": 48000}},
     "sram.inp = 48000 is not a power of two; the nearest are 32768 and 65536"),
    ({"sram": {"inp": "48 KiB"}}, "sram.inp = '48 KiB' is not a power of two"),
    ({"sram": {"inp": -1}}, "sram.inp = -1 is out of range"),
    ({"axi": {"data_bits": 16}}, "axi.data_bits = 16 is out of range; allowed are 32 to 512"),
    ({"axi": {"data_bits": 1024}}, "axi.data_bits = 1024 is out of range"),
    ({"axi": {"data_bits": 48}}, "the nearest are 32 and 64"),
    ({"axi": {"burst_beats": 512}}, "axi.burst_beats = 512 is out of range; allowed are 1 to 256"),
    ({"axi": {"outstanding_reads": 0}}, "axi.outstanding_reads = 0 is out of range"),
    ({"queues": {"token": 0}}, "queues.token = 0 is out of range"),
    ({"alu": {"tensor_interval": 0}}, "alu.tensor_interval = 0 is out of range"),
    ({"memory": {"read_latency": 0}}, "memory.read_latency = 0 is out of range"),
    ({"memory": {"jitter": -1}}, "memory.jitter = -1 is out of range"),
    ({"name": 3}, "name = 3 is not allowed"),
    # two products in one multiplier
    ({"gemm": {"packing": 0}}, "gemm.packing = 0 is out of range; allowed are 1 to 2"),
    ({"gemm": {"packing": 3}}, "gemm.packing = 3 is out of range"),
    ({"gemm": {"packing": 2}, "types": {"inp": "int16"}},
     "one inp scalar (int16) with two of wgt (int8): they take a multiplier of 16 x 33 bits; one "
     "wgt scalar (int8) with two of inp (int16): gemm.batch = 1 gives no two products; leave "),
    ({"gemm": {"packing": 2, "block_out": 1}}, "gemm.block_out = 1 gives no two products"),
    # units
    ({"sram": {"inp": "32 kB"}},
     "sram.inp = '32 kB' has the unknown unit 'kB'; did you mean 'KiB'?"),
    ({"sram": {"inp": "32 MHz"}}, "has the unknown unit 'MHz'"),
    ({"sram": {"inp": "much"}}, "sram.inp = 'much' is not a quantity; write a number and a unit"),
    ({"sram": {"inp": "0.3 B"}}, "is not a whole number of B"),
    ({"clock": "100 mhz"}, "clock = '100 mhz' has the unknown unit 'mhz'; did you mean 'MHz'?"),
    ({"clock": "0 MHz"}, "clock = '0 MHz' is out of range"),
    # types
    ({"types": {"inp": "int3"}}, "types.inp = 'int3' is not allowed; did you mean"),
    ({"types": {"inp": "int32"}}, "types.inp = 'int32' is not allowed"),
    ({"types": {"acc": "int8"}}, "types.acc = 'int8' is not allowed"),
    ({"types": {"out": "int32", "acc": "int16"}}, "types.out = 'int32' is wider than types.acc"),
    # entries
    ({"gemm": {"block_in": 1}, "types": {"inp": "int2"}},
     "one inp entry (batch 1 x block_in 1 x 2 bits) has 2 bits, which is no whole byte"),
    ({"gemm": {"block_in": 128, "block_out": 64}},
     "one wgt entry (block_out 64 x block_in 128 x 8 bits) has 8192 bytes, more than a DRAM page "
     "of 4096; take at most gemm.block_out = 32 or gemm.block_in = 64"),
    ({"gemm": {"batch": 128}}, "one acc entry (batch 128 x block_out 16 x 32 bits) has 8192 bytes"),
    # depths
    ({"sram": {"inp": 16}}, "sram.inp = 16 B holds 1 entries of 16 bytes"),
    ({"sram": {"uop": 4}}, "the nearest size that fits is 8 B"),
    ({"sram": {"inp": "2 MiB"}}, "the nearest size that fits is 1 MiB"),
    # words
    ({"sram": {"uop": "64 KiB"}}, "GEMM.wgt_factor_out (10 bits) ends after 132 bits"),
    ({"sram": {"uop": "64 KiB"}}, "ALU.imm (16 bits) ends after 142 bits"),
    ({"sram": {"uop": "64 KiB"}}, "the nearest sizes that fit: sram.uop = 32 KiB"),
    ({"sram": {"acc": "256 KiB"}}, "ALU.imm (16 bits) ends after 132 bits"),
    ({"sram": {"acc": "256 KiB"}}, "UOP.wgt (10 bits) ends after 34 bits, the word has 32"),
    ({"sram": {"acc": "256 KiB"}}, "the nearest sizes that fit: sram.acc = 128 KiB"),
    ({"sram": {"wgt": "512 KiB"}}, "UOP.wgt (11 bits) ends after 33 bits"),
    ({"sram": {"wgt": "512 KiB"}}, "sram.wgt = 256 KiB"),
]
# fmt: on


@pytest.mark.parametrize(("description", "message"), REFUSED)
def test_a_bad_description_is_refused_with_a_way_out(
    description: dict[str, Any], message: str
) -> None:
    with pytest.raises(MachineError, match=re.escape(message)):
        load_machine(description)


def test_every_problem_is_told_at_once() -> None:
    with pytest.raises(MachineError) as caught:
        load_machine({"gem": {}, "sram": {"inp": 3, "wgt": "1 kb"}, "clock": 0})
    lines = str(caught.value).splitlines()
    assert lines[0] == "4 problems"
    assert {line.split()[0] for line in lines[1:]} == {"sram.inp", "sram.wgt", "clock", "unknown"}


def test_direct_construction_gives_the_same_error() -> None:
    with pytest.raises(MachineError, match=r"unknown key 'gem'; did you mean 'gemm'"):
        Machine(gem={})  # type: ignore[call-arg]


def test_replace_gives_the_same_error() -> None:
    with pytest.raises(MachineError, match=r"gemm.batch = 3 is not a power of two"):
        load_machine("tiny").replace(gemm={"batch": 3})


@settings(deadline=None)
@given(
    st.fixed_dictionaries(
        {
            "uop": st.integers(3, 20).map(lambda log: 1 << log),
            "inp": st.integers(5, 20).map(lambda log: 1 << log),
            "wgt": st.integers(9, 24).map(lambda log: 1 << log),
            "acc": st.integers(7, 22).map(lambda log: 1 << log),
        }
    )
)
def test_sizes_said_to_fit_do_fit(sram: dict[str, int]) -> None:
    try:
        load_machine({"sram": sram})
    except MachineError as error:
        advice = re.split("nearest sizes? that fits?:? ?(?:is )?", str(error))
        if "cannot encode" not in str(error):
            return
        for choice in advice[-1].split("; or "):
            smaller = dict(re.findall(r"sram.(\w+) = (\d+ \w+)", choice))
            assert smaller
            assert load_machine({"sram": {**sram, **smaller}})


def test_a_missing_file_is_answered_with_the_nearest_preset() -> None:
    with pytest.raises(MachineError) as caught:
        load_machine("defualt")
    assert str(caught.value) == (
        "defualt: no such machine file or preset; did you mean the preset 'default'? "
        "presets: de10nano, default, default-ext, ecp5, pynq, tiny, ultra96, zcu104, zynq7020"
    )


def test_a_missing_path_names_the_path(tmp_path: Path) -> None:
    path = tmp_path / "zcu10.yaml"
    with pytest.raises(MachineError, match=rf"^{re.escape(str(path))}: .*preset 'zcu104'"):
        load_machine(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gemm: {batch: 3}\n", "gemm.batch = 3 is not a power of two"),
        ("gemm: {batch: 2\n", "line 2, column 1: expected ',' or '}'"),
        ("gemm: {}\ngemm: {}\n", "line 2, column 1: key 'gemm' is given twice"),
        ("sram: {inp: 1, inp: 2}\n", "line 1, column 16: key 'inp' is given twice"),
        ("- 1\n", "holds a list, not a mapping of keys"),
        ("1: 2\n", "1"),
        ("base: nowhere.yaml\n", "no such machine file or preset"),
        ("base: 3\n", "base = 3 is no preset name and no path"),
        ("base: bad.yaml\n", "is its own base"),
    ],
)
def test_messages_about_a_file_begin_with_its_name(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    with pytest.raises(MachineError, match=re.escape(message)) as caught:
        load_machine(path)
    assert str(caught.value).startswith(str(tmp_path))


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"a: \x00"])
def test_a_file_that_is_no_text_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.yaml"
    path.write_bytes(content)
    with pytest.raises(MachineError, match=re.escape(str(path))):
        load_machine(path)


def test_a_folder_is_no_machine(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match="cannot be read"):
        load_machine(tmp_path)


def test_a_number_is_no_machine() -> None:
    with pytest.raises(MachineError, match="3 is no machine; give a preset name, a path or a mapp"):
        load_machine(3)  # type: ignore[arg-type]
