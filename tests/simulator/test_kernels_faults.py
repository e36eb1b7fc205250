"""What cannot run is refused with the reference's words, and nothing has changed then."""

import machines
import numpy as np
import pytest
from images import Image
from programs import random_program

from simulator.kernels import Kernels
from simulator.reference import ReferenceState, run
from vta_isa.encoding import encode_uops
from vta_isa.enums import AluOp, Buffer
from vta_isa.errors import DeadlockError, StreamError
from vta_isa.insn import INSN_DTYPE, alu, finish, gemm, load, noop, records, store
from vta_isa.machine import load_machine

ENGINES = ("numpy", "native", "generic")
BUFFERS = [b for b in Buffer if b != Buffer.ACC_8BIT]


def contents(kernels):
    return {buffer: kernels.sram(buffer) for buffer in BUFFERS}


def refuse_alike(machine, table, image, engine, before=()):
    """Both refuse; same class, message and number; nothing changed. Returns the error."""
    state, kernels, dram = ReferenceState(machine), Kernels(machine, engine), image.copy()
    for earlier in before:
        run(earlier, dram.copy(), state)
        kernels.run(earlier, dram.copy())
    with pytest.raises(StreamError) as want:
        run(table, image.copy(), state)
    old, tokens = contents(kernels), kernels.tokens
    with pytest.raises(StreamError) as got:
        kernels.run(table, dram)
    assert str(got.value) == str(want.value)
    assert type(got.value) is type(want.value)
    assert got.value.insn == want.value.insn
    np.testing.assert_array_equal(dram, image)
    for buffer, held in contents(kernels).items():
        np.testing.assert_array_equal(held, old[buffer], err_msg=buffer.name)
    assert kernels.tokens == tokens
    return got.value


TINY = machines.machine("tiny")
INP_DEPTH, ACC_DEPTH, UOP_DEPTH = (TINY.depth(b) for b in (Buffer.INP, Buffer.ACC, Buffer.UOP))
INP_BYTES = TINY.entry_bytes(Buffer.INP)
IMAGE_BYTES = 4096

FAULTS = {
    "undefined opcode": {"opcode": 5},
    "largest opcode": {"opcode": 7},
    "undefined buffer": {"opcode": 0, "buffer": 6, "x_size": 1, "y_size": 1},
    "load of OUT": load(Buffer.OUT, sram_base=0, dram_base=0, x_size=1),
    "store of ACC": {**store(sram_base=0, dram_base=0, x_size=1), "buffer": 3},
    "load past the SRAM": load(Buffer.INP, sram_base=INP_DEPTH, dram_base=0, x_size=1),
    "padding past the SRAM": load(
        Buffer.INP, sram_base=INP_DEPTH - 1, dram_base=0, x_size=1, y_size=0, y_pad=(1, 1)
    ),
    "load past the image": load(
        Buffer.INP, sram_base=0, dram_base=IMAGE_BYTES // INP_BYTES, x_size=1
    ),
    "load far past the image": load(Buffer.WGT, sram_base=0, dram_base=0xFFFFFFFF, x_size=1),
    "last row past the image": load(
        Buffer.INP, sram_base=0, dram_base=0, x_size=1, y_size=2, x_stride=IMAGE_BYTES // INP_BYTES
    ),
    "store past the SRAM": store(sram_base=ACC_DEPTH - 1, dram_base=0, x_size=2),
    "store past the image": store(sram_base=0, dram_base=1 << 20, x_size=1),
    "padded store": {**store(sram_base=0, dram_base=0, x_size=1), "y_pad_after": 1},
    "load with a token from before": load(
        Buffer.INP, sram_base=0, dram_base=0, x_size=0, pop_prev=True
    ),
    "store with a token to after": store(sram_base=0, dram_base=0, x_size=0, push_next=True),
    "undefined operation": {
        **alu(AluOp.ADD, uops=(0, 1), iters=(0, 0), dst=(0, 0), src=(0, 0)),
        "alu_op": 5,
    },
    "micro-ops past the buffer": gemm(
        uops=(0, UOP_DEPTH + 1), iters=(1, 1), dst=(0, 0), src=(0, 0), wgt=(0, 0)
    ),
    "dst past ACC": gemm(
        uops=(0, 1), iters=(ACC_DEPTH + 1, 1), dst=(1, 0), src=(0, 0), wgt=(0, 0)
    ),
    "dst of a reset past ACC": gemm(
        uops=(0, 1), iters=(1, 2), dst=(0, ACC_DEPTH), src=(0, 0), wgt=(0, 0), reset=True
    ),
    "src past INP": gemm(
        uops=(0, 1), iters=(1, 2), dst=(0, 0), src=(0, INP_DEPTH), wgt=(0, 0)
    ),
    "wgt past WGT": gemm(
        uops=(0, 1), iters=(16383, 16383), dst=(0, 0), src=(0, 0), wgt=(1, 1)
    ),
    "src of an operation past ACC": alu(
        AluOp.ADD, uops=(0, 1), iters=(1, 2), dst=(0, 0), src=(0, ACC_DEPTH)
    ),
}  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_reported_as_the_reference_does(engine, fault):
    """Behind instructions that would change DRAM and every SRAM."""
    image = np.random.default_rng(0).integers(0, 128, IMAGE_BYTES, dtype=np.uint8)
    image[:4] = 0  # micro-op 0
    changing = [
        load(Buffer.UOP, sram_base=0, dram_base=0, x_size=1),
        load(Buffer.INP, sram_base=0, dram_base=1, x_size=2),
        load(Buffer.ACC, sram_base=0, dram_base=1, x_size=2),
        store(sram_base=0, dram_base=20, x_size=2),
    ]
    table = records([*changing, FAULTS[fault], finish()])
    assert refuse_alike(TINY, table, image, engine).insn == len(changing)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_largest_uop_of_the_range_is_the_one_that_is_named(engine):
    image = Image(TINY)
    base = image.place_uops([(0, 0, 0), (3, 0, 0), (1, 0, 0)])
    steps = ACC_DEPTH - 2
    table = records(
        [
            load(Buffer.UOP, sram_base=0, dram_base=base, x_size=3),
            gemm(uops=(0, 3), iters=(1, steps), dst=(0, 1), src=(0, 0), wgt=(0, 0)),
            finish(),
        ]
    )
    assert "uop 1 reaches" in str(refuse_alike(TINY, table, image.dram(), engine))


@pytest.mark.parametrize("engine", ENGINES)
def test_uops_from_an_earlier_launch_are_checked_too(engine):
    image = Image(TINY)
    base = image.place_uops([(ACC_DEPTH - 1, 0, 0)])
    earlier = records([load(Buffer.UOP, sram_base=0, dram_base=base, x_size=1), finish()])
    use = alu(AluOp.ADD, uops=(0, 1), iters=(1, 2), dst=(0, 1), src=(0, 0), imm=1)
    refuse_alike(TINY, records([use, finish()]), image.dram(), engine, before=[earlier])


@pytest.mark.parametrize("engine", ENGINES)
def test_a_stream_that_stores_its_own_uops_is_undone_where_they_are_bad(engine):
    """The accumulator's low bytes become a micro-op; the copy in DRAM before was a good one."""
    good, bad = (
        encode_uops(np.array([uop]), TINY).astype("<u4").view(np.uint8).astype(np.int8)
        for uop in ((0, 0, 0), (ACC_DEPTH - 1, 0, 0))
    )
    image = Image(TINY)
    rows, columns = TINY.entry_shape(Buffer.ACC)
    scalars = np.zeros(rows * columns, dtype=np.int64)
    scalars[:4] = bad
    acc = image.place(Buffer.ACC, scalars.reshape(1, rows, columns))
    out = image.reserve(Buffer.OUT, 1)
    uop_base = out * TINY.entry_bytes(Buffer.OUT) // 4
    dram = image.dram()
    dram[uop_base * 4 : uop_base * 4 + 4] = good.view(np.uint8)

    def program(iterations):
        load_uop = load(Buffer.UOP, sram_base=0, dram_base=uop_base, x_size=1)
        use = alu(
            AluOp.ADD, uops=(0, 1), iters=(1, iterations), dst=(0, 1), src=(0, 0), imm=1
        )  # fmt: skip
        insns = [
            load(Buffer.ACC, sram_base=0, dram_base=acc, x_size=1),
            load_uop,
            store(sram_base=0, dram_base=out, x_size=1),
            load_uop,
            use,
            finish(),
        ]
        return records(insns)

    assert refuse_alike(TINY, program(2), dram, engine).insn == 4
    kernels, state = Kernels(TINY, engine), ReferenceState(TINY)
    got, want = dram.copy(), dram.copy()
    kernels.run(program(1), got)
    run(program(1), want, state)
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(kernels.sram(Buffer.ACC), state.acc)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "insns",
    [[], [noop(1)], [finish(), finish()], [finish(), noop(2)]],
    ids=["empty", "no FINISH", "two", "not last"],
)
def test_finish_is_there_once_and_last(engine, insns):
    refuse_alike(TINY, records(insns), np.zeros(16, dtype=np.uint8), engine)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_deadlock_is_reported_as_the_reference_does(engine):
    table = records([noop(2, pop_prev=True), finish()])
    error = refuse_alike(TINY, table, np.zeros(16, dtype=np.uint8), engine)
    assert isinstance(error, DeadlockError)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("seed", range(3))
def test_random_damage_is_reported_as_the_reference_does(engine, seed):
    """One field of one instruction set to its largest value: refused alike, or run alike."""
    rng = np.random.default_rng(seed)
    program = random_program(rng, TINY, size=12)
    largest = {"imm": 0x7FFF, "dram_base": 0xFFFFFFFF, "opcode": 7, "buffer": 7, "alu_op": 7}
    for _ in range(25):
        table = program.table.copy()
        number = int(rng.integers(len(table)))
        field = str(rng.choice(table.dtype.names))
        flag = field.startswith(("pop_", "push_")) or field in ("reset", "use_imm")
        table[number][field] = 1 if flag else largest.get(field, 40)
        state, want = ReferenceState(TINY), program.dram.copy()
        hint = f"seed {seed}, insn {number}, {field}"
        try:
            run(table, want, state)
        except StreamError:
            refuse_alike(TINY, table, program.dram, engine)
            continue
        kernels, got = Kernels(TINY, engine), program.dram.copy()
        kernels.run(table, got)
        np.testing.assert_array_equal(got, want, err_msg=hint)
        np.testing.assert_array_equal(kernels.sram(Buffer.ACC), state.acc, err_msg=hint)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("sram_base", -1),
        ("x_size", 1 << 16),
        ("dram_base", -1),
        ("dram_base", 1 << 32),
        ("imm", 1 << 15),
    ],
)
def test_a_field_no_instruction_can_hold_never_reaches_the_engine(engine, field, value):
    table = records([load(Buffer.INP, sram_base=0, dram_base=0, x_size=1), finish()])
    table[0][field] = value
    with pytest.raises(
        StreamError, match=rf"insn 0: {field} = {value} fits no instruction"
    ) as error:
        Kernels(TINY, engine).run(table, np.zeros(4096, dtype=np.uint8))
    assert error.value.insn == 0


@pytest.mark.parametrize("engine", ENGINES)
def test_arguments_of_another_kind_are_refused(engine):
    kernels, table = Kernels(TINY, engine), records([finish()])
    read_only = np.zeros(16, dtype=np.uint8)
    read_only.flags.writeable = False
    for dram in (read_only, np.zeros(16, dtype=np.int8), np.zeros((4, 4), dtype=np.uint8)):
        with pytest.raises(TypeError, match="dram is a writable"):
            kernels.run(table, dram)
    with pytest.raises(TypeError, match="INSN_DTYPE"):
        kernels.run(np.zeros(4, dtype=np.uint8), np.zeros(16, dtype=np.uint8))
    assert INSN_DTYPE == table.dtype


@pytest.mark.parametrize("engine", ENGINES)
def test_instructions_run_in_token_order_where_program_order_is_not_legal(engine):
    """Compute waits for a load that comes later in the stream; so the load runs first."""
    image = Image(TINY)
    shape = TINY.entry_shape(Buffer.INP)
    inp = image.place(Buffer.INP, np.ones((1, *shape), dtype=np.int64))
    wgt = image.place(Buffer.WGT, np.ones((1, *TINY.entry_shape(Buffer.WGT)), dtype=np.int64))
    uops = image.place_uops([(0, 0, 0)])
    multiply = gemm(
        uops=(0, 1), iters=(1, 1), dst=(0, 0), src=(0, 0), wgt=(0, 0), pop_prev=True
    )  # fmt: skip
    table = records(
        [
            load(Buffer.UOP, sram_base=0, dram_base=uops, x_size=1),
            multiply,
            load(Buffer.WGT, sram_base=0, dram_base=wgt, x_size=1),
            load(Buffer.INP, sram_base=0, dram_base=inp, x_size=1, push_next=True),
            finish(),
        ]
    )
    kernels = Kernels(TINY, engine)
    kernels.run(table, image.dram())
    assert kernels.sram(Buffer.ACC)[0].tolist() == [[shape[1]] * shape[1]] * shape[0]


@pytest.mark.parametrize("engine", ENGINES)
def test_srams_and_tokens_persist_from_launch_to_launch(engine):
    machine = load_machine("default")
    image = Image(machine)
    entry = np.arange(16).reshape(1, 1, 16)
    acc, out = image.place(Buffer.ACC, entry), image.reserve(Buffer.OUT, 1)
    dram, kernels = image.dram(), Kernels(machine, engine)
    give = load(Buffer.ACC, sram_base=5, dram_base=acc, x_size=1, push_next=True)
    kernels.run(records([give, finish()]), dram)
    assert tuple(kernels.tokens) == (0, 0, 1, 0)
    take = store(sram_base=5, dram_base=out, x_size=1, pop_prev=True)
    kernels.run(records([take, finish()]), dram)
    assert tuple(kernels.tokens) == (0, 0, 0, 0)
    assert image.read(dram, Buffer.OUT, out, 1).reshape(-1).tolist() == list(range(16))
    with pytest.raises(DeadlockError):
        kernels.run(records([take, finish()]), dram)
