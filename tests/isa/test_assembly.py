"""Text to bits and back."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from isa_strategies import machines, tables

from vta_isa import (
    AluOp,
    AssemblyError,
    Buffer,
    Machine,
    Stage,
    StreamError,
    alu,
    encode_stream,
    finish,
    format_stream,
    gemm,
    load,
    load_machine,
    noop,
    parse_stream,
    records,
    store,
)

DEFAULT = load_machine("default")


def parse(text: str, machine: Machine = DEFAULT) -> list[list[int]]:
    return parse_stream(text, machine).tolist()


def encode(*insns: dict[str, int]) -> list[list[int]]:
    return encode_stream(records(insns), DEFAULT).tolist()


@settings(deadline=None)
@given(st.data())
def test_instructions_survive_as_text(data: st.DataObject) -> None:
    machine = data.draw(machines())
    words = encode_stream(data.draw(tables(machine)), machine)
    text = format_stream(words, machine)
    assert "reserved" not in text
    np.testing.assert_array_equal(parse_stream(text, machine), words)


@settings(deadline=None)
@given(machines(), st.lists(st.integers(0, 2**128 - 1), max_size=8), st.booleans())
def test_any_bits_survive_as_text(machine: Machine, words: list[int], comments: bool) -> None:
    stream = b"".join(word.to_bytes(16, "little") for word in words)
    text = format_stream(stream, machine, comments=comments)
    assert parse_stream(text, machine).tobytes() == stream


@settings(deadline=None)
@given(st.data())
def test_labels_change_the_text_and_not_the_bits(data: st.DataObject) -> None:
    machine = data.draw(machines())
    words = encode_stream(data.draw(tables(machine)), machine)
    address = st.integers(0, 2**33)
    names = st.sampled_from(["a", "b.c", "_d1"])
    labels = data.draw(st.dictionaries(names, st.tuples(address, address)))
    text = format_stream(words, machine, labels)
    np.testing.assert_array_equal(parse_stream(text, machine), words)


def test_a_program_reads_well() -> None:
    insns = [
        load(Buffer.WGT, sram_base=2, dram_base=0x22, x_size=8, y_size=2, push_next=True),
        gemm(uops=(0, 4), iters=(12, 1), dst=(1, 0), reset=True, pop_prev=True),
        alu(AluOp.SHR, uops=(0, 1), iters=(1, 16), imm=-8),
        noop(Stage.LOAD, push_next=True),
        finish(),
    ]
    words = encode_stream(records(insns), DEFAULT)
    text = format_stream(words, DEFAULT, {"weights": (0x2000, 0x1000)})
    assert re.sub(" +", " ", text).splitlines() == [
        ".buffer weights = 0x2000, 4096",
        "load.wgt sram_base=2 dram_base=weights+2 y_size=2 x_size=8 x_stride=8 push_next # 0: load",
        "gemm reset uop_end=4 iter_out=12 iter_in=1 dst_factor_out=1 pop_prev # 1: compute",
        "alu.shr uop_end=1 iter_out=1 iter_in=16 use_imm imm=-8 # 2: compute",
        "load.inp push_next # 3: load, no-op",
        "finish # 4: compute",
    ]


def test_comments_can_be_given_or_left_out() -> None:
    words = encode_stream(records([finish(), finish()]), DEFAULT)
    assert format_stream(words, DEFAULT, comments=False) == "finish\nfinish\n"
    assert format_stream(words, DEFAULT, comments={1: "the\nend"}) == "finish\nfinish  # the end\n"


def test_an_empty_stream_is_empty_text() -> None:
    assert format_stream(b"", DEFAULT) == ""
    assert parse_stream("\n  # nothing\n", DEFAULT).shape == (0, 2)


def test_order_case_of_digits_and_spaces_do_not_matter() -> None:
    expected = encode(store(sram_base=10, dram_base=0xAB, x_size=8, pop_prev=True))
    text = "\tstore.out  pop_prev x_stride = 0b1000 x_size=8 y_size=1 dram_base=0xAb sram_base=1_0"
    assert parse(text) == expected
    assert parse(text + " ; comment # more") == expected


def test_a_one_bit_field_may_be_written_with_its_value() -> None:
    assert parse("gemm reset=1 pop_prev=0") == parse("gemm reset")


def test_labels_may_be_used_before_they_are_defined() -> None:
    text = "load.acc x_size=1 dram_base=bias+3\n.buffer bias = 128, 1024\n"
    assert parse(text) == encode({"opcode": 0, "buffer": 3, "x_size": 1, "dram_base": 5})


def test_a_label_counts_entries_of_the_instruction_s_buffer() -> None:
    text = ".buffer data = 0x1000\nload.{} dram_base=data+1"
    for buffer in Buffer:
        insn = {"opcode": 0, "buffer": buffer}
        base = 0x1000 // DEFAULT.entry_bytes(buffer) + 1
        assert parse(text.format(buffer.name.lower())) == encode({**insn, "dram_base": base})


def test_a_label_is_not_used_where_it_is_not_aligned() -> None:
    words = encode_stream(records([load(Buffer.INP, sram_base=0, dram_base=1, x_size=1)]), DEFAULT)
    assert "dram_base=0x1 " in format_stream(words, DEFAULT, {"odd": (8, 64)})


def test_labels_that_are_no_names_are_refused() -> None:
    with pytest.raises(AssemblyError, match="label 'my data' is no name"):
        format_stream(b"", DEFAULT, {"my data": (0, 0)})


def test_undefined_things_have_a_spelling() -> None:
    stream = np.array([[5, 1], [0 | 7 << 7, 0], [4, 6 << 44]], dtype=np.uint64)
    text = format_stream(stream, DEFAULT, comments=False)
    assert text.splitlines() == [
        ".word 0x0000000000000001_0000000000000005",
        "load.7",
        "alu.6",
    ]
    assert parse(text) == stream.tolist()


def test_reserved_bits_are_written_where_they_are_set() -> None:
    stream = np.array([[3 | 1 << 7, 1 << 63]], dtype=np.uint64)
    text = format_stream(stream, DEFAULT, comments=False)
    assert text == f"finish reserved={1 << 127 | 1 << 7:#x}\n"
    assert parse(text) == stream.tolist()


def test_a_cut_stream_is_refused() -> None:
    with pytest.raises(StreamError, match="insn 0 is cut"):
        format_stream(b"123", DEFAULT)


# fmt: off
BAD_TEXT = [
    ("lod.inp", "line 1, column 1: unknown mnemonic 'lod.inp'; did you mean 'load'?"),
    (".wrd 3", "line 1, column 1: unknown mnemonic '.wrd'; did you mean '.word'?"),
    ("load.imp", "line 1, column 1: expected load.BUFFER, not 'load.imp'; did you mean 'inp'?"),
    ("load", "expected load.BUFFER, not 'load'"),
    ("load.8", "MEM.buffer = 8 does not fit 3 bits"),
    ("alu.sub", "expected alu.ALU_OP, not 'alu.sub'"),
    ("gemm.reset", "gemm has no variants; write `gemm`"),
    ("finish\n  gemm uop_ned=1",
     "line 2, column 8: gemm has no field 'uop_ned'; did you mean 'uop_end'?"),
    ("gemm x_size=1", "gemm has no field 'x_size'"),
    ("load.inp buffer=1", "load.inp has no field 'buffer'"),
    ("gemm opcode=1", "gemm has no field 'opcode'"),
    ("gemm uop_end", "line 1, column 6: expected `uop_end=VALUE`"),
    ("gemm uop_end=", "line 1, column 13: expected a value after `uop_end=`"),
    ("gemm uop_end=four", "line 1, column 14: expected a number for uop_end, not 'four'"),
    ("gemm uop_end=007", "expected a number for uop_end, not '007'"),
    ("gemm uop_end=16384", "line 1, column 14: GEMM.uop_end = 16384 does not fit 14 bits"),
    ("gemm uop_end=-1", "GEMM.uop_end = -1 does not fit"),
    ("alu.shr imm=32768", "ALU.imm = 32768 does not fit 16 bits (-32768..32767)"),
    ("gemm reset=2", "GEMM.reset = 2 does not fit 1 bit (0..1)"),
    ("gemm reset reset", "line 1, column 12: reset is given twice"),
    ("gemm = 3", "gemm has no field '='"),
    ("load.inp dram_base=weights", "line 1, column 20: no buffer 'weights'; define it by .buffer"),
    (".buffer a = 16\nload.inp dram_base=b", "no buffer 'b'"),
    (".buffer a = 8\nload.inp dram_base=a",
     "a at 0x8 is no multiple of the 16 bytes of one inp entry"),
    (".buffer a = 0, 32\nload.inp dram_base=a+2", "a+2 lies outside a, which has 2 entries"),
    (".buffer a = 0\nload.inp dram_base=a+x",
     "line 2, column 22: expected a number of entries, not 'x'"),
    (".buffer a = 0\nload.6 dram_base=a", "buffer 6 is undefined, so its entries have no size"),
    (".buffer a = 0x8000000000\nload.inp dram_base=a",
     "MEM.dram_base = 34359738368 does not fit 32"),
    (".buffer a 3", "expected `.buffer NAME = ADDRESS, BYTES`"),
    (".buffer a = 3 4", "expected `.buffer NAME = ADDRESS, BYTES`"),
    (".buffer a = 3, 4 5", "and the end of the line"),
    (".buffer a = x", "line 1, column 13: expected a DRAM byte address, not 'x'"),
    (".buffer a = -1", "addresses and sizes are not negative"),
    (".buffer 1a = 3", "'1a' is no name"),
    (".buffer a = 3\n.buffer a = 4", "line 2, column 9: buffer 'a' is defined twice"),
    (".word", "expected one number after .word"),
    (".word 1 2", "expected one number after .word"),
    (".word 0x1_00000000000000000000000000000000", "does not fit 128 bits"),
    (".word -1", "does not fit 128 bits"),
    ("finish reserved=3", "3 has bits that belong to fields of FINISH; reserved are 0xff"),
    ("load.inp reserved=x", "expected the reserved bits, not 'x'"),
]
# fmt: on


@pytest.mark.parametrize(("text", "message"), BAD_TEXT)
def test_bad_text_is_answered_with_place_and_expectation(text: str, message: str) -> None:
    with pytest.raises(AssemblyError, match=re.escape(message)):
        parse(text)


def test_the_source_is_named_first() -> None:
    with pytest.raises(AssemblyError, match=r"^prog.s, line 1, column 1: unknown mnemonic"):
        parse_stream("oops", DEFAULT, source="prog.s")
