"""Loads, ALU operations and stores one at a time, at their edges, on every tier of the host."""

from itertools import product

import machines
import numpy as np
import pytest
from images import Image
from judged import judged

from simulator.kernels import Kernels
from simulator.kernels.numpy_engine import _independent_runs
from simulator.kernels.tiers import runnable_tiers
from vta_isa.enums import AluOp, Buffer, Opcode
from vta_isa.insn import alu, finish, gemm, load, records, store

MACHINE_NAMES = ("tiny", "batch4-wide-out", "int4", "int16-acc")


def engines(name):
    return ["numpy", *(tier.name for tier in runnable_tiers(machines.machine(name)))]


CASES = [(name, engine) for name in MACHINE_NAMES for engine in engines(name)]


def compare(machine, engine, image, insns, hint=""):
    """Run on both; DRAM and every memory agree."""
    table, got = records([*insns, finish()]), image.dram()
    want, state = judged(machine, table, got)
    kernels = Kernels(machine, engine)
    kernels.run(table, got)
    np.testing.assert_array_equal(got, want, err_msg=hint)
    for buffer in (Buffer.UOP, Buffer.INP, Buffer.WGT, Buffer.ACC, Buffer.OUT):
        np.testing.assert_array_equal(
            kernels.sram(buffer), state.sram(buffer), err_msg=f"{buffer.name} {hint}"
        )


def random_entries(machine, buffer, rng, count):
    low, high = machine.scalar_range(buffer)
    shape = (count, *machine.entry_shape(buffer))
    return rng.integers(low, high, shape, endpoint=True)


@pytest.mark.parametrize(("name", "engine"), CASES)
@pytest.mark.parametrize("buffer", [b for b in Buffer if b != Buffer.OUT])
def test_loads_with_padding_on_every_side(name, engine, buffer):
    """After a load of random entries, so that padding must overwrite something."""
    machine, rng = machines.machine(name), np.random.default_rng(3)
    image = Image(machine)
    if buffer == Buffer.UOP:
        base = image.place_uops([(k, k, k) for k in range(16)])
    else:
        base = image.place(buffer, random_entries(machine, buffer, rng, 16))
    depth = machine.depth(buffer)
    full = load(buffer, sram_base=0, dram_base=base, x_size=min(depth, 16))
    for *pads, y_size in (
        *product((0, 1), (0, 1), (0, 1), (0, 1), (2,)),
        (1,) * 5,
        (1, 1, 1, 1, 0),
    ):
        y_pad, x_pad = tuple(pads[:2]), tuple(pads[2:])
        entries = (sum(y_pad) + y_size) * (sum(x_pad) + 1)
        if entries <= depth:
            tile = {"x_size": 1, "y_size": y_size, "x_stride": 3, "y_pad": y_pad, "x_pad": x_pad}
            padded = load(buffer, sram_base=depth - entries, dram_base=base, **tile)
            compare(machine, engine, image, [full, padded], f"{pads} y_size {y_size}")


@pytest.mark.parametrize(("name", "engine"), CASES)
def test_x_size_0_writes_nothing_not_even_padding(name, engine):
    machine = machines.machine(name)
    image = Image(machine)
    base = image.place(Buffer.ACC, random_entries(machine, Buffer.ACC, np.random.default_rng(1), 4))
    insns = [
        load(Buffer.ACC, sram_base=0, dram_base=base, x_size=4),
        load(
            Buffer.ACC, sram_base=0, dram_base=base, x_size=0, y_size=3, x_pad=(1, 1), y_pad=(1, 1)
        ),
        {"opcode": Opcode.LOAD, "buffer": 7, "sram_base": 0xFFFF, "dram_base": 0xFFFFFFFF},
        {"opcode": Opcode.STORE, "sram_base": 0xFFFF, "dram_base": 0xFFFFFFFF, "y_size": 9},
    ]
    compare(machine, engine, image, insns)


EDGES = (0, 1, -1, 2, 15, 16, 17, 30, 31, 32, 33, -30, -31, -32, -33, 127, -128, 32767, -32768)


@pytest.mark.parametrize(("name", "engine"), CASES)
@pytest.mark.parametrize("op", AluOp)
def test_alu_operations_at_the_edges_of_both_operands(name, engine, op):
    """Immediates, and tensors that hold the same values and the extremes of the accumulator."""
    machine = machines.machine(name)
    low, high = machine.scalar_range(Buffer.ACC)
    values = np.array([*EDGES, low, high, low + 1, high - 1])
    shape = machine.entry_shape(Buffer.ACC)
    count = min(machine.depth(Buffer.ACC) // 4, 8)
    x = np.resize(values, (count, *shape))
    y = np.resize(np.roll(values, 5), (count, *shape)[::-1]).T.reshape(count, *shape)
    image = Image(machine)
    bases = [image.place(Buffer.ACC, scalars) for scalars in (x, y)]
    uops = image.place_uops([(0, count, 0)])
    insns = [load(Buffer.UOP, sram_base=0, dram_base=uops, x_size=1)]
    for imm in (None, *EDGES):
        insns += [
            load(Buffer.ACC, sram_base=k * count, dram_base=base, x_size=count)
            for k, base in enumerate(bases)
        ]
        insns.append(alu(op, uops=(0, 1), iters=(1, count), dst=(0, 1), src=(0, 1), imm=imm))
        compare(machine, engine, image, insns, f"imm {imm}")
        del insns[1:]


@pytest.mark.parametrize(("name", "engine"), CASES)
@pytest.mark.parametrize(
    ("dst", "src"), [((0, 0), (0, 1)), ((0, 1), (0, 0)), ((0, 1), (0, 1)), ((1, 0), (0, 1))]
)
@pytest.mark.parametrize("start", [(0, 1), (2, 1)])
def test_alu_iterations_keep_their_order(name, engine, dst, src, start):
    """Reductions, broadcasts and overlapping moves: each may read what the one before wrote."""
    machine = machines.machine(name)
    image = Image(machine)
    base = image.place(
        Buffer.ACC, random_entries(machine, Buffer.ACC, np.random.default_rng(5), 12)
    )
    uops = image.place_uops([(*start, 0), (start[0] + 1, start[1], 0)])
    insns = [
        load(Buffer.ACC, sram_base=0, dram_base=base, x_size=12),
        load(Buffer.UOP, sram_base=0, dram_base=uops, x_size=2),
        alu(AluOp.ADD, uops=(0, 2), iters=(2, 4), dst=dst, src=src),
        alu(AluOp.MUL, uops=(0, 2), iters=(2, 4), dst=dst, src=src, imm=3),
    ]
    compare(machine, engine, image, insns)


@pytest.mark.parametrize(("name", "engine"), CASES)
@pytest.mark.parametrize("stride", [0, 1, 2, 3, 5])
def test_stores_truncate_and_the_later_of_overlapping_rows_stays(name, engine, stride):
    machine = machines.machine(name)
    image = Image(machine)
    base = image.place(
        Buffer.ACC, random_entries(machine, Buffer.ACC, np.random.default_rng(2), 12)
    )
    out = image.reserve(Buffer.OUT, 20)
    insns = [
        load(Buffer.ACC, sram_base=1, dram_base=base, x_size=12),
        store(sram_base=1, dram_base=out + 1, x_size=3, y_size=4, x_stride=stride),
        store(sram_base=1, dram_base=out, x_size=3, y_size=0),
    ]
    compare(machine, engine, image, insns)


@pytest.mark.parametrize(("name", "engine"), CASES)
def test_reset_reaches_out_too(name, engine):
    machine = machines.machine(name)
    image = Image(machine)
    base = image.place(
        Buffer.ACC, random_entries(machine, Buffer.ACC, np.random.default_rng(2), 12)
    )
    uops = image.place_uops([(1, 0, 0), (2, machine.depth(Buffer.INP) - 1, 0)])
    insns = [
        load(Buffer.ACC, sram_base=0, dram_base=base, x_size=12),
        load(Buffer.UOP, sram_base=0, dram_base=uops, x_size=2),
        gemm(uops=(0, 2), iters=(2, 2), dst=(5, 2), src=(15, 15), wgt=(1, 1), reset=True),
    ]
    compare(machine, engine, image, insns)


@pytest.mark.parametrize("seed", range(30))
def test_runs_of_independent_iterations_give_the_sequential_result(seed):
    rng = np.random.default_rng(seed)
    count, depth = int(rng.integers(1, 25)), int(rng.integers(2, 30))
    dst, src = rng.integers(0, depth, count), rng.integers(0, depth, count)
    one, other = (rng.integers(0, 1 << 20, depth) for _ in range(2))
    other[:] = one
    for d, s in zip(dst, src, strict=True):
        one[d] += 3 * one[s]
    for part in _independent_runs(dst, src, depth):
        other[dst[part]] += 3 * other[src[part]]
    np.testing.assert_array_equal(other, one)
