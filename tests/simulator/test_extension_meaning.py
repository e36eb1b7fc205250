"""What the instructions of extensions compute and touch, on every engine."""

import machines
import numpy as np
import pytest
from images import Image

from simulator.checker import Checker, Code, check
from simulator.checks import check_program
from simulator.hazards import find_hazards
from simulator.kernels import Kernels
from simulator.kernels.tiers import runnable_tiers
from simulator.reference import ReferenceState, run
from vta_isa.encoding import encode_stream
from vta_isa.enums import AluOp, Buffer, LowKind
from vta_isa.errors import StreamError
from vta_isa.insn import alu, finish, gemm, load, records, requantize, store

NAMES = ("extended", "extended-tiny")
SEED = 20261


def engines(name):
    return ["numpy", *(tier.name for tier in runnable_tiers(machines.machine(name)))]


CASES = [(name, engine) for name in NAMES for engine in ("reference", *engines(name))]


def accumulators(machine, engine, image, insns):
    """ACC after a launch."""
    table, dram = records([*insns, finish()]), image.dram()
    if engine == "reference":
        state = ReferenceState(machine)
        run(table, dram, state)
        return state.acc
    kernels = Kernels(machine, engine)
    kernels.run(table, dram)
    return kernels.sram(Buffer.ACC)


def scalars(rng, machine, buffer, entries):
    low, high = machine.scalar_range(buffer)
    shape = (entries, *machine.entry_shape(buffer))
    return rng.integers(low, high, shape, dtype=np.int64, endpoint=True)


def signed(value, bits):
    """The low ``bits`` of an exact integer as two's complement."""
    value = int(value) % (1 << bits)
    return value - (1 << bits) if value >> (bits - 1) else value


class Bench:
    """Memories full of random numbers, and programs that begin with loading them."""

    def __init__(self, name, uops):
        self.machine = machines.machine(name)
        self.rng = np.random.default_rng(SEED)
        self.image = Image(self.machine)
        self.insns = []
        count = min(16, *(self.machine.depth(b) for b in (Buffer.INP, Buffer.WGT, Buffer.ACC)))
        self.content = {}
        for buffer in (Buffer.INP, Buffer.WGT, Buffer.ACC):
            self.content[buffer] = scalars(self.rng, self.machine, buffer, count)
            self.load(buffer, self.image.place(buffer, self.content[buffer]), count)
        self.load(Buffer.UOP, self.image.place_uops(uops), len(uops))

    def load(self, buffer, base, count):
        self.insns.append(load(buffer, sram_base=0, dram_base=base, x_size=count))

    def product(self, src, wgt):
        """Exact sums of INP[src] x WGT[wgt], cut to an accumulator."""
        bits = self.machine.bits(Buffer.ACC)
        inp, weights = self.content[Buffer.INP][src], self.content[Buffer.WGT][wgt]
        return [
            [signed(sum(int(a) * int(b) for a, b in zip(x, w, strict=True)), bits) for w in weights]
            for x in inp
        ]


@pytest.mark.parametrize(("name", "engine"), CASES)
@pytest.mark.parametrize(
    ("uops", "iters", "dst", "src", "wgt"),
    [
        ([(1, 2, 3)], (1, 1), (0, 0), (0, 0), (0, 0)),
        ([(1, 0, 0)], (2, 3), (4, 1), (1, 2), (3, 1)),  # each destination once, outer steps over
        ([(0, 0, 0)], (3, 2), (1, 3), (1, 1), (0, 2)),  # inner steps over
        ([(2, 1, 0)], (1, 5), (9, 1), (0, 1), (0, 0)),
        ([(2, 1, 0)], (5, 1), (1, 9), (1, 0), (0, 0)),
        ([(2, 0, 0)], (2, 4), (0, 1), (1, 1), (1, 0)),  # the outer loop writes the same again
        ([(2, 0, 0)], (3, 4), (2, 1), (1, 1), (1, 0)),  # overlaps
        ([(2, 0, 0)], (4, 3), (1, 0), (1, 1), (0, 2)),
        ([(2, 0, 1), (3, 1, 0)], (2, 2), (4, 2), (1, 1), (1, 2)),
        ([(2, 0, 1), (2, 1, 2), (2, 2, 3)], (1, 2), (0, 1), (0, 1), (0, 1)),  # the last one stays
    ],
)
def test_overwrite_keeps_the_product_of_the_last_iteration(
    name, engine, uops, iters, dst, src, wgt
):
    bench = Bench(name, uops)
    expected = bench.content[Buffer.ACC].copy()
    for i in range(iters[0]):
        for j in range(iters[1]):
            for d, s, w in uops:
                d, s, w = (
                    start + i * factor[0] + j * factor[1]
                    for start, factor in ((d, dst), (s, src), (w, wgt))
                )
                expected[d] = bench.product(s, w)
    insn = gemm(uops=(0, len(uops)), iters=iters, dst=dst, src=src, wgt=wgt, overwrite=True)
    got = accumulators(bench.machine, engine, bench.image, [*bench.insns, insn])
    np.testing.assert_array_equal(got[: len(expected)], expected, err_msg=f"seed {SEED}")


@pytest.mark.parametrize(("name", "engine"), CASES)
def test_overwrite_then_accumulate_is_reset_then_accumulate(name, engine):
    bench = Bench(name, [(0, 0, 0), (0, 4, 2)])
    loops = dict(iters=(2, 3), dst=(3, 1), src=(3, 1), wgt=(1, 0))
    fused = [gemm(uops=(0, 1), **loops, overwrite=True), gemm(uops=(1, 2), **loops)]
    plain = [gemm(uops=(0, 1), **loops, reset=True), gemm(uops=(0, 2), **loops)]
    got, expected = (
        accumulators(bench.machine, engine, bench.image, [*bench.insns, *insns])
        for insns in (fused, plain)
    )
    np.testing.assert_array_equal(got, expected)


def requantized(machine, acc, bias, shift, low, high):
    """The formula, on Python integers."""
    bits = machine.bits(Buffer.ACC)
    return [
        [
            min(max(signed(int(x) + int(b), bits) >> shift, low), high)
            for x, b in zip(row, bias_row, strict=True)
        ]
        for row, bias_row in zip(acc, bias, strict=True)
    ]


@pytest.mark.parametrize(("name", "engine"), CASES)
@pytest.mark.parametrize("shift", [0, 1, 7, 15, 16, 31])
@pytest.mark.parametrize("low", LowKind)
def test_requantize_adds_shifts_and_clips(name, engine, shift, low):
    """Every sign and every bound; accumulators are anything, so that sums wrap."""
    bench = Bench(name, [(0, 12, 0), (1, 3, 0)])
    for high in (0, 1, 127, 0x7FFF):
        bound = {LowKind.ZERO: 0, LowKind.NEGATIVE: -high, LowKind.COMPLEMENT: -high - 1}[low]
        for biased in (False, True):
            acc = bench.content[Buffer.ACC].copy()
            expected = acc.copy()
            for outer in range(2):
                bias = acc[12 + outer] if biased else np.zeros_like(acc[0])
                for entry in range(6 * outer, 6 * outer + 6):
                    expected[entry] = requantized(
                        bench.machine, acc[entry], bias, shift, bound, high
                    )
            insn = requantize(
                uops=(0, 2), iters=(2, 3), dst=(6, 2), bias=1 if biased else None, shift=shift,
                low=low, high=high,
            )  # fmt: skip
            got = accumulators(bench.machine, engine, bench.image, [*bench.insns, insn])
            np.testing.assert_array_equal(got[: len(expected)], expected, err_msg=f"seed {SEED}")


@pytest.mark.parametrize(("name", "engine"), CASES)
@pytest.mark.parametrize(
    ("uops", "iters", "dst", "bias"),
    [
        ([(0, 1, 0)], (3, 8), (0, 1), 0),  # its own bias, which the first outer iteration changes
        ([(0, 0, 0)], (2, 7), (7, 1), 1),  # a bias that an earlier outer iteration wrote
        ([(3 + k, 3 + k, 0) for k in range(6)], (2, 3), (0, 0), 0),  # all entries again and again
    ],
)
def test_requantize_reads_each_bias_once_before_it_is_used(name, engine, uops, iters, dst, bias):
    bench = Bench(name, uops)
    shift, high = 1, 0x3FFF
    expected = bench.content[Buffer.ACC].copy()
    for i in range(iters[0]):
        held = expected[uops[0][1] + i * bias].copy()
        for j in range(iters[1]):
            for start, _, _ in uops:
                at = start + i * dst[0] + j * dst[1]
                expected[at] = requantized(
                    bench.machine, expected[at], held, shift, -high - 1, high
                )
    insn = requantize(
        uops=(0, len(uops)), iters=iters, dst=dst, bias=bias, shift=shift,
        low=LowKind.COMPLEMENT, high=high,
    )  # fmt: skip
    got = accumulators(bench.machine, engine, bench.image, [*bench.insns, insn])
    np.testing.assert_array_equal(got[: len(expected)], expected, err_msg=f"seed {SEED}")


@pytest.mark.parametrize("name", NAMES)
def test_indices_past_the_end(name):
    """Of REQUANTIZE the src of the first micro-op counts, and of no other."""
    machine = machines.machine(name)
    depth = machine.depth(Buffer.ACC)
    past = depth - 1
    clip = dict(low=LowKind.ZERO, high=1, uops=(0, 2))
    for engine in ("reference", *engines(name)):
        bench = Bench(name, [(0, past, 0), (1, past, 0)])
        for good in (
            requantize(**clip, iters=(3, 2), dst=(4, 2), bias=None),
            requantize(**clip, iters=(1, 9), dst=(1, 2), bias=1),
            requantize(**clip, iters=(9, 1), dst=(2, 1), bias=0),
        ):
            accumulators(machine, engine, bench.image, [*bench.insns, good])
        bad = requantize(**clip, iters=(2, 1), dst=(2, 0), bias=1)
        with pytest.raises(StreamError, match=f"src index of uop 0 reaches {depth}, .* ACC has"):
            accumulators(machine, engine, bench.image, [*bench.insns, bad])
        bad = requantize(**clip, iters=(1, depth // 2 + 1), dst=(0, 2), bias=None)
        with pytest.raises(StreamError, match=f"dst index of uop 1 reaches {depth + 1}"):
            accumulators(machine, engine, bench.image, [*bench.insns, bad])


REFUSED = [
    ("extended", gemm(uops=(0, 1), reset=True, overwrite=True), r"GEMM\): overwrite = 1 and reset"),
    ("block8", gemm(uops=(0, 1), overwrite=True), r"overwrite = 1, which this machine does not"),
    ("block8", requantize(uops=(0, 1), low=LowKind.ZERO, high=1), r"alu_op = 5 is undefined"),
    (
        "extended",
        requantize(uops=(0, 1), low=LowKind.ZERO, high=1) | {"low_kind": 3},
        r"\(ALU REQUANTIZE\): low_kind = 3 is undefined; kinds are 0 \(ZERO\), 1 \(NEGATIVE\)",
    ),
    ("extended", alu(AluOp.ADD, uops=(0, 1)) | {"alu_op": 6}, r"operations are .* 5 \(REQUANTIZE"),
]


@pytest.mark.parametrize(("name", "insn", "message"), REFUSED)
@pytest.mark.parametrize("changes", [{}, {"iter_out": 0}])
def test_what_is_undefined_is_refused_by_every_engine(name, insn, message, changes):
    machine = machines.machine(name)
    table = records([insn | changes, finish()])
    with pytest.raises(StreamError, match=message):
        check_program(table, machine, 0)
    for engine in engines(name):
        with pytest.raises(StreamError, match=message):
            Kernels(machine, engine).run(table, np.zeros(0, np.uint8))


@pytest.mark.parametrize(("name", "insn", "message"), [r for r in REFUSED if r[0] == "extended"])
def test_what_is_undefined_is_a_finding(name, insn, message):
    machine = machines.machine(name)
    words = encode_stream(records([insn, finish()]), machine)
    (finding,) = (f for f in check(words, machine, np.zeros(0, np.uint8)) if f.insn == 0)
    assert finding.code is Code.UNDEFINED


def findings(bench, *insns):
    table = records([*bench.insns, *insns, finish(pop_next=True)])
    table["push_next"][1] = 1  # LOAD of WGT, behind that of INP
    table["pop_prev"][4] = 1
    words = encode_stream(table, bench.machine)
    return table, [f.code for f in Checker(bench.machine).check(words, bench.image.dram())]


@pytest.mark.parametrize("name", NAMES)
def test_overwriting_reads_no_accumulator(name):
    bench = Bench(name, [(20, 0, 0)])
    base = bench.image.reserve(Buffer.OUT, 4)
    last = store(sram_base=20, dram_base=base, x_size=1, pop_prev=True, push_prev=True)
    flags = dict(push_next=True)
    _, replaced = findings(bench, gemm(uops=(0, 1), overwrite=True, **flags), last)
    _, added = findings(bench, gemm(uops=(0, 1), **flags), last)
    assert (replaced, added) == ([], [Code.NEVER_WRITTEN])


@pytest.mark.parametrize("name", NAMES)
def test_requantize_reads_the_bias_of_its_first_micro_op(name):
    clip = dict(low=LowKind.ZERO, high=1, push_next=True)
    for src, bias, codes in (
        (15, None, []),
        (15, 0, []),
        (14, 1, []),
        (15, 1, [Code.NEVER_WRITTEN]),
        (20, 0, [Code.NEVER_WRITTEN]),
        (20, None, []),
    ):
        bench = Bench(name, [(0, src, 0), (1, 20, 0)])
        base = bench.image.reserve(Buffer.OUT, 4)
        last = store(sram_base=0, dram_base=base, x_size=1, pop_prev=True, push_prev=True)
        insn = requantize(uops=(0, 2), iters=(2, 1), dst=(2, 0), bias=bias, **clip)
        table, found = findings(bench, insn, last)
        assert found == codes, (src, bias)
        assert not find_hazards(table, bench.machine, bench.image.dram())
