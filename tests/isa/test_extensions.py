"""Extensions of the instruction set: where their fields are, and that nothing else moves."""

import re
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from isa_strategies import machines, tables

from vta_isa import (
    AluOp,
    AssemblyError,
    EncodingError,
    FusedOp,
    Layout,
    LowKind,
    MachineError,
    Opcode,
    alu,
    alu_operations,
    decode_stream,
    encode_stream,
    format_stream,
    gemm,
    layouts,
    load_machine,
    parse_stream,
    preset_names,
    records,
    requantize,
)
from vta_isa.insn import (
    IndexBits,
    alu_layout,
    gemm_layout,
    overwrite_layout,
    requantize_layout,
)
from vta_isa.layout import LayoutOverflow

BOTH = {"gemm_overwrite": True, "alu_requantize": True}
PLAIN = load_machine("default")
EXTENDED = PLAIN.replace(extensions=BOTH)


def bits_of(layout: Layout) -> dict[str, range]:
    return {name: range(slot.start, slot.end) for name, slot in layout.slots.items()}


def test_extensions_are_off_and_unseen_unless_asked_for() -> None:
    for name in preset_names("machines"):
        machine = load_machine(name)
        if name == "default-ext":
            assert machine == EXTENDED.replace(name=name)
            continue
        off = machine.replace(extensions=dict.fromkeys(BOTH, False))
        assert (off, off.hash) == (machine, machine.hash)
        assert ("extensions" in machine.model_dump()) == any(
            machine.extensions.model_dump().values()
        )


def test_each_extension_changes_the_hash_and_survives_a_dump() -> None:
    ways = [dict(zip(BOTH, flags, strict=True)) for flags in product((False, True), repeat=2)]
    found = [PLAIN.replace(extensions=way) for way in ways]
    assert len({machine.hash for machine in found}) == 4
    for machine in found:
        assert load_machine(machine.model_dump()) == machine
        assert load_machine(machine.model_dump(mode="json")).hash == machine.hash


@pytest.mark.parametrize("value", [1, "yes", None])
def test_a_flag_is_true_or_false(value: object) -> None:
    with pytest.raises(MachineError, match=r"extensions\.gemm_overwrite = .* valid boolean"):
        load_machine({"extensions": {"gemm_overwrite": value}})


def test_an_unknown_extension_is_answered_with_the_nearest() -> None:
    message = "unknown key 'extensions.alu_requantise'; did you mean 'alu_requantize'?"
    with pytest.raises(MachineError, match=re.escape(message)):
        load_machine({"extensions": {"alu_requantise": True}})


def test_the_fields_of_the_default_machine_are_where_the_page_says() -> None:
    plain, extended = layouts(PLAIN), layouts(EXTENDED)
    assert bits_of(extended.gemm) == {**bits_of(plain.gemm), "overwrite": range(63, 64)}
    assert extended.requantize is not None
    expected = bits_of(plain.alu)
    room, imm = expected.pop("src_factor_in"), expected.pop("imm")
    assert bits_of(extended.requantize) == {
        **expected,
        "shift": room[:5],
        "low_kind": room[5:7],
        "high": imm[:15],
    }
    assert (plain.requantize, extended.alu, plain.mem) == (None, plain.alu, extended.mem)


def layout_or_none(build, bits: IndexBits) -> Layout | None:
    try:
        return build(bits)
    except LayoutOverflow:
        return None


def test_every_machine_that_can_be_encoded_has_room_for_them() -> None:
    some = (1, 2, 5, 8, 10, 11, 13, 16)
    for uop, acc, inp, wgt in product(range(1, 17), range(1, 17), some, some):
        plain = layout_or_none(gemm_layout, IndexBits(uop=uop, inp=inp, wgt=wgt, acc=acc))
        if plain is not None:
            found = bits_of(overwrite_layout(IndexBits(uop=uop, inp=inp, wgt=wgt, acc=acc)))
            assert len(found.pop("overwrite")) == 1
            assert found == bits_of(plain)
    for uop, acc in product(range(1, 17), repeat=2):
        bits = IndexBits(uop=uop, inp=1, wgt=1, acc=acc)
        plain = layout_or_none(alu_layout, bits)
        if plain is not None:
            found, published = bits_of(requantize_layout(bits)), bits_of(plain)
            assert (len(found["shift"]), len(found["low_kind"]), len(found["high"])) == (5, 2, 15)
            assert found["high"] == published["imm"][:15]
            for name in found.keys() & published.keys():
                assert found[name] == published[name]
            assert all(bits.start // 64 == (bits.stop - 1) // 64 for bits in found.values())


@settings(deadline=None, max_examples=50)
@given(st.data())
def test_streams_with_extensions_survive(data: st.DataObject) -> None:
    machine = data.draw(machines()).replace(extensions=BOTH)
    kinds = layouts(machine)
    table = data.draw(tables(machine))
    words = encode_stream(table, machine)
    for record, (low, high) in zip(table, words.tolist(), strict=True):
        layout = kinds.of(int(record["opcode"]), int(record["alu_op"]))
        assert layout is not None
        values = {name: int(record[name]) for name in layout.slots}
        assert low | high << 64 == layout.encode(**values)
        garbage = data.draw(st.integers(0, 2**128 - 1)) & layout.reserved_mask
        assert layout.decode(layout.encode(**values) | garbage) == values
    assert (decode_stream(words, machine) == table).all()
    assert (parse_stream(format_stream(words, machine), machine) == words).all()


def test_without_the_extension_its_bits_mean_nothing() -> None:
    insns = [gemm(uops=(0, 1), overwrite=True), gemm(uops=(0, 1)), alu(AluOp.MIN, uops=(0, 1))]
    decoded = decode_stream(encode_stream(records(insns), EXTENDED), PLAIN)
    assert decoded.tolist() == records([insns[1], *insns[1:]]).tolist()
    with pytest.raises(EncodingError, match="insn 0: GEMM has no field overwrite, which is 1"):
        encode_stream(records(insns), PLAIN)
    assert alu_operations(PLAIN) == tuple(AluOp)
    assert alu_operations(EXTENDED) == (*AluOp, FusedOp.REQUANTIZE)


ALL = dict(uops=(1, 3), iters=(4, 5), dst=(6, 7), shift=8, high=127)


@pytest.mark.parametrize("low", LowKind)
@pytest.mark.parametrize("bias", [None, 0, 9])
def test_requantize_names_every_field(low: LowKind, bias: int | None) -> None:
    insn = requantize(**ALL, bias=bias, low=low)
    given = {"opcode": Opcode.ALU, "alu_op": 5, "uop_begin": 1, "uop_end": 3, "iter_out": 4}
    given |= {"iter_in": 5, "dst_factor_out": 6, "dst_factor_in": 7, "shift": 8, "high": 127}
    given |= {"src_factor_out": bias or 0, "low_kind": int(low), "use_imm": int(bias is None)}
    assert insn == {name: value for name, value in given.items() if value}
    words = encode_stream(records([insn]), EXTENDED)
    assert (decode_stream(words, EXTENDED) == records([insn])).all()


def test_assembly_of_extensions() -> None:
    insns = [
        gemm(uops=(0, 2), overwrite=True, pop_prev=True),
        requantize(**ALL, bias=1, low=LowKind.COMPLEMENT),
    ]
    words = encode_stream(records(insns), EXTENDED)
    text = format_stream(words, EXTENDED, comments=False)
    assert text.split("\n") == [
        "gemm uop_end=2 iter_out=1 iter_in=1 overwrite pop_prev",
        "alu.requantize uop_begin=1 uop_end=3 iter_out=4 iter_in=5 dst_factor_out=6 "
        "dst_factor_in=7 src_factor_out=1 shift=8 low_kind=2 high=127",
        "",
    ]
    assert (parse_stream(text, EXTENDED) == words).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("alu.requantize imm=3", "alu.requantize has no field 'imm'"),
        ("alu.requantize src_factor_in=3", "alu.requantize has no field 'src_factor_in'"),
        ("alu.requantize shift=32", "REQUANTIZE.shift = 32 does not fit 5 bits (0..31)"),
        ("alu.requantize high=32768", "REQUANTIZE.high = 32768 does not fit 15 bits (0..32767)"),
        ("alu.requantize high=-1", "REQUANTIZE.high = -1 does not fit 15 bits"),
        ("alu.requantise", "did you mean 'requantize'?"),
        ("alu.add shift=1", "alu.add has no field 'shift'"),
    ],
)
def test_mistakes_in_assembly_are_named(text: str, message: str) -> None:
    with pytest.raises(AssemblyError, match=re.escape(message)):
        parse_stream(text, EXTENDED)


def test_assembly_of_published_machines_knows_no_extension() -> None:
    for text in ("gemm overwrite", "alu.requantize shift=1"):
        with pytest.raises(AssemblyError):
            parse_stream(text, PLAIN)
    word = np.array(parse_stream("alu.5 imm=3 src_factor_in=1", PLAIN))
    assert "alu.5" in format_stream(word, PLAIN)
