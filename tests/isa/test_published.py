"""The published vta_config.json format."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from vta_isa import Buffer, MachineError, load_machine

# The eight published sample files hold these numbers; only TARGET and HW_VER differ.
SAMPLE: dict[str, Any] = {
    "TARGET": "sim",
    "HW_VER": "0.0.2",
    "LOG_INP_WIDTH": 3,
    "LOG_WGT_WIDTH": 3,
    "LOG_ACC_WIDTH": 5,
    "LOG_BATCH": 0,
    "LOG_BLOCK": 4,
    "LOG_UOP_BUFF_SIZE": 15,
    "LOG_INP_BUFF_SIZE": 15,
    "LOG_WGT_BUFF_SIZE": 18,
    "LOG_ACC_BUFF_SIZE": 17,
}
PLATFORMS = {
    "sim": (100, 64),
    "tsim": (100, 64),
    "pynq": (100, 64),
    "ultra96": (333, 128),
    "zcu104": (333, 128),
    "de10nano": (100, 64),
    "intelfocl": (100, 64),
}


@pytest.mark.parametrize("target", PLATFORMS)
def test_a_sample_file_is_the_published_machine_on_its_board(tmp_path: Path, target: str) -> None:
    path = tmp_path / "vta_config.json"
    path.write_text(json.dumps(SAMPLE | {"TARGET": target}))
    machine, default = load_machine(path), load_machine("default")
    assert (machine.clock // 10**6, machine.axi.data_bits) == PLATFORMS[target]
    assert machine.name == f"{target}_1x16_i8w8a32_15_15_18_17"
    assert (machine.gemm, machine.types, machine.sram) == (
        default.gemm,
        default.types,
        default.sram,
    )


def test_revision_0_0_1_is_read_as_revision_b() -> None:
    sample = SAMPLE | {"TARGET": "zcu104", "HW_VER": "0.0.1"}
    assert load_machine(sample).hash == load_machine("zcu104").hash


def test_every_number_counts() -> None:
    numbers = {
        "LOG_INP_WIDTH": 2,
        "LOG_WGT_WIDTH": 1,
        "LOG_ACC_WIDTH": 4,
        "LOG_BATCH": 1,
        "LOG_BLOCK": 3,
        "LOG_UOP_BUFF_SIZE": 10,
        "LOG_INP_BUFF_SIZE": 11,
        "LOG_WGT_BUFF_SIZE": 12,
        "LOG_ACC_BUFF_SIZE": 13,
    }
    machine = load_machine(numbers)
    assert (machine.gemm.batch, machine.gemm.block_in, machine.gemm.block_out) == (2, 8, 8)
    bits = [machine.bits(b) for b in (Buffer.INP, Buffer.WGT, Buffer.ACC, Buffer.OUT)]
    assert bits == [4, 2, 16, 4]
    sram = machine.sram
    assert (sram.uop, sram.inp, sram.wgt, sram.acc) == (1024, 2048, 4096, 8192)


def test_missing_keys_take_the_published_default() -> None:
    assert load_machine({"LOG_BATCH": 0}).hash == load_machine("default").hash


def test_keys_may_be_spelt_like_the_c_macros() -> None:
    macros = {f"VTA_{key}": value for key, value in SAMPLE.items()}
    assert load_machine(macros) == load_machine(SAMPLE)


def test_derived_keys_are_allowed_where_they_agree() -> None:
    derived = {"LOG_BLOCK_IN": 4, "LOG_BLOCK_OUT": 4, "LOG_OUT_WIDTH": 3, "LOG_OUT_BUFF_SIZE": 15}
    assert load_machine(SAMPLE | derived) == load_machine(SAMPLE)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"LOG_BLCK": 4}, "unknown key 'LOG_BLCK'; did you mean 'LOG_BLOCK'?"),
        ({"gemm": {}}, "unknown key 'gemm'"),
        ({"TARGET": "pynk"}, "TARGET = 'pynk' is unknown; did you mean 'pynq'?"),
        ({"HW_VER": "0.0.3"}, "HW_VER = '0.0.3' is unknown; known: 0.0.1, 0.0.2"),
        ({"LOG_BATCH": "1"}, "LOG_BATCH = '1' is no log2; allowed are 0 to 30"),
        ({"LOG_BATCH": -1}, "LOG_BATCH = -1 is no log2"),
        ({"LOG_OUT_WIDTH": 5}, "LOG_OUT_WIDTH = 5 contradicts the other keys, which make it 3"),
        ({"LOG_UOP_BUFF_SIZE": 16}, "GEMM.wgt_factor_out (10 bits) ends after"),
        ({"LOG_ACC_BUFF_SIZE": 18}, "the nearest sizes that fit: sram.acc = 128 KiB"),
        ({"LOG_INP_WIDTH": 5}, "types.inp = 'int32' is not allowed"),
        ({"LOG_BLOCK": 7}, "more than a DRAM page of 4096"),
    ],
)
def test_a_bad_published_file_is_refused(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    path = tmp_path / "vta_config.json"
    path.write_text(json.dumps(SAMPLE | change))
    with pytest.raises(MachineError, match=re.escape(message)) as caught:
        load_machine(path)
    assert str(caught.value).startswith(f"{path}: ")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"LOG_BATCH": 0,}', "line 1, column 17: "),
        ('{"LOG_BATCH": 0, "LOG_BATCH": 1}', "key 'LOG_BATCH' is given twice"),
        ("[]", "holds a list, not a mapping of keys"),
    ],
)
def test_a_file_that_is_no_json_object_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "vta_config.json"
    path.write_text(text)
    with pytest.raises(MachineError, match=re.escape(message)) as caught:
        load_machine(path)
    assert str(caught.value).startswith(str(path))


def test_json_may_be_indented_with_tabs_and_hold_our_own_keys(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"gemm": {"batch": 2}}, indent="\t"))
    assert load_machine(path).gemm.batch == 2
