"""Kernels: recording rules, loop placement, one copy each, and the micro-op memory as a cache."""

import numpy as np
import pytest

from vta_isa import (
    AluOp,
    Buffer,
    FusedOp,
    LowKind,
    Opcode,
    RuntimeCallError,
    decode_uops,
    load_machine,
)
from vta_runtime import Runtime
from vta_runtime.requantize import Requantize
from vta_runtime.uops import UopCache

GEMM, ALU = 0, 1


def gemm_uop(runtime, dst, src=0, wgt=0, reset=0):
    runtime.uop_push(GEMM, reset, dst, src, wgt, 0, 0, 0)


def alu_uop(runtime, dst, src=0, op=AluOp.ADD, use_imm=0, imm=0, reset=0):
    runtime.uop_push(ALU, reset, dst, src, 0, op, use_imm, imm)


def launched(runtime):
    runtime.synchronize()
    return runtime.device.tables[-1]


def loop_fields(record):
    names = ("iter", "dst_factor", "src_factor", "wgt_factor")
    return {level: tuple(int(record[f"{n}_{level}"]) for n in names) for level in ("out", "in")}


def test_one_loop_is_the_outer_one_of_a_gemm(runtime):
    def record(r):
        r.uop_loop_begin(7, 1, 2, 3)
        gemm_uop(r, 0)
        r.uop_loop_end()

    runtime.push_gemm_op(0, record)
    assert loop_fields(launched(runtime)[1]) == {"out": (7, 1, 2, 3), "in": (1, 0, 0, 0)}


def test_one_loop_is_the_inner_one_of_an_alu_instruction(runtime):
    def record(r):
        r.uop_loop_begin(7, 1, 2, 0)
        alu_uop(r, 0)
        r.uop_loop_end()

    runtime.push_alu_op(0, record)
    assert loop_fields(launched(runtime)[1]) == {"out": (1, 0, 0, 0), "in": (7, 1, 2, 0)}


@pytest.mark.parametrize("push", ["push_gemm_op", "push_alu_op"])
def test_two_loops_keep_their_order_and_none_counts_once(push, runtime):
    uop = gemm_uop if push == "push_gemm_op" else alu_uop
    wgt = 5 if push == "push_gemm_op" else 0

    def record(r):
        r.uop_loop_begin(3, 1, 2, wgt)
        r.uop_loop_begin(4, 6, 7, wgt)
        uop(r, 0)
        r.uop_loop_end()
        r.uop_loop_end()

    getattr(runtime, push)(0, record)
    getattr(runtime, push)(1, lambda r: uop(r, 0))
    table = launched(runtime)
    assert loop_fields(table[1]) == {"out": (3, 1, 2, wgt), "in": (4, 6, 7, wgt)}
    assert loop_fields(table[3]) == {"out": (1, 0, 0, 0), "in": (1, 0, 0, 0)}


@pytest.mark.parametrize("extent", [0, 1, 16383])
def test_every_extent_that_fits_its_bits_is_accepted(extent, runtime):
    def record(r):
        r.uop_loop_begin(extent, 0, 0, 0)
        gemm_uop(r, 0)
        r.uop_loop_end()

    runtime.push_gemm_op(0, record)
    assert launched(runtime)["iter_out"][1] == extent


def nested(levels):
    def record(r):
        for _ in range(levels):
            r.uop_loop_begin(1, 0, 0, 0)
        gemm_uop(r, 0)

    return record


def late_loop(r):
    gemm_uop(r, 0)
    r.uop_loop_begin(1, 0, 0, 0)


def uop_after_loop(r):
    r.uop_loop_begin(1, 0, 0, 0)
    r.uop_loop_end()
    gemm_uop(r, 0)


def reset_changes(r):
    gemm_uop(r, 0)
    gemm_uop(r, 1, reset=1)


def past_the_end_by_loops(r):
    r.uop_loop_begin(3, 1024, 0, 0)
    gemm_uop(r, 0)
    r.uop_loop_end()


BAD_GEMMS = {
    "nothing": (lambda r: None, "pushed no micro-op"),
    "three loops": (nested(3), "a third uop_loop_begin"),
    "open loop": (nested(1), r"1 loop level\(s\) still open"),
    "late loop": (late_loop, "uop_loop_begin after 1 micro-ops"),
    "end without begin": (lambda r: r.uop_loop_end(), "uop_loop_end without an open loop"),
    "uop after the loop": (uop_after_loop, "uop_push after uop_loop_end"),
    "extent": (lambda r: r.uop_loop_begin(16384, 0, 0, 0), r"extent = 16384 is outside 0\.\.16383"),
    "factor": (lambda r: r.uop_loop_begin(1, 2048, 0, 0), r"dst_factor = 2048 is outside"),
    "wrong mode": (lambda r: alu_uop(r, 0), r"mode = 1 where this kernel needs mode 0 \(GEMM\)"),
    "reset changes": (
        reset_changes,
        r"micro-op 1 differs .*\(1, MIN, 0, 0\), not \(0, MIN, 0, 0\)",
    ),
    "dst": (lambda r: gemm_uop(r, 2048), r"dst_index = 2048 is outside 0\.\.2047, .* of ACC"),
    "src": (lambda r: gemm_uop(r, 0, src=-1), r"src_index = -1 is outside 0\.\.2047, .* of INP"),
    "wgt": (
        lambda r: gemm_uop(r, 0, wgt=1024),
        r"wgt_index = 1024 is outside 0\.\.1023, .* of WGT",
    ),
    "reach": (past_the_end_by_loops, r"dst reaches entry 2048 of ACC, which has 0\.\.2047"),
    "nested": (lambda r: r.push_gemm_op(9, nested(0)), "push_gemm_op inside a record function"),
    "too long": (
        lambda r: [gemm_uop(r, i % 2048) for i in range(8193)],
        "the kernel has 8193 micro-ops, the micro-op memory holds 8192",
    ),
}


@pytest.mark.parametrize("case", BAD_GEMMS)
def test_bad_gemm_kernels_are_refused_and_leave_nothing_behind(case, runtime):
    record, message = BAD_GEMMS[case]
    with pytest.raises(RuntimeCallError, match=message):
        runtime.push_gemm_op("bad", record)
    runtime.push_gemm_op("good", lambda r: gemm_uop(r, 0))
    assert len(launched(runtime)) == 2 + 4


def alu_settings_change(**change):
    def record(r):
        alu_uop(r, 0, use_imm=1)
        alu_uop(r, 1, **{"use_imm": 1, **change})

    return record


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (lambda r: gemm_uop(r, 0), r"mode = 0 where this kernel needs mode 1 \(ALU\)"),
        (alu_settings_change(op=AluOp.MAX), "micro-op 1 differs"),
        (alu_settings_change(use_imm=0), "micro-op 1 differs"),
        (alu_settings_change(imm=1), "micro-op 1 differs"),
        (lambda r: alu_uop(r, 0, op=5), r"opcode = 5 is no ALU operation \(MIN 0, .*MUL 4\)"),
        (lambda r: alu_uop(r, 0, use_imm=1, imm=1 << 15), "imm_val = 32768 does not fit 16 bits"),
        (lambda r: alu_uop(r, 0, use_imm=1, imm=-(1 << 15) - 1), "imm_val = -32769 does not fit"),
        (lambda r: alu_uop(r, 0, src=2048), r"src_index = 2048 is outside 0\.\.2047, .* of ACC"),
    ],
)
def test_bad_alu_kernels_are_refused(record, message, runtime):
    with pytest.raises(RuntimeCallError, match=message):
        runtime.push_alu_op(0, record)


@pytest.mark.parametrize("call", ["uop_push", "uop_loop_begin", "uop_loop_end"])
def test_uop_calls_need_a_recording(call, runtime):
    arguments = {"uop_push": [0] * 8, "uop_loop_begin": [1, 0, 0, 0], "uop_loop_end": []}[call]
    with pytest.raises(RuntimeCallError, match=f"{call} outside a kernel"):
        getattr(runtime, call)(*arguments)


def test_immediate_extremes_reach_the_record(runtime):
    for imm in (-(1 << 15), (1 << 15) - 1):
        runtime.push_alu_op(imm, lambda r, imm=imm: alu_uop(r, 0, use_imm=1, imm=imm))
    assert launched(runtime)["imm"][[1, 3]].tolist() == [-(1 << 15), (1 << 15) - 1]


@pytest.mark.parametrize("distance", [1, 2, 3])
def test_the_published_hazard_is_refused_on_request_only(distance, recorder):
    def record(r):
        for i in [*range(distance), 0]:
            gemm_uop(r, i)

    Runtime(recorder).push_gemm_op(0, record)
    portable = Runtime(recorder, portable=True)
    if distance < 3:
        with pytest.raises(RuntimeCallError, match=f"micro-op {distance} has dst_index = 0"):
            portable.push_gemm_op(0, record)
    else:
        portable.push_gemm_op(0, record)


def test_a_kernel_is_recorded_once_per_key(runtime):
    recorded = []

    def record(r):
        recorded.append(1)
        gemm_uop(r, 0)

    for key in ("a", "a", "b", "a"):
        runtime.push_gemm_op(key, record)
    assert len(recorded) == 2
    table = launched(runtime)
    assert (table["opcode"] == Opcode.GEMM).sum() == 4


def test_kernels_of_equal_content_are_one(runtime):
    for key in range(3):
        runtime.push_gemm_op(key, lambda r: gemm_uop(r, 1, 2, 3))
    runtime.push_gemm_op("reset", lambda r: gemm_uop(r, 1, 2, 3, reset=1))
    table = launched(runtime)
    loads = table[(table["opcode"] == Opcode.LOAD) & (table["x_size"] > 0)]
    assert loads["sram_base"].tolist() == [0, 1]
    assert table["uop_begin"][table["opcode"] == Opcode.GEMM].tolist() == [0, 0, 0, 1]


def test_kernels_are_loaded_again_after_each_launch_as_published(runtime):
    for _ in range(2):
        runtime.push_gemm_op(0, lambda r: gemm_uop(r, 0))
        assert (launched(runtime)["opcode"] == Opcode.GEMM).sum() == 1
    first, second = runtime.device.tables
    assert first.tolist() == second.tolist()


def test_kernels_may_stay_in_sram_across_launches(recorder):
    runtime = Runtime(recorder, keep_uop_cache=True)
    for _ in range(2):
        runtime.push_gemm_op(0, lambda r: gemm_uop(r, 0))
        runtime.push_gemm_op(1, lambda r: [gemm_uop(r, i) for i in range(2)])
        runtime.synchronize()
    first, second = recorder.tables
    assert len(first) == len(second) + 2
    assert second["uop_begin"][:2].tolist() == [0, 1]
    assert second["uop_end"][:2].tolist() == [1, 3]


def image_of(device, record):
    address = 4 * int(record["dram_base"])
    return device.read(address, 4 * int(record["x_size"])).view("<u4")


@pytest.mark.parametrize("seed", range(5))
def test_loads_never_point_at_stale_micro_ops(seed, make_recorder):
    """Kernels of random size in a tiny memory: every LOAD finds its kernel, after any number."""
    machine = load_machine("tiny")
    capacity, entries = machine.depth(Buffer.UOP), machine.depth(Buffer.ACC)
    device = make_recorder(machine)
    runtime = Runtime(device)
    rng = np.random.default_rng(seed)
    kernels = [
        [(int(d), 0, 0) for d in rng.integers(0, entries, rng.integers(1, capacity + 1))]
        for _ in range(30)
    ]
    sram = np.zeros(capacity, np.uint32)
    for _ in range(5):
        order = rng.integers(0, len(kernels), 40).tolist()
        for number in order:
            runtime.push_gemm_op(
                number, lambda r, n=number: [gemm_uop(r, *uop) for uop in kernels[n]]
            )
        table = launched(runtime)
        ran = []
        for record in table:
            if record["opcode"] == Opcode.LOAD and record["x_size"]:
                begin = int(record["sram_base"])
                sram[begin : begin + record["x_size"]] = image_of(device, record)
            elif record["opcode"] == Opcode.GEMM:
                words = sram[record["uop_begin"] : record["uop_end"]]
                ran.append([tuple(row) for row in decode_uops(words, machine).tolist()])
        assert ran == [kernels[number] for number in order], f"seed {seed}"


def test_a_kernel_as_large_as_the_memory_fits(runtime, machine):
    depth = machine.depth(Buffer.UOP)
    runtime.push_gemm_op(0, lambda r: [gemm_uop(r, i % 2048) for i in range(depth)])
    runtime.push_gemm_op(1, lambda r: gemm_uop(r, 5))
    table = launched(runtime)
    assert table["x_size"][0] == table["uop_end"][1] == depth
    assert table["sram_base"][2] == 0


class SlowCache:
    """The replacement rule on an array of SRAM words: who owns each, and when was it used."""

    def __init__(self, capacity):
        self.owner = [None] * capacity
        self.used = {}
        self.clock = 0

    def use(self, number, size):
        self.clock += 1
        absent = number not in self.owner
        if absent:
            while (begin := self.gap(size)) is None:
                oldest = min(set(self.owner) - {None}, key=self.used.__getitem__)
                self.owner = [None if owner == oldest else owner for owner in self.owner]
            self.owner[begin : begin + size] = [number] * size
        self.used[number] = self.clock
        return self.owner.index(number), absent

    def gap(self, size):
        for begin in range(len(self.owner) - size + 1):
            if not any(o is not None for o in self.owner[begin : begin + size]):
                return begin
        return None


@pytest.mark.parametrize("seed", range(20))
def test_the_cache_against_its_rule_stated_slowly(seed):
    rng = np.random.default_rng(seed)
    capacity = int(rng.integers(1, 40))
    sizes = rng.integers(1, capacity + 1, 12) if seed % 2 else rng.integers(1, 4, 12) % capacity + 1
    fast, slow = UopCache(capacity), SlowCache(capacity)
    for step in range(400):
        number = int(rng.integers(0, 12))
        size = int(sizes[number])
        placement, absent = fast.use(number, size)
        want = slow.use(number, size)
        assert (placement.begin, absent) == want, f"seed {seed}, step {step}"
        assert placement.end == placement.begin + size
        if rng.integers(0, 100) == 0:
            fast.clear()
            slow = SlowCache(capacity)


# -- extensions ---------------------------------------------------------------------------------


HOW = Requantize(shift=8, low=LowKind.NEGATIVE, high=127)


def requantize_uop(runtime, dst, bias=None, how=HOW.packed):
    alu_uop(runtime, dst, src=bias or 0, op=FusedOp.REQUANTIZE, use_imm=bias is None, imm=how)


def test_a_gemm_overwrites(extended):
    extended.push_gemm_op(0, lambda r: gemm_uop(r, 1, 2, 3, reset=2))
    extended.push_gemm_op(1, lambda r: gemm_uop(r, 1, 2, 3))
    extended.push_gemm_op(2, lambda r: gemm_uop(r, 1, 2, 3, reset=1))
    table = launched(extended)
    products = table[table["opcode"] == Opcode.GEMM]
    assert products["overwrite"].tolist() == [1, 0, 0]
    assert products["reset"].tolist() == [0, 0, 1]


@pytest.mark.parametrize("reset", [2, 3])
def test_machines_overwrite_only_where_they_can(reset, runtime, extended):
    with pytest.raises(RuntimeCallError, match=rf"reset_out = {reset} is unknown .*RESET 1\)"):
        runtime.push_gemm_op(0, lambda r: gemm_uop(r, 0, reset=reset))
    with pytest.raises(RuntimeCallError, match=r"reset_out = 3 is unknown .*OVERWRITE 2\)"):
        extended.push_gemm_op(0, lambda r: gemm_uop(r, 0, reset=3))


def test_requantize_reaches_the_record(extended):
    def record(r):
        r.uop_loop_begin(4, 49, 1, 0)
        r.uop_loop_begin(49, 1, 0, 0)
        requantize_uop(r, 32, bias=3)
        r.uop_loop_end()
        r.uop_loop_end()

    extended.push_alu_op(0, record)
    extended.push_alu_op(1, lambda r: requantize_uop(r, 5))
    first, second = (r for r in launched(extended) if r["opcode"] == Opcode.ALU)
    assert loop_fields(first) == {"out": (4, 49, 1, 0), "in": (49, 1, 0, 0)}
    for record in (first, second):
        assert [record[n] for n in ("alu_op", "shift", "low_kind", "high", "imm")] == [
            5,
            8,
            1,
            127,
            0,
        ]
    assert (first["use_imm"], second["use_imm"]) == (0, 1)


def moves_its_bias_inside(r):
    r.uop_loop_begin(4, 1, 0, 0)
    r.uop_loop_begin(4, 4, 1, 0)
    requantize_uop(r, 0, bias=3)


def moves_its_bias_in_its_only_loop(r):
    r.uop_loop_begin(4, 1, 1, 0)
    requantize_uop(r, 0, bias=3)


def has_two_biases(r):
    requantize_uop(r, 0, bias=3)
    requantize_uop(r, 1, bias=4)


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (moves_its_bias_inside, r"the inner loop of a REQUANTIZE has src_factor = 1.*exchange"),
        (moves_its_bias_in_its_only_loop, r"only loop .* has src_factor = 1.*open a second loop"),
        (has_two_biases, r"micro-op 1 of a REQUANTIZE has src_index = 4, the first one 3"),
        (lambda r: requantize_uop(r, 0, how=1 << 15), r"imm_val = 32768 of a REQUANTIZE"),
    ],
)
def test_what_a_requantize_cannot_do_is_refused(record, message, extended):
    with pytest.raises(RuntimeCallError, match=message):
        extended.push_alu_op(0, record)
