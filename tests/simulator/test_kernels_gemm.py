"""GEMM instruction by instruction: every pattern of loop factors, extremes, and wrap-around."""

from itertools import product

import machines
import numpy as np
import pytest
from images import Image
from judged import judged

from simulator.kernels import Kernels
from simulator.kernels.gemm_plan import plan_products
from simulator.kernels.tiers import runnable_tiers
from vta_isa.enums import Buffer
from vta_isa.insn import finish, gemm, load, records

MACHINE_NAMES = ("block8", "bus32", "batch4-wide-out", "int16")  # bus32 is 1x16x16


def engines(name):
    return ["numpy", *(tier.name for tier in runnable_tiers(machines.machine(name)))]


CASES = [(name, engine) for name in MACHINE_NAMES for engine in engines(name)]


def filled(machine, rng, inp=None, wgt=None):
    """Loads of whole memories: random operands (or one value), accumulators about to wrap."""
    image, insns = Image(machine), []
    for buffer, value in ((Buffer.INP, inp), (Buffer.WGT, wgt), (Buffer.ACC, None)):
        shape = (machine.depth(buffer), *machine.entry_shape(buffer))
        low, high = machine.scalar_range(buffer)
        if buffer == Buffer.ACC:
            edge = rng.integers(0, 1000, shape)
            scalars = np.where(rng.integers(0, 2, shape), low + edge, high - edge)
        elif value is None:
            scalars = rng.integers(low, high, shape, endpoint=True)
        else:
            scalars = np.full(shape, value)
        base = image.place(buffer, scalars)
        insns.append(load(buffer, sram_base=0, dram_base=base, x_size=shape[0]))
    return image, insns


def compare(machine, engine, image, insns, hint=""):
    table, dram = records([*insns, finish()]), image.dram()
    _, state = judged(machine, table, dram)
    kernels = Kernels(machine, engine)
    kernels.run(table, dram)
    np.testing.assert_array_equal(kernels.sram(Buffer.ACC), state.acc, err_msg=hint)


@pytest.mark.parametrize(("name", "engine"), CASES)
def test_every_pattern_of_loop_factors(name, engine):
    """Zero and non-zero factors of all three operands in both loops; destinations alias or not."""
    machine = machines.machine(name)
    seed = 7
    rng = np.random.default_rng(seed)
    depths = [machine.depth(b) for b in (Buffer.ACC, Buffer.INP, Buffer.WGT)]
    image, insns = filled(machine, rng)
    for pattern in product((False, True), repeat=6):
        iters = tuple(int(n) for n in rng.permutation([rng.integers(1, 10), rng.integers(1, 4)]))
        factors = [int(rng.integers(1, 3)) if moves else 0 for moves in pattern]
        pairs = [tuple(factors[k : k + 2]) for k in (0, 2, 4)]
        highest = [sum(f * (n - 1) for f, n in zip(p, iters, strict=True)) for p in pairs]
        count = int(rng.integers(1, 4))
        uops = [
            [
                int(rng.integers(0, d - h)) if h < d else 0
                for d, h in zip(depths, highest, strict=True)
            ]
            for _ in range(count)
        ]
        if any(h >= d for d, h in zip(depths, highest, strict=True)):
            continue
        base = image.place_uops([tuple(uop) for uop in uops])
        dst, src, wgt = pairs
        insns.append(load(Buffer.UOP, sram_base=0, dram_base=base, x_size=count))
        insns.append(gemm(uops=(0, count), iters=iters, dst=dst, src=src, wgt=wgt))
    assert len(insns) > 100
    compare(machine, engine, image, insns, f"seed {seed}")


@pytest.mark.parametrize(("name", "engine"), CASES)
@pytest.mark.parametrize("rows", [1, 3, 4, 5, 7, 13])
def test_any_number_of_rows(name, engine, rows):
    machine = machines.machine(name)
    image, insns = filled(machine, np.random.default_rng(rows))
    base = image.place_uops([(1, 2, 3), (0, 1, 1)])
    insns.append(load(Buffer.UOP, sram_base=0, dram_base=base, x_size=2))
    for iters in ((1, rows), (rows, 1)):
        insns.append(gemm(uops=(0, 2), iters=iters, dst=(1, 1), src=(1, 1), wgt=(0, 0)))
    compare(machine, engine, image, insns, f"seed {rows}")


@pytest.mark.parametrize(("name", "engine"), CASES)
@pytest.mark.parametrize("broken", [None, "dst", "src", "wgt"])
def test_micro_ops_that_follow_each_other(name, engine, broken):
    """As kernel columns do: runs of 1 to 9, which an engine may take as one, or almost runs."""
    machine = machines.machine(name)
    seed = 11
    rng = np.random.default_rng(seed)
    image, insns = filled(machine, rng)
    depths = [machine.depth(b) for b in (Buffer.ACC, Buffer.INP, Buffer.WGT)]
    uops = []
    for length in range(1, 10):
        dst, src, wgt = (int(rng.integers(0, depth - 12)) for depth in depths)
        run = [[dst, src + k, wgt + k] for k in range(length)]
        if broken and length > 1:
            run[int(rng.integers(1, length))][("dst", "src", "wgt").index(broken)] += 1
        uops += [tuple(uop) for uop in run]
    base = image.place_uops(uops)
    insns.append(load(Buffer.UOP, sram_base=0, dram_base=base, x_size=len(uops)))
    for begin, iters in product((0, 2, 40), ((1, 1), (2, 5), (3, 1))):
        for end in (len(uops), len(uops) - 3):
            loops = {"dst": (1, 0), "src": (0, 1), "wgt": (1, 0)}
            insns.append(gemm(uops=(begin, end), iters=iters, **loops))
            insns.append(gemm(uops=(begin, end), iters=iters, dst=(1, 1), src=(1, 1), wgt=(0, 0)))
    compare(machine, engine, image, insns, f"seed {seed}")


@pytest.mark.parametrize("engine", engines("bus32"))
@pytest.mark.parametrize("rows", [15, 16, 17, 31, 32, 33, 40])
def test_rows_around_the_size_of_a_tile(engine, rows):
    machine = machines.machine("bus32")
    image, insns = filled(machine, np.random.default_rng(rows))
    base = image.place_uops([(1, 2, 3), (1, 3, 4), (1, 4, 5), (0, 1, 1)])
    insns.append(load(Buffer.UOP, sram_base=0, dram_base=base, x_size=4))
    for dst in (0, 1):  # all rows into one entry, or each into its own
        insns.append(gemm(uops=(0, 4), iters=(2, rows), dst=(0, dst), src=(1, 1), wgt=(0, 0)))
        insns.append(gemm(uops=(0, 4), iters=(rows, 1), dst=(dst, 0), src=(0, 0), wgt=(0, 1)))
    compare(machine, engine, image, insns, f"seed {rows}")


@pytest.mark.parametrize(("name", "engine"), CASES)
@pytest.mark.parametrize(("inp", "wgt"), [("low", "low"), ("low", "high"), ("high", "low")])
def test_extreme_operands_do_not_saturate(name, engine, inp, wgt):
    machine = machines.machine(name)
    ends = {
        which: dict(zip(("low", "high"), machine.scalar_range(which), strict=True))
        for which in (Buffer.INP, Buffer.WGT)
    }
    image, insns = filled(
        machine, np.random.default_rng(0), ends[Buffer.INP][inp], ends[Buffer.WGT][wgt]
    )
    base = image.place_uops([(0, 0, 0)] * 3)
    insns.append(load(Buffer.UOP, sram_base=0, dram_base=base, x_size=3))
    insns.append(gemm(uops=(0, 3), iters=(2, 8), dst=(8, 1), src=(0, 1), wgt=(0, 0)))
    compare(machine, engine, image, insns)


@pytest.mark.parametrize("engine", engines("int16"))
def test_the_one_pair_of_products_that_passes_32_bits_wraps(engine):
    """2 * (-32768)^2 = 2^31, in every lane of pmaddwd."""
    machine = machines.machine("int16").replace(types={"wgt": "int16"}, sram={"wgt": "16 KiB"})
    image, insns = filled(machine, np.random.default_rng(0), -32768, -32768)
    base = image.place_uops([(0, 0, 0)])
    insns.append(load(Buffer.UOP, sram_base=0, dram_base=base, x_size=1))
    insns.append(gemm(uops=(0, 1), iters=(1, 4), dst=(0, 1), src=(0, 1), wgt=(0, 0)))
    compare(machine, engine, image, insns)


@pytest.mark.parametrize("taps", [63, 64, 65])
def test_float32_products_are_split_where_they_stop_being_exact(taps):
    """64 taps of 16 columns of (-128)^2 are 2^24, the last sum that float32 holds."""
    machine = machines.machine("default")
    image, insns = filled(machine, np.random.default_rng(0), -128, -128)
    base = image.place_uops([(0, tap, tap) for tap in range(taps)])
    insns.append(load(Buffer.UOP, sram_base=0, dram_base=base, x_size=taps))
    insns.append(gemm(uops=(0, taps), iters=(1, 2), dst=(0, 1), src=(0, 1), wgt=(0, 0)))
    compare(machine, "numpy", image, insns)


@pytest.mark.parametrize("seed", range(20))
def test_planned_products_are_the_iterations_in_some_order(seed):
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 60))
    dst, src, wgt = (rng.integers(0, high, count) for high in (5, 9, 4))
    plan = plan_products(dst, src, wgt, most_taps=int(rng.integers(1, 6)))
    planned = [
        (int(d), int(s), int(w))
        for p in plan
        for d_row, w_row in zip(p.dst, p.wgt, strict=True)
        for d, s_row in zip(d_row, p.src, strict=True)
        for s, w in zip(s_row, w_row, strict=True)
    ]
    want = list(zip(dst.tolist(), src.tolist(), wgt.tolist(), strict=True))
    assert sorted(planned) == sorted(want)
    for p in plan:
        assert len(np.unique(p.dst)) == p.dst.size
