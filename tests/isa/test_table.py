"""The bit layout as rows."""

import pytest

from vta_isa import bit_table, load_machine, preset_names


@pytest.mark.parametrize("name", preset_names("machines"))
def test_every_bit_of_every_word_is_in_one_row(name: str) -> None:
    rows = bit_table(load_machine(name))
    for word, bits in {"MEM": 128, "GEMM": 128, "ALU": 128, "FINISH": 128, "UOP": 32}.items():
        covered = [
            bit for r in rows if r.word == word for bit in range(r.first_bit, r.last_bit + 1)
        ]
        assert covered == list(range(bits))
        assert sum(row.width for row in rows if row.word == word) == bits


def test_rows_read_well() -> None:
    rows = {(row.word, row.field): row for row in bit_table(load_machine("default")) if row.field}
    opcode = rows["MEM", "opcode"]
    assert opcode.bits == "0..2"
    assert opcode.meaning == "0 LOAD, 1 STORE, 2 GEMM, 3 FINISH, 4 ALU"
    assert rows["MEM", "pop_prev"].bits == "3"
    assert rows["MEM", "y_size"].bits == "64..79"
    assert rows["MEM", "y_size"].allowed == "0..65535 row"
    assert rows["ALU", "imm"].allowed == "-32768..32767"
    assert rows["UOP", "wgt"].bits == "22..31"


def test_reserved_bits_have_no_name() -> None:
    reserved = [row for row in bit_table(load_machine("default")) if not row.field]
    assert [(row.word, row.bits) for row in reserved] == [
        ("MEM", "58..63"),
        ("GEMM", "63"),
        ("ALU", "63"),
        ("FINISH", "7..127"),
    ]
