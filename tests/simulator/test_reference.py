"""The meaning of each instruction, against formulas written out here."""

import machines
import numpy as np
import pytest
from images import Image

from simulator.reference import ReferenceState, run
from vta_isa.enums import AluOp, Buffer, Stage
from vta_isa.errors import StreamError
from vta_isa.insn import alu, finish, gemm, load, noop, records, store


def execute(image, insns, state=None):
    """DRAM and state after ``insns`` and a FINISH."""
    state = state or ReferenceState(image.machine)
    dram = image.dram()
    run(records([*insns, finish()]), dram, state)
    return dram, state


def scalars(rng, machine, buffer, entries):
    low, high = machine.scalar_range(buffer)
    shape = (entries, *machine.entry_shape(buffer))
    return rng.integers(low, high, shape, dtype=np.int64, endpoint=True)


def signed(value, bits):
    """The low ``bits`` of an exact integer as two's complement."""
    value %= 1 << bits
    return value - (1 << bits) if value >> (bits - 1) else value


def to_bits(values, bits):
    return np.array([signed(int(v), bits) for v in np.ravel(values)]).reshape(np.shape(values))


def load_acc(image, values, sram_base=0):
    base = image.place(Buffer.ACC, values)
    return load(Buffer.ACC, sram_base=sram_base, dram_base=base, x_size=len(values))


@pytest.fixture
def rng():
    return np.random.default_rng(20260)


@pytest.fixture
def block8():
    return machines.machine("block8")


# -- GEMM ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", machines.NAMES)
def test_gemm_adds_the_matrix_product_and_wraps(name, rng):
    machine = machines.machine(name)
    image = Image(machine)
    inp, wgt, acc = (scalars(rng, machine, b, 2) for b in (Buffer.INP, Buffer.WGT, Buffer.ACC))
    program = [
        load(Buffer.INP, sram_base=1, dram_base=image.place(Buffer.INP, inp), x_size=2),
        load(Buffer.WGT, sram_base=2, dram_base=image.place(Buffer.WGT, wgt), x_size=2),
        load_acc(image, acc, sram_base=3),
        load(Buffer.UOP, sram_base=0, dram_base=image.place_uops([(3, 1, 2)]), x_size=1),
        # dst 3 3 4 4, src 1 2 1 2, wgt 2 3 2 3: both products of both rows, twice into each entry
        gemm(uops=(0, 1), iters=(2, 2), dst=(1, 0), src=(0, 1), wgt=(0, 1)),
    ]
    _, state = execute(image, program)
    bits = machine.bits(Buffer.ACC)
    total = sum(inp[k] @ wgt[k].T for k in range(2))
    np.testing.assert_array_equal(state.acc[3], to_bits(acc[0] + total, bits))
    np.testing.assert_array_equal(state.acc[4], to_bits(acc[1] + total, bits))
    narrow = to_bits(state.acc, machine.bits(Buffer.OUT))
    np.testing.assert_array_equal(state.sram(Buffer.OUT), narrow)


@pytest.mark.parametrize("start", [(1 << 31) - 1, -(1 << 31)])
def test_gemm_wraps_at_both_ends_of_the_accumulator(start, block8):
    image = Image(block8)
    sign = 1 if start > 0 else -1
    program = [
        load(
            Buffer.INP,
            sram_base=0,
            dram_base=image.place(Buffer.INP, np.full((1, 1, 8), sign)),
            x_size=1,
        ),
        load(
            Buffer.WGT,
            sram_base=0,
            dram_base=image.place(Buffer.WGT, np.ones((1, 8, 8), int)),
            x_size=1,
        ),
        load_acc(image, np.full((1, 1, 8), start)),
        gemm(uops=(0, 1)),
    ]
    _, state = execute(image, program)
    assert state.acc[0].tolist() == [[-start - 1 + sign * 7] * 8]


def test_reset_clears_and_ignores_operands_out_of_range(block8, rng):
    machine = machines.machine("many-inputs")  # a uop's src may exceed ACC, but not INP
    image = Image(machine)
    acc = scalars(rng, machine, Buffer.ACC, 4)
    highest = machine.depth(Buffer.WGT) - 1
    program = [
        load_acc(image, acc),
        load(Buffer.UOP, sram_base=0, dram_base=image.place_uops([(1, 5, highest)]), x_size=1),
        gemm(uops=(0, 1), iters=(1, 2), dst=(0, 1), wgt=(0, 1), reset=True),
    ]
    _, state = execute(image, program)
    np.testing.assert_array_equal(state.acc[[0, 3]], acc[[0, 3]])
    assert not state.acc[1:3].any()
    assert not state.out[1:3].any()


@pytest.mark.parametrize(
    "empty", [{"iters": (0, 3)}, {"iters": (3, 0)}, {"uops": (1, 1)}, {"uops": (1, 0)}]
)
@pytest.mark.parametrize("kind", ["gemm", "reset", "alu"])
def test_empty_loops_and_ranges_do_nothing_and_check_nothing(kind, empty, block8, rng):
    image = Image(block8)
    acc = scalars(rng, block8, Buffer.ACC, 4)
    last = block8.depth(Buffer.ACC) - 1
    shape = {"uops": (0, 1), "iters": (2, 2), "dst": (last, last)} | empty
    insn = alu(AluOp.ADD, imm=1, **shape) if kind == "alu" else gemm(reset=kind == "reset", **shape)
    _, state = execute(image, [load_acc(image, acc), insn])
    np.testing.assert_array_equal(state.acc[:4], acc)


# -- ALU ----------------------------------------------------------------------------------------


def exact(op, x, y):
    """The ISA's table in Python integers."""
    amount = max(-31, min(31, y))
    return {
        AluOp.MIN: min(x, y),
        AluOp.MAX: max(x, y),
        AluOp.ADD: x + y,
        AluOp.SHR: x >> amount if amount >= 0 else x << -amount,
        AluOp.MUL: x * y,
    }[op]


def edge_values(bits):
    top = 1 << (bits - 1)
    small = [0, 1, 2, 7, 15, 16, 30, 31, 32, 33, 63, 64, 100]
    return [*small, *(-v for v in small), top - 1, top - 2, -top, 1 - top, top >> 1, 12345, -12345]


@pytest.mark.parametrize("name", ["block8", "int16-acc", "batch2"])
@pytest.mark.parametrize("imm", [-(1 << 15), -33, -32, -31, -1, 0, 1, 31, 32, 33, (1 << 15) - 1])
@pytest.mark.parametrize("op", AluOp)
def test_alu_with_immediate(op, imm, name):
    machine = machines.machine(name)
    bits = machine.bits(Buffer.ACC)
    shape = machine.entry_shape(Buffer.ACC)
    acc = np.resize(edge_values(bits), (4, *shape))
    image = Image(machine)
    insn = alu(op, uops=(0, 1), iters=(1, 4), dst=(0, 1), imm=imm)
    _, state = execute(image, [load_acc(image, acc), insn])
    want = [signed(exact(op, int(x), imm), bits) for x in acc.ravel()]
    assert state.acc[:4].ravel().tolist() == want


@pytest.mark.parametrize("name", ["block8", "int16-acc"])
@pytest.mark.parametrize("op", AluOp)
def test_alu_with_every_pair_of_edge_values(op, name):
    machine = machines.machine(name)
    bits = machine.bits(Buffer.ACC)
    shape = machine.entry_shape(Buffer.ACC)
    image = Image(machine)
    state = ReferenceState(machine)
    x = np.resize(edge_values(bits), (4, *shape))
    for y in edge_values(bits):
        both = np.concatenate([x, np.full_like(x, y)])
        insn = alu(op, uops=(0, 1), iters=(1, 4), dst=(0, 1), src=(0, 1))
        uop = load(Buffer.UOP, sram_base=0, dram_base=image.place_uops([(0, 4, 0)]), x_size=1)
        execute(image, [uop, load_acc(image, both), insn], state)
        want = [signed(exact(op, int(v), y), bits) for v in x.ravel()]
        assert state.acc[:4].ravel().tolist() == want, y
        np.testing.assert_array_equal(state.acc[4:8], both[4:], err_msg="src must not change")


def test_alu_iterations_see_what_earlier_ones_wrote(block8):
    image = Image(block8)
    acc = np.repeat(np.arange(1, 6), 8).reshape(5, 1, 8)
    program = [
        load_acc(image, acc),
        load(Buffer.UOP, sram_base=0, dram_base=image.place_uops([(1, 0, 0)]), x_size=1),
        alu(AluOp.ADD, uops=(0, 1), iters=(1, 4), dst=(0, 1), src=(0, 1)),
    ]
    _, state = execute(image, program)
    assert state.acc[:5, 0, 0].tolist() == [1, 3, 6, 10, 15]


def test_the_micro_op_runs_fastest_then_the_inner_loop(block8):
    image = Image(block8)
    program = [
        load_acc(image, np.ones((2, 1, 8), int)),
        load(Buffer.UOP, sram_base=0, dram_base=image.place_uops([(0, 1, 0), (1, 0, 0)]), x_size=2),
        alu(AluOp.ADD, uops=(0, 2), iters=(2, 1)),  # Fibonacci, if and only if uops alternate
    ]
    _, state = execute(image, program)
    assert state.acc[:2, 0, 0].tolist() == [5, 8]


def test_the_reset_bit_of_an_alu_instruction_is_ignored(block8):
    image = Image(block8)
    insn = alu(AluOp.ADD, uops=(0, 1), imm=3) | {"reset": 1}
    _, state = execute(image, [insn])
    assert (state.acc[0] == 3).all()


# -- LOAD and STORE -----------------------------------------------------------------------------

PADS = [(0, 0, 0, 0), (1, 2, 3, 4), (0, 0, 15, 0), (15, 0, 0, 0), (0, 1, 0, 2)]


@pytest.mark.parametrize("pads", PADS)
@pytest.mark.parametrize("stride", [0, 1, 3, 5])
@pytest.mark.parametrize("rows", [0, 1, 4])
@pytest.mark.parametrize(
    "buffer", [Buffer.UOP, Buffer.INP, Buffer.WGT, Buffer.ACC, Buffer.ACC_8BIT]
)
def test_load_puts_zeros_around_the_core(buffer, rows, stride, pads, rng):
    machine = machines.machine("default")
    top, bottom, left, right = pads
    columns, base = 3, 5
    if buffer == Buffer.UOP:
        source = rng.integers(1, 1 << 32, 40, dtype=np.uint64).astype(np.uint32)
    else:
        source = scalars(rng, machine, buffer, 40)
    image = Image(machine)
    if buffer == Buffer.UOP:
        start = image.place(Buffer.UOP, source.reshape(-1, 1, 1))
    else:
        start = image.place(buffer, source)
    state = ReferenceState(machine)
    target = state.sram(Buffer.ACC if buffer == Buffer.ACC_8BIT else buffer)
    target[...] = 77
    execute(
        image,
        [
            load(
                buffer,
                sram_base=base,
                dram_base=start + 2,
                y_size=rows,
                x_size=columns,
                x_stride=stride,
                y_pad=(top, bottom),
                x_pad=(left, right),
            )
        ],
        state,
    )
    core = np.zeros((rows, columns, *target.shape[1:]), dtype=np.int64)
    for row in range(rows):
        core[row] = source[2 + row * stride : 2 + row * stride + columns]
    pad = [(top, bottom), (left, right), *[(0, 0)] * (target.ndim - 1)]
    want = np.pad(core, pad).reshape(-1, *target.shape[1:])
    np.testing.assert_array_equal(target[base : base + len(want)], want)
    assert (target[:base] == 77).all()
    assert (target[base + len(want) :] == 77).all()


@pytest.mark.parametrize("buffer", [Buffer.UOP, Buffer.INP, Buffer.ACC])
def test_a_load_without_columns_writes_nothing_and_checks_nothing(buffer, block8):
    state = ReferenceState(block8)
    state.sram(buffer)[...] = 7
    insn = load(buffer, sram_base=0xFFFF, dram_base=0xFFFFFFFF, x_size=0, y_size=9,
                y_pad=(15, 15), x_pad=(15, 15))  # fmt: skip
    execute(Image(block8), [insn], state)
    assert (state.sram(buffer) == 7).all()


def test_a_load_of_padding_alone_may_point_anywhere_in_dram(block8):
    state = ReferenceState(block8)
    state.acc[...] = 7
    insn = load(Buffer.ACC, sram_base=1, dram_base=0xFFFFFFFF, x_size=2, y_size=0, y_pad=(1, 0))
    execute(Image(block8), [insn], state)
    assert state.acc[:4, 0, 0].tolist() == [7, 0, 0, 7]


@pytest.mark.parametrize("name", ["default", "int4", "int16", "batch2", "batch4-wide-out"])
def test_store_keeps_the_low_bits(name, rng):
    machine = machines.machine(name)
    image = Image(machine)
    acc = scalars(rng, machine, Buffer.ACC, 4)
    out = image.reserve(Buffer.OUT, 6)
    dram, state = execute(
        image, [load_acc(image, acc, 1), store(sram_base=1, dram_base=out + 1, x_size=4)]
    )
    want = to_bits(acc, machine.bits(Buffer.OUT))
    np.testing.assert_array_equal(image.read(dram, Buffer.OUT, out + 1, 4), want)
    unit = machine.entry_bytes(Buffer.OUT)
    untouched = np.ones(len(dram), dtype=bool)
    untouched[(out + 1) * unit : (out + 5) * unit] = False
    np.testing.assert_array_equal(dram[untouched], image.dram()[untouched])
    np.testing.assert_array_equal(state.acc[1:5], acc)


@pytest.mark.parametrize(
    ("stride", "want"), [(4, [0, 1, -1, -1, 2, 3]), (1, [0, 2, 3]), (0, [2, 3])]
)
def test_store_rows_lie_a_stride_apart_and_the_later_row_stays(stride, want, block8):
    image = Image(block8, filler=0xFF)
    out = image.reserve(Buffer.OUT, 8)
    acc = np.repeat(np.arange(4), 8).reshape(4, 1, 8)
    insn = store(sram_base=0, dram_base=out, y_size=2, x_size=2, x_stride=stride)
    dram, _ = execute(image, [load_acc(image, acc), insn])
    got = image.read(dram, Buffer.OUT, out, 8)[:, 0, 0].tolist()
    assert got == want + [-1] * (8 - len(want))


def test_a_store_is_seen_by_later_loads(block8):
    image = Image(block8)
    out = image.reserve(Buffer.OUT, 1)
    program = [
        load_acc(image, np.full((1, 1, 8), 0x1234), 0) | {"push_next": 1},
        store(sram_base=0, dram_base=out, x_size=1, pop_prev=True, push_prev=True),
        noop(Stage.COMPUTE, pop_next=True, push_prev=True),
        load(Buffer.INP, sram_base=0, dram_base=out, x_size=1, pop_next=True),
    ]
    _, state = execute(image, program)
    assert state.inp[0].tolist() == [[0x34] * 8]


# -- launches -----------------------------------------------------------------------------------


def test_memories_and_tokens_persist_across_launches(block8):
    image = Image(block8)
    state = ReferenceState(block8)
    out = image.reserve(Buffer.OUT, 1)
    acc = load_acc(image, np.full((1, 1, 8), 5)) | {"push_next": 1}
    execute(image, [acc, noop(Stage.LOAD, push_next=True)], state)
    assert state.tokens == (1, 0, 1, 0)
    last = [store(sram_base=0, dram_base=out, x_size=1, pop_prev=True, push_prev=True)]
    dram = image.dram()
    run(records([*last, finish(pop_prev=True, pop_next=True)]), dram, state)
    assert state.tokens == (0, 0, 0, 0)
    assert image.read(dram, Buffer.OUT, out, 1).tolist() == [[[5] * 8]]


def test_tokens_may_demand_another_order_than_the_program(block8):
    image = Image(block8)
    values = image.place(Buffer.OUT, np.full((1, 1, 8), 9))
    program = [
        load(Buffer.ACC_8BIT, sram_base=0, dram_base=values, x_size=1, pop_next=True),
        alu(AluOp.ADD, uops=(0, 1), imm=4, push_next=True),
        store(sram_base=0, dram_base=values, x_size=1, push_prev=True),
        store(sram_base=0, dram_base=values, x_size=1, pop_prev=True),
    ]
    dram, _ = execute(image, program)  # store, load of what it stored, add, store
    assert image.read(dram, Buffer.OUT, values, 1).tolist() == [[[4] * 8]]


def test_a_fault_leaves_memory_and_state_as_they_were(block8):
    image = Image(block8)
    out = image.reserve(Buffer.OUT, 1)
    depth = block8.depth(Buffer.ACC)
    state = ReferenceState(block8)
    dram = image.dram()
    program = [
        alu(AluOp.ADD, uops=(0, 1), imm=4, push_next=True),
        store(sram_base=0, dram_base=out, x_size=1, pop_prev=True),
        alu(AluOp.ADD, uops=(0, 1), iters=(1, 2), dst=(0, depth - 1), imm=4),
        alu(AluOp.ADD, uops=(0, 2), iters=(1, 2), dst=(0, depth - 1), src=(0, depth - 1)),
        load(Buffer.UOP, sram_base=0, dram_base=0, x_size=1),
        alu(AluOp.ADD, uops=(0, 1), iters=(3, 1), dst=(depth - 1, 0), imm=4),
        finish(),
    ]
    with pytest.raises(StreamError) as caught:
        run(records(program), dram, state)
    assert caught.value.insn == 5
    np.testing.assert_array_equal(dram, image.dram())
    assert not state.acc.any()
    assert not state.uop.any()
    assert state.tokens == (0, 0, 0, 0)


def test_an_empty_memory_image_runs_what_needs_none(block8):
    run(records([alu(AluOp.ADD, uops=(0, 1), imm=1), finish()]), np.zeros(0, np.uint8),
        ReferenceState(block8))  # fmt: skip
