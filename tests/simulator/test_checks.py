"""Illegal instructions are refused: where, which field, which value, what is allowed."""

import machines
import numpy as np
import pytest

from simulator.checks import check_program
from simulator.reference import ReferenceState, run
from vta_isa.encoding import encode_uops
from vta_isa.enums import AluOp, Buffer, Opcode, Stage
from vta_isa.errors import StreamError
from vta_isa.insn import alu, finish, gemm, load, noop, records, store

# uop 256, inp 256, wgt 128, acc 256 entries of 4, 8, 64 and 32 bytes
MACHINE = machines.machine("block8")
DRAM_BYTES = 4096


def refuse(*insns, match, insn):
    with pytest.raises(StreamError, match=match) as caught:
        check_program(records([*insns, finish()]), MACHINE, DRAM_BYTES)
    assert caught.value.insn == insn


def accept(*insns):
    check_program(records([*insns, finish()]), MACHINE, DRAM_BYTES)


def inp(**fields):
    return load(Buffer.INP, **({"sram_base": 0, "dram_base": 0, "x_size": 1} | fields))


def out(**fields):
    return store(**({"sram_base": 0, "dram_base": 0, "x_size": 1} | fields))


def test_the_machine_is_the_one_the_numbers_below_are_for():
    depths = [MACHINE.depth(b) for b in (Buffer.UOP, Buffer.INP, Buffer.WGT, Buffer.ACC)]
    assert depths == [256, 256, 128, 256]
    units = [MACHINE.entry_bytes(b) for b in (Buffer.UOP, Buffer.INP, Buffer.WGT, Buffer.ACC)]
    assert units == [4, 8, 64, 32]


# -- the stream as a whole ----------------------------------------------------------------------


def test_an_empty_stream():
    with pytest.raises(StreamError, match="the stream is empty; it needs at least one FINISH"):
        check_program(records([]), MACHINE, DRAM_BYTES)


def test_a_stream_without_finish():
    with pytest.raises(StreamError, match="stream of 1 insns has no FINISH; append one, as insn 1"):
        check_program(records([inp()]), MACHINE, DRAM_BYTES)


def test_finish_before_the_end():
    refuse(inp(), finish(), inp(), match=r"insn 1 \(FINISH\).*only the last insn \(3\)", insn=1)


def test_the_lowest_faulty_instruction_is_reported():
    bad = inp(sram_base=256)
    refuse(inp(), bad, bad, match="insn 1 ", insn=1)


# -- encodings ----------------------------------------------------------------------------------


@pytest.mark.parametrize("opcode", [5, 6, 7])
def test_undefined_opcodes(opcode):
    match = rf"insn 1: opcode = {opcode} is undefined; opcodes are 0 \(LOAD\), .* 4 \(ALU\)"
    refuse(inp(), {"opcode": opcode}, match=match, insn=1)


@pytest.mark.parametrize("buffer", [Buffer.OUT, 6, 7])
def test_memories_that_cannot_be_loaded(buffer):
    bad = inp() | {"buffer": int(buffer)}
    refuse(bad, match=rf"insn 0 \(LOAD\): buffer = {int(buffer)} cannot be loaded; loadable are 0 "
           r"\(UOP\)", insn=0)  # fmt: skip
    accept(bad | {"x_size": 0})


@pytest.mark.parametrize("buffer", [b for b in range(8) if b != Buffer.OUT])
def test_memories_that_cannot_be_stored(buffer):
    bad = out() | {"buffer": buffer}
    match = rf"insn 0 \(STORE\): buffer = {buffer} cannot be stored; only 4 \(OUT\) can"
    refuse(bad, match=match, insn=0)
    accept(bad | {"x_size": 0})


@pytest.mark.parametrize("op", [5, 6, 7])
def test_undefined_alu_operations(op):
    bad = alu(AluOp.MIN, uops=(0, 1), imm=0) | {"alu_op": op}
    match = rf"insn 0 \(ALU\): alu_op = {op} is undefined; operations are 0 \(MIN\)"
    refuse(bad, match=match, insn=0)
    refuse(bad | {"iter_out": 0}, match=match, insn=0)


@pytest.mark.parametrize("buffer", [Buffer.INP, Buffer.WGT])
@pytest.mark.parametrize("flag", ["pop_prev", "push_prev"])
@pytest.mark.parametrize("x_size", [0, 1])
def test_load_has_no_stage_before_it(buffer, flag, x_size):
    bad = inp(x_size=x_size) | {flag: 1, "buffer": int(buffer)}
    match = rf"insn 0 \(LOAD {buffer.name}\): {flag} = 1, but the load stage has no stage before"
    refuse(bad, match=match, insn=0)


@pytest.mark.parametrize("flag", ["pop_next", "push_next"])
@pytest.mark.parametrize("insn", [out(), noop(Stage.STORE)])
def test_store_has_no_stage_after_it(insn, flag):
    refuse(insn | {flag: 1}, match=rf"{flag} = 1, but the store stage has no stage after", insn=0)


@pytest.mark.parametrize("flag", ["pop_prev", "pop_next", "push_prev", "push_next"])
def test_compute_has_stages_on_both_sides(flag):
    accept(load(Buffer.ACC, sram_base=0, dram_base=0, x_size=1) | {flag: 1})
    accept({"opcode": int(Opcode.LOAD), "buffer": 7, flag: 1})  # a no-op of any other id


@pytest.mark.parametrize("pad", ["y_pad_before", "y_pad_after", "x_pad_before", "x_pad_after"])
def test_a_store_has_no_padding(pad):
    match = rf"insn 0 \(STORE OUT\): {pad} = 3; a STORE has no padding, all pads are 0"
    refuse(out() | {pad: 3}, match=match, insn=0)
    accept(out() | {pad: 3, "x_size": 0})


# -- bounds of LOAD and STORE -------------------------------------------------------------------


def test_the_last_entry_of_sram_may_be_touched_and_the_next_may_not():
    accept(inp(sram_base=255), out(sram_base=250, x_size=3, y_size=2))
    match = (
        r"insn 0 \(LOAD INP\): sram_base = 255 and 1 x 2 entries reach entry 256; "
        r"INP has entries 0\.\.255; split the tile"
    )
    refuse(inp(sram_base=255, x_size=2), match=match, insn=0)
    refuse(out(sram_base=251, x_size=3, y_size=2), match=r"OUT has entries 0\.\.255", insn=0)


@pytest.mark.parametrize("pads", [{"y_pad": (1, 0)}, {"y_pad": (0, 1)}, {"x_pad": (1, 0)},
                                  {"x_pad": (0, 1)}])  # fmt: skip
def test_padding_counts_against_sram(pads):
    accept(inp(sram_base=254, **pads))
    refuse(inp(sram_base=255, **pads), match="reach entry 256", insn=0)


def test_a_load_that_writes_no_entry_may_point_anywhere():
    accept(inp(sram_base=0xFFFF, dram_base=0xFFFFFFFF, y_size=0))


@pytest.mark.parametrize("buffer", [b for b in Buffer if b != Buffer.OUT])
def test_the_last_byte_of_dram_may_be_touched_and_the_next_may_not(buffer):
    entries = DRAM_BYTES // MACHINE.entry_bytes(buffer)
    fields = {"sram_base": 0, "y_size": 3, "x_size": 2, "x_stride": 10}
    accept(load(buffer, dram_base=entries - 22, **fields))
    match = (
        rf"insn 0 \(LOAD {buffer.name}\): dram_base = {entries - 21} \(byte 0x[0-9a-f]+\) with 3 "
        r"rows of 2 entries, stride 10, reaches byte 0x1[0-9a-f]{3}; the DRAM image has bytes "
        r"0\.\.0xfff"
    )
    refuse(load(buffer, dram_base=entries - 21, **fields), match=match, insn=0)


def test_the_last_byte_a_store_may_write():
    accept(out(dram_base=511))
    refuse(out(dram_base=512), match="reaches byte 0x1007", insn=0)


def test_addresses_do_not_wrap():
    refuse(inp(dram_base=0xFFFFFFFF), match=r"dram_base = 4294967295 \(byte 0x7fffffff8\)", insn=0)
    refuse(inp(y_size=0xFFFF, x_stride=0xFFFF), match="65535 x 1 entries reach entry 65534", insn=0)


def test_padding_needs_no_dram():
    accept(inp(dram_base=511, y_pad=(3, 3), x_pad=(3, 3)))


def test_an_empty_image():
    with pytest.raises(StreamError, match="the image is empty"):
        check_program(records([inp(), finish()]), MACHINE, 0)


# -- bounds of GEMM and ALU ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "insn", [gemm(uops=(3, 257)), gemm(uops=(3, 257), reset=True),
             alu(AluOp.ADD, uops=(3, 257), imm=1)]
)  # fmt: skip
def test_uop_ranges_end_at_the_depth(insn):
    refuse(insn, match=r"uop_end = 257 is past the buffer; UOP has 256 entries", insn=0)
    accept(insn | {"uop_end": 256}, insn | {"iter_in": 0})


def run_with_uops(insn, uops, machine=MACHINE):
    state = ReferenceState(machine)
    state.uop[: len(uops)] = encode_uops(np.array(uops), machine)
    run(records([insn, finish()]), np.zeros(0, dtype=np.uint8), state)


REACHED = {
    "dst": ({"uops": (1, 3), "iters": (3, 5), "dst": (40, 20)}, "dst", 255 - 2 * 40 - 4 * 20),
    "src": ({"uops": (1, 3), "iters": (3, 5), "src": (40, 20)}, "src", 255 - 2 * 40 - 4 * 20),
    "wgt": ({"uops": (1, 3), "iters": (3, 5), "wgt": (20, 10)}, "wgt", 127 - 2 * 20 - 4 * 10),
}


@pytest.mark.parametrize(("shape", "operand", "highest"), REACHED.values(), ids=REACHED)
@pytest.mark.parametrize("kind", ["gemm", "reset", "tensor", "immediate"])
def test_the_highest_index_of_each_operand_that_is_used(kind, shape, operand, highest):
    used = {"gemm": ("dst", "src", "wgt"), "reset": ("dst",), "tensor": ("dst", "src"),
            "immediate": ("dst",)}[kind]  # fmt: skip
    plain = {k: v for k, v in shape.items() if k != "wgt"}
    insn = {
        "gemm": gemm(**shape),
        "reset": gemm(**shape, reset=True),
        "tensor": alu(AluOp.ADD, **plain),
        "immediate": alu(AluOp.ADD, **plain, imm=1),
    }[kind]
    column = ("dst", "src", "wgt").index(operand)

    def uops(index):
        table = np.zeros((3, 3), dtype=np.int64)
        table[2, column] = index
        return table

    run_with_uops(insn, uops(highest))
    if operand not in used:
        run_with_uops(insn, uops(highest + 1))
        return
    reached = 128 if operand == "wgt" else 256
    with pytest.raises(StreamError, match=f"{operand} index of uop 2 reaches {reached}") as caught:
        run_with_uops(insn, uops(highest + 1))
    assert caught.value.insn == 0
    buffer = "WGT" if operand == "wgt" else "INP" if (operand, kind) == ("src", "gemm") else "ACC"
    assert f"{buffer} has entries 0..{reached - 1}" in str(caught.value)


def test_the_message_of_an_index_says_how_it_came_about():
    with pytest.raises(StreamError) as caught:
        run_with_uops(alu(AluOp.ADD, uops=(0, 1), iters=(2, 3), dst=(100, 60), imm=1), [(50, 0, 0)])
    assert str(caught.value) == (
        "insn 0 (ALU ADD): dst index of uop 0 reaches 270, that is 50 + 100 (outer loop) + 120 "
        "(inner loop); ACC has entries 0..255; use smaller loops or factors, or check that the "
        "uops were loaded"
    )


def test_a_gemm_may_not_use_a_src_that_only_the_accumulators_have():
    machine = MACHINE.replace(sram={"inp": 512})  # 64 INP entries, 256 ACC entries
    run_with_uops(alu(AluOp.ADD, uops=(0, 1)), [(0, 64, 0)], machine)
    run_with_uops(gemm(uops=(0, 1), reset=True), [(0, 64, 0)], machine)
    run_with_uops(gemm(uops=(0, 1)), [(0, 63, 0)], machine)
    with pytest.raises(
        StreamError, match=r"src index of uop 0 reaches 64.*INP has entries 0\.\.63"
    ):
        run_with_uops(gemm(uops=(0, 1)), [(0, 64, 0)], machine)
