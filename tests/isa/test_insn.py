"""Constructors of single instructions, and the stages that execute them."""

from vta_isa import (
    INSN_DTYPE,
    AluOp,
    Buffer,
    Opcode,
    Stage,
    alu,
    finish,
    gemm,
    load,
    noop,
    records,
    stages,
    store,
)


def test_constructors_leave_out_what_is_zero() -> None:
    insn = load(Buffer.UOP, sram_base=0, dram_base=7, x_size=3)
    assert insn == {"opcode": 0, "dram_base": 7, "y_size": 1, "x_size": 3, "x_stride": 3}


def test_the_stride_of_a_store_is_its_width_unless_given() -> None:
    assert store(sram_base=0, dram_base=0, x_size=5)["x_stride"] == 5
    assert store(sram_base=0, dram_base=0, x_size=5, x_stride=9)["x_stride"] == 9


def test_an_immediate_of_zero_is_still_an_immediate() -> None:
    assert alu(AluOp.MAX, uops=(0, 1), imm=0)["use_imm"] == 1
    assert "use_imm" not in alu(AluOp.MAX, uops=(0, 1))


def test_factors_are_outer_then_inner() -> None:
    insn = gemm(uops=(1, 2), iters=(3, 4), dst=(5, 6), src=(7, 8), wgt=(9, 10))
    names = ("uop_begin", "uop_end", "iter_out", "iter_in", "dst_factor_out", "dst_factor_in")
    names += ("src_factor_out", "src_factor_in", "wgt_factor_out", "wgt_factor_in")
    assert [insn[name] for name in names] == list(range(1, 11))


def test_flags_are_kept_and_false_ones_left_out() -> None:
    assert finish(pop_prev=True, push_next=False) == {"opcode": Opcode.FINISH, "pop_prev": 1}


def test_stages_follow_opcode_and_buffer() -> None:
    insns = [load(buffer, sram_base=0, dram_base=0, x_size=1) for buffer in Buffer]
    insns += [gemm(uops=(0, 1)), alu(AluOp.ADD, uops=(0, 1)), finish(), {"opcode": 6}]
    insns += [store(sram_base=0, dram_base=0, x_size=1), *(noop(stage) for stage in Stage)]
    assert [Stage(stage) for stage in stages(records(insns))] == [
        Stage.COMPUTE,  # UOP
        Stage.LOAD,  # WGT
        Stage.LOAD,  # INP
        *[Stage.COMPUTE] * 3,  # ACC, OUT, ACC_8BIT
        *[Stage.COMPUTE] * 4,
        Stage.STORE,
        *Stage,
    ]


def test_records_hold_every_field_of_every_instruction() -> None:
    assert INSN_DTYPE.names == (
        *("opcode", "pop_prev", "pop_next", "push_prev", "push_next"),
        *("buffer", "sram_base", "dram_base", "y_size", "x_size", "x_stride"),
        *("y_pad_before", "y_pad_after", "x_pad_before", "x_pad_after"),
        *("reset", "uop_begin", "uop_end", "iter_out", "iter_in"),
        *("dst_factor_out", "dst_factor_in", "src_factor_out", "src_factor_in"),
        *("wgt_factor_out", "wgt_factor_in", "overwrite", "alu_op", "use_imm", "imm"),
        *("high", "shift", "low_kind"),
    )
    assert all(INSN_DTYPE[n] == ("<i8" if n == "dram_base" else "<i4") for n in INSN_DTYPE.names)
