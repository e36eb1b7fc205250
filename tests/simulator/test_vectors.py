"""The conformance streams: the reference computes what two other implementations agreed on."""

import json
from pathlib import Path

import numpy as np
import pytest

from simulator.reference import ReferenceState, run
from vta_isa.encoding import decode_stream
from vta_isa.insn import INSN_DTYPE
from vta_isa.machine import load_machine

VECTORS = sorted((Path(__file__).parents[1] / "vectors").iterdir())

# The listing's spelling of a field -> ours, where they differ.
SPELLING = {
    "memory_type": "buffer",
    "pop_prev_dep": "pop_prev",
    "pop_next_dep": "pop_next",
    "push_prev_dep": "push_prev",
    "push_next_dep": "push_next",
    "y_pad_0": "y_pad_before",
    "y_pad_1": "y_pad_after",
    "x_pad_0": "x_pad_before",
    "x_pad_1": "x_pad_after",
    "reset_reg": "reset",
    "uop_bgn": "uop_begin",
    "uop_end": "uop_end",
    "alu_opcode": "alu_op",
}


class Vector:
    def __init__(self, folder: Path):
        self.meta = json.loads((folder / "meta.json").read_text())
        self.machine = load_machine(self.meta["config"])
        self.stream = (folder / "insn.bin").read_bytes()
        self.before = np.fromfile(folder / "dram.bin", dtype=np.uint8)
        self.after = np.fromfile(folder / "dram_out.bin", dtype=np.uint8)


@pytest.fixture(params=VECTORS, ids=lambda folder: folder.name)
def vector(request):
    return Vector(request.param)


def test_there_are_twelve_vectors():
    assert len(VECTORS) == 12


def test_the_reference_changes_dram_as_the_vector_says(vector):
    dram, state = vector.before.copy(), ReferenceState(vector.machine)
    run(decode_stream(vector.stream, vector.machine), dram, state)
    np.testing.assert_array_equal(dram, vector.after)
    assert np.count_nonzero(dram != vector.before) <= vector.meta["bytes_changed"]
    assert state.tokens == (0, 0, 0, 0)


def test_the_decoded_table_is_the_listed_program(vector):
    table = decode_stream(vector.stream, vector.machine)
    assert len(table) == len(vector.meta["program"]) == vector.meta["insn_count"]
    for number, listed in enumerate(vector.meta["program"]):
        want = dict.fromkeys(INSN_DTYPE.names, 0)
        want |= {SPELLING.get(k, k): v for k, v in listed.items() if k != "kind"}
        got = {field: int(table[number][field]) for field in INSN_DTYPE.names}
        assert got == want, f"insn {number}"
