"""Whole streams, against single words encoded one by one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from isa_strategies import machines, tables

from vta_isa import (
    INSN_DTYPE,
    EncodingError,
    Machine,
    Opcode,
    StreamError,
    as_words,
    decode_stream,
    decode_uops,
    encode_stream,
    encode_uops,
    layouts,
    load_machine,
    records,
)

DEFAULT = load_machine("default")
INDEX_MAX = {"iter_out": 16383, "x_size": 65535, "dram_base": 2**32 - 1, "uop_end": 16383}


@settings(deadline=None)
@given(st.data())
def test_encoding_agrees_with_one_word_at_a_time(data: st.DataObject) -> None:
    machine = data.draw(machines())
    table = data.draw(tables(machine))
    words = encode_stream(table, machine)
    for record, (low, high) in zip(table, words.tolist(), strict=True):
        layout = layouts(machine).of(int(record["opcode"]))
        values = {name: int(record[name]) for name in layout.slots}
        assert low | high << 64 == layout.encode(**values)


@settings(deadline=None)
@given(st.data())
def test_decoding_undoes_encoding_whatever_the_reserved_bits(data: st.DataObject) -> None:
    machine = data.draw(machines())
    table = data.draw(tables(machine))
    words = encode_stream(table, machine)
    for number, opcode in enumerate(table["opcode"]):
        mask = layouts(machine).of(int(opcode)).reserved_mask
        garbage = mask & data.draw(st.integers(0, 2**128 - 1))
        words[number] |= np.array([garbage & (2**64 - 1), garbage >> 64], dtype=np.uint64)
    assert (decode_stream(words, machine) == table).all()


@pytest.mark.parametrize("imm", [-(1 << 15), -1, 0, 1, (1 << 15) - 1])
def test_immediates_keep_their_sign(imm: int) -> None:
    table = records([{"opcode": Opcode.ALU, "use_imm": 1, "imm": imm}])
    assert decode_stream(encode_stream(table, DEFAULT), DEFAULT)["imm"] == [imm]


@pytest.mark.parametrize("opcode", [5, 6, 7])
def test_undefined_opcodes_keep_opcode_and_flags(opcode: int) -> None:
    words = np.array([[opcode | 0xFFFFFFF8, 2**64 - 1]], dtype=np.uint64)
    record = decode_stream(words, DEFAULT)[0]
    kept = {name: int(record[name]) for name in INSN_DTYPE.names or () if record[name]}
    assert kept == {
        "opcode": opcode,
        "pop_prev": 1,
        "pop_next": 1,
        "push_prev": 1,
        "push_next": 1,
    }
    assert encode_stream(np.array([record]), DEFAULT).tolist() == [[opcode | 0x78, 0]]


@pytest.mark.parametrize(
    ("insn", "message"),
    [
        ({"opcode": 0, "x_size": 65536}, r"insn 1: MEM.x_size = 65536 does not fit 16 bits"),
        ({"opcode": 0, "x_size": -1}, r"insn 1: MEM.x_size = -1 does not fit 16 bits"),
        ({"opcode": 1, "dram_base": 1 << 32}, r"insn 1: MEM.dram_base = 4294967296 does not fit"),
        ({"opcode": 0, "y_pad_after": 16}, r"MEM.y_pad_after = 16 .*\(0..15 row\)"),
        ({"opcode": 2, "iter_out": 16384}, r"split the loop over two instructions"),
        ({"opcode": 2, "uop_begin": 8192}, r"GEMM.uop_begin = 8192 does not fit 13 bits"),
        ({"opcode": 4, "imm": 1 << 15}, r"ALU.imm = 32768 does not fit 16 bits \(-32768..32767\)"),
        ({"opcode": 4, "imm": -(1 << 15) - 1}, r"ALU.imm = -32769 does not fit"),
        ({"opcode": 8}, r"insn 1: undefined opcode.opcode = 8 does not fit 3 bits"),
        ({"opcode": 3, "iter_in": 2}, r"insn 1: FINISH has no field iter_in, which is 2; set it"),
        ({"opcode": 2, "x_size": 2}, r"insn 1: GEMM has no field x_size"),
        ({"opcode": 0, "buffer": 8}, r"MEM.buffer = 8 does not fit 3 bits"),
    ],
)
def test_values_that_do_not_fit_are_refused_with_the_instruction(
    insn: dict[str, int], message: str
) -> None:
    with pytest.raises(EncodingError, match=message):
        encode_stream(records([{"opcode": 3}, insn]), DEFAULT)


@pytest.mark.parametrize("name", INDEX_MAX)
def test_the_largest_value_of_a_field_fits(name: str) -> None:
    opcode = Opcode.LOAD if name in ("x_size", "dram_base") else Opcode.GEMM
    table = records([{"opcode": opcode, name: INDEX_MAX[name]}])
    assert (decode_stream(encode_stream(table, DEFAULT), DEFAULT) == table).all()


def test_empty_streams_are_streams() -> None:
    assert as_words(b"").shape == (0, 2)
    assert len(decode_stream(b"", DEFAULT)) == 0
    assert encode_stream(records([]), DEFAULT).shape == (0, 2)


def test_every_way_to_hold_a_stream_is_the_same() -> None:
    raw = bytes(range(48))
    data = np.frombuffer(raw, dtype=np.uint8)
    ways = [
        raw,
        bytearray(raw),
        memoryview(raw),
        data,
        data.reshape(3, 16),
        data.view("<u8"),
        data.view("<i8").reshape(3, 2),
        data.view("<u4").reshape(3, 4),
        data.view("<u4").astype(">u4"),
        data.view("V16"),
        np.repeat(data.view("<u8"), 2)[::2],
    ]
    for way in ways:
        assert as_words(way).tobytes() == raw


@pytest.mark.parametrize("extra", [1, 8, 15])
def test_a_stream_cut_in_the_middle_is_refused_with_the_instruction(extra: int) -> None:
    with pytest.raises(StreamError, match=rf"insn 2 is cut: .* leaves {extra} of its 16") as caught:
        as_words(bytes(32 + extra))
    assert caught.value.insn == 2


def test_decoded_records_are_no_stream() -> None:
    with pytest.raises(StreamError, match="encode_stream"):
        as_words(records([{"opcode": 3}]))


def test_floats_are_no_stream() -> None:
    with pytest.raises(StreamError, match="not of float64"):
        as_words(np.zeros((1, 2)))


@settings(deadline=None)
@given(st.data())
def test_micro_ops_survive(data: st.DataObject) -> None:
    machine: Machine = data.draw(machines())
    slots = layouts(machine).uop.slots
    row = st.tuples(*(st.integers(0, slot.mask) for slot in slots.values()))
    indices = np.array(data.draw(st.lists(row, max_size=5)), dtype=np.int64).reshape(-1, 3)
    uops = encode_uops(indices, machine)
    assert (decode_uops(uops, machine) == indices).all()
    expected = [layouts(machine).uop.encode(dst=d, src=s, wgt=w) for d, s, w in indices.tolist()]
    assert uops.tolist() == expected


@pytest.mark.parametrize(("column", "name"), list(enumerate(["dst", "src", "wgt"])))
def test_micro_op_indices_past_the_field_are_refused(column: int, name: str) -> None:
    indices = np.zeros((3, 3), dtype=np.int64)
    indices[1, column] = layouts(DEFAULT).uop.slots[name].mask + 1
    with pytest.raises(EncodingError, match=rf"uop 1: UOP.{name} = \d+ does not fit"):
        encode_uops(indices, DEFAULT)


def test_records_refuse_fields_nobody_knows() -> None:
    with pytest.raises(EncodingError, match=r"insn 1 has no field 'x_sice'; did you mean 'x_size'"):
        records([{"opcode": 3}, {"x_sice": 1}])


def test_records_refuse_numbers_no_instruction_holds() -> None:
    with pytest.raises(EncodingError, match=r"insn 0: x_size = 4294967296 fits no instruction"):
        records([{"x_size": 1 << 32}])
