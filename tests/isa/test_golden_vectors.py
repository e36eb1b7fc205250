"""Words and bit positions that earlier implementations agree on."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vta_isa import (
    AluOp,
    Buffer,
    Stage,
    alu,
    decode_stream,
    decode_uops,
    encode_stream,
    encode_uops,
    finish,
    format_stream,
    gemm,
    layouts,
    load,
    load_machine,
    noop,
    parse_stream,
    records,
    store,
)

# fmt: off
GOLDEN = {
    "load inp": (load(Buffer.INP, pop_next=True, sram_base=0x123, dram_base=0x89ABCDEF, y_size=4,
                      x_size=14, x_stride=16, y_pad=(1, 2), x_pad=(3, 4)),
                 0x0226AF37BC048D10, 0x43210010000E0004),
    "store out": (store(pop_prev=True, push_prev=True, sram_base=0x7FF, dram_base=0x300, y_size=1,
                        x_size=16, x_stride=16),
                  0x0000000C001FFE29, 0x0000001000100001),
    "load no-op": (noop(Stage.LOAD, push_next=True), 0x140, 0),
    "compute no-op": (noop(Stage.COMPUTE, pop_prev=True, pop_next=True), 0x18, 0),
    "store no-op": (noop(Stage.STORE, push_prev=True), 0x21, 0),
    "gemm": (gemm(pop_prev=True, push_next=True, uops=(5, 8192), iters=(3, 16383), dst=(1, 2047),
                  src=(2, 1024), wgt=(3, 1023)),
             0x7FFE001C0000054A, 0xFFC0380000BFF801),
    "gemm reset": (gemm(reset=True, push_prev=True, uops=(0, 1), iters=(1, 16), dst=(0, 1)),
                   0x00200008002000A2, 0x0000000000000800),
    "alu immediate": (alu(AluOp.SHR, imm=-8, push_next=True, uops=(1, 2), iters=(1, 64),
                          dst=(0, 1), src=(0, 1)),
                      0x0080000800400144, 0xFFF8B00200000800),
    "alu tensor": (alu(AluOp.ADD, uops=(0, 1), iters=(2, 8), dst=(8, 1), src=(16, 2)),
                   0x0010001000200004, 0x0000200404000808),
    "finish": (finish(), 3, 0),
}
# fmt: on

VECTORS = sorted((Path(__file__).parents[1] / "vectors").glob("*/meta.json"))
# Names of the vectors' field lists that differ from ours.
OUR_NAMES = {
    "pop_prev_dep": "pop_prev",
    "pop_next_dep": "pop_next",
    "push_prev_dep": "push_prev",
    "push_next_dep": "push_next",
    "memory_type": "buffer",
    "y_pad_0": "y_pad_before",
    "y_pad_1": "y_pad_after",
    "x_pad_0": "x_pad_before",
    "x_pad_1": "x_pad_after",
    "reset_reg": "reset",
    "uop_bgn": "uop_begin",
    "alu_opcode": "alu_op",
    "dst_idx": "dst",
    "src_idx": "src",
    "wgt_idx": "wgt",
}


@pytest.mark.parametrize("name", GOLDEN)
def test_a_golden_instruction_encodes_to_its_words(name: str) -> None:
    insn, low, high = GOLDEN[name]
    words = encode_stream(records([insn]), load_machine("default"))
    assert [hex(word) for word in words[0]] == [hex(low), hex(high)]


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_words_decode_to_their_instruction(name: str) -> None:
    insn, low, high = GOLDEN[name]
    words = np.array([[low, high]], dtype=np.uint64)
    assert decode_stream(words, load_machine("default")) == records([insn])


def test_the_golden_micro_op() -> None:
    machine = load_machine("default")
    assert encode_uops([[5, 0x7FF, 0x201]], machine) == [0x807FF805]
    assert decode_uops([0x807FF805], machine).tolist() == [[5, 0x7FF, 0x201]]


def ours(fields: dict[str, Any]) -> dict[str, Any]:
    return {OUR_NAMES.get(name, name): value for name, value in fields.items()}


@pytest.fixture(params=VECTORS, ids=lambda path: path.parent.name)
def vector(request: pytest.FixtureRequest) -> tuple[dict[str, Any], bytes]:
    path: Path = request.param
    return json.loads(path.read_text()), (path.parent / "insn.bin").read_bytes()


def test_all_vectors_are_here() -> None:
    assert len(VECTORS) == 12


def test_bit_positions_agree_with_the_vectors(vector: tuple[dict[str, Any], bytes]) -> None:
    meta, _ = vector
    kinds = layouts(load_machine(meta["config"]))
    for key, layout in {
        "mem": kinds.mem,
        "gem": kinds.gemm,
        "alu": kinds.alu,
        "uop": kinds.uop,
    }.items():
        positions = {n: [s.start, s.field.width] for n, s in layout.slots.items()}
        assert positions == ours(meta["bit_layout"][key])


def test_derived_sizes_agree_with_the_vectors(vector: tuple[dict[str, Any], bytes]) -> None:
    meta, _ = vector
    machine, derived = load_machine(meta["config"]), meta["derived"]
    for buffer in (Buffer.UOP, Buffer.INP, Buffer.WGT, Buffer.ACC, Buffer.OUT):
        name = buffer.name.lower()
        assert machine.entry_bytes(buffer) == derived["element_bytes"][name]
        assert machine.depth(buffer) == derived.get(f"{name}_depth", derived["acc_depth"])


def test_programs_of_the_vectors_encode_to_their_streams(
    vector: tuple[dict[str, Any], bytes],
) -> None:
    meta, stream = vector
    machine = load_machine(meta["config"])
    insns = [ours({k: v for k, v in insn.items() if k != "kind"}) for insn in meta["program"]]
    assert encode_stream(records(insns), machine).tobytes() == stream
    assert (decode_stream(stream, machine) == records(insns)).all()


def test_streams_of_the_vectors_survive_as_text(vector: tuple[dict[str, Any], bytes]) -> None:
    meta, stream = vector
    machine = load_machine(meta["config"])
    labels = {region["name"]: (region["addr"], region["bytes"]) for region in meta["regions"]}
    text = format_stream(stream, machine, labels)
    assert parse_stream(text, machine).tobytes() == stream
    assert any(f"dram_base={name}" in text for name in labels)
