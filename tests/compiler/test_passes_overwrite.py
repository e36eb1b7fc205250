"""Resets that an overwriting product makes needless, and the one pass of a REQUANTIZE."""

from __future__ import annotations

import random
from itertools import product

import numpy as np
import pytest
from machine_ir import execute

from compiler.intrinsics import gemm, gemm_reset, requantize
from compiler.ir.build import add, const, mul, seq
from compiler.ir.nodes import (
    Buffer,
    Coproc,
    Expr,
    For,
    Intrinsic,
    Program,
    Region,
    Scope,
    Stmt,
    TensorCall,
    UopKernel,
    Var,
)
from compiler.ir.visit import walk
from compiler.ops import Epilogue
from compiler.passes.overwrite import overwrite_first
from compiler.passes.uops import fold_uops
from vta_isa import Buffer as Memory
from vta_isa import LowKind, Machine, RuntimeCallError, load_machine
from vta_isa.enums import Stage
from vta_runtime.requantize import Requantize

PLAIN = load_machine("tiny")
TINY = PLAIN.replace(extensions={"gemm_overwrite": True, "alu_requantize": True})
ACC = Buffer("acc.sram", (TINY.depth(Memory.ACC), 1, 4), "int32", Scope.ACC)
INP = Buffer("inp.sram", (TINY.depth(Memory.INP), 1, 4), "int8", Scope.INP)
WGT = Buffer("wgt.sram", (TINY.depth(Memory.WGT), 4, 4), "int8", Scope.WGT)
MEMORIES = (ACC, INP, WGT)
Terms = dict[str, int]


def index(terms: Terms, base: int = 0, suffix: str = "") -> Expr:
    total: Expr = const(base)
    for name, step in terms.items():
        total = add(total, mul(Var(name + suffix), const(step)))
    return total


def call(intrinsic: Intrinsic, *entries: Expr) -> TensorCall:
    scopes = {memory.scope: memory for memory in MEMORIES}
    regions = [
        Region(memory, (entry, const(0), const(0)), (1, *memory.shape[1:]))
        for memory, entry in zip((scopes[f.scope] for f in intrinsic.formals), entries, strict=True)
    ]
    return TensorCall(intrinsic, tuple(regions))


def nest(sizes: Terms, body: Stmt, suffix: str = "") -> Stmt:
    for name, extent in reversed(sizes.items()):
        body = For(Var(name + suffix), extent, body)
    return body


def changed(body: Stmt, machine: Machine = TINY) -> tuple[Stmt, list[UopKernel]]:
    """After the pass and as kernels; both must compute what ``body`` does."""
    program = Program("nest", MEMORIES, Coproc(Stage.COMPUTE, body))
    rng = np.random.default_rng(0)
    arrays = {b.name: rng.integers(-50, 50, b.shape).astype(b.dtype) for b in MEMORIES}

    def outcome(candidate: Program) -> np.ndarray:
        copies = {name: array.copy() for name, array in arrays.items()}
        execute(candidate, copies, published=machine is PLAIN)
        return copies[ACC.name]

    after = overwrite_first(program, machine)
    lowered = fold_uops(after, machine)
    for candidate in (after, lowered):
        np.testing.assert_array_equal(outcome(candidate), outcome(program))
    return after.body, [n for n in walk(lowered.body) if isinstance(n, UopKernel)]


def reset_and_product(
    moving: Terms, reducing: Terms, dst: Terms, src: Terms, wgt: Terms, base: int = 3
) -> Stmt:
    """A reset of ``acc[base + dst]`` and a product that adds to it, loops as given."""
    cleared = nest(moving, call(gemm_reset(TINY), index(dst, base, ".r")), ".r")
    entries = index(dst, base), index(src), index(wgt)
    return seq([cleared, nest({**moving, **reducing}, call(gemm(TINY), *entries))])


def resets(stmt: Stmt) -> int:
    return sum(n.intrinsic.emit.reset for n in walk(stmt) if isinstance(n, TensorCall))


CONV = reset_and_product(
    {"co": 2, "y": 3, "x": 4},
    {"dy": 3, "dx": 3},
    {"co": 12, "y": 4, "x": 1},
    {"y": 6, "x": 1, "dy": 6, "dx": 1},
    {"co": 9, "dy": 3, "dx": 1},
)


def test_a_convolution_overwrites_first_and_adds_the_rest_in_one_kernel() -> None:
    after, kernels = changed(CONV)
    assert resets(after) == 0
    assert [kernel.emit.overwrite for kernel in kernels] == [True, False]


def test_a_product_without_a_reduction_only_overwrites() -> None:
    body = reset_and_product({"y": 5}, {"k": 1}, {"y": 1}, {"y": 1, "k": 1}, {"k": 1})
    after, kernels = changed(body)
    assert resets(after) == 0
    assert [kernel.emit.overwrite for kernel in kernels] == [True]


def test_machines_without_the_extension_keep_the_reset() -> None:
    after, kernels = changed(CONV, PLAIN)
    assert resets(after) == 1
    assert not any(kernel.emit.overwrite for kernel in kernels)


@pytest.mark.parametrize(
    ("cleared", "dst", "base"),
    [
        ({"y": 1}, {"y": 1}, 4),  # starts elsewhere
        ({"y": 2}, {"y": 1}, 3),  # other steps
        ({"y": 0}, {"y": 1}, 3),  # one entry again and again
    ],
)
def test_a_reset_of_something_else_stays(cleared: Terms, dst: Terms, base: int) -> None:
    first = nest({"y": 4}, call(gemm_reset(TINY), index(cleared, base, ".r")), ".r")
    entries = index(dst, 3), index({"y": 1, "k": 2}), index({"k": 1})
    after, _ = changed(seq([first, nest({"y": 4, "k": 2}, call(gemm(TINY), *entries))]))
    assert resets(after) == 1


def test_a_reset_that_overlaps_itself_stays() -> None:
    moving, dst = {"y": 3, "x": 3}, {"y": 2, "x": 1}
    after, _ = changed(reset_and_product(moving, {"k": 2}, dst, {"k": 1}, {"k": 1}))
    assert resets(after) == 1


@pytest.mark.parametrize("seed", range(60))
def test_random_products(seed: int) -> None:
    rng = random.Random(seed)
    moving = {name: rng.randint(1, 4) for name in rng.sample(["p", "q", "r"], rng.randint(1, 3))}
    reducing = {name: rng.randint(1, 3) for name in rng.sample(["k", "l"], rng.randint(0, 2))}
    dst, reach = {}, 1
    for name in rng.sample(list(moving), len(moving)):  # dense, in any order of the loops
        dst[name] = reach
        reach *= moving[name]
    src, wgt = (
        {name: rng.choice([0, 1, 1, 2, 3]) for name in (*moving, *reducing)} for _ in range(2)
    )
    after, kernels = changed(reset_and_product(moving, reducing, dst, src, wgt, rng.randint(0, 3)))
    assert resets(after) == 0, seed
    assert kernels[0].emit.overwrite, seed


# -- REQUANTIZE ---------------------------------------------------------------------------------


HOW = Requantize(2, LowKind.COMPLEMENT, 7)


def test_the_loop_that_moves_the_bias_is_the_outer_one() -> None:
    dst = index({"x": 1, "co": 5}, 8)
    body = nest(
        {"x": 5, "co": 3}, call(requantize(TINY, HOW, biased=True), dst, dst, index({"co": 1}))
    )
    _, (kernel,) = changed(body)
    assert [(loop.extent, loop.src_factor) for loop in kernel.loops] == [(3, 1), (5, 0)]


def test_one_bias_each_is_an_outer_loop_around_one_iteration() -> None:
    dst = index({"x": 1}, 8)
    body = nest({"x": 5}, call(requantize(TINY, HOW, biased=True), dst, dst, index({"x": 1})))
    _, (kernel,) = changed(body)
    assert [(loop.extent, loop.src_factor) for loop in kernel.loops] == [(5, 1), (1, 0)]


@pytest.mark.parametrize("seed", range(60))
def test_random_biases(seed: int) -> None:
    rng = random.Random(seed)
    sizes = {name: rng.randint(1, 3) for name in rng.sample("pqr", rng.randint(1, 3))}
    dst, reach = {}, 1
    for name in rng.sample(list(sizes), len(sizes)):
        dst[name] = reach * (rng.randint(1, 2) if reach == 1 else 1)
        reach = dst[name] * sizes[name]
    biased = rng.random() < 0.8
    entry = index(dst, 16)
    bias = index({name: rng.choice([0, 1, 3]) for name in sizes}, rng.randint(0, 3))
    how = Requantize(rng.randint(0, 3), rng.choice(list(LowKind)), rng.randint(0, 60))
    operands = (entry, entry, bias) if biased else (entry, entry)
    changed(nest(sizes, call(requantize(TINY, how, biased=biased), *operands)))


@pytest.mark.parametrize("low", LowKind)
def test_settings_survive_the_runtime_call(low: LowKind) -> None:
    for shift, high in product((0, 1, 31), (0, 1, 0x7FFF)):
        how = Requantize(shift, low, high)
        assert Requantize.unpacked(how.packed) == how


@pytest.mark.parametrize("number", [-1, 1 << 15, 1 << 21, 3 << 24, 1 << 26])
def test_numbers_that_no_settings_give(number: int) -> None:
    with pytest.raises(RuntimeCallError, match=f"imm_val = {number} of a REQUANTIZE: it is high"):
        Requantize.unpacked(number)


EPILOGUES = [
    Epilogue(bias, shift, clip)
    for bias in (False, True)
    for shift in (None, -1, 0, 3, 16, 17, 31)
    for clip in (
        None,
        (None, None),
        (0, None),
        (None, 7),
        (0, 127),
        (-127, 127),
        (-128, 127),
        (-128, 126),
        (1, 5),
        (0, 1 << 15),
        (-(1 << 15), (1 << 15) - 1),
    )
]


@pytest.mark.parametrize("acc", ["int16", "int32"])
def test_one_pass_is_the_same_as_its_steps(acc: str) -> None:
    machine = TINY.replace(types={"acc": acc})
    least, most = machine.scalar_range(Memory.ACC)
    edges = [v for w in (0, 7, 128, 1 << 15, 1 << 16, most) for v in (w - 1, w, w + 1, -w, -w - 1)]
    values = np.array([v for v in (*edges, least) if least <= v <= most], dtype=np.int64)
    fused = 0
    for epilogue in EPILOGUES:
        how = epilogue.fused(machine, added=epilogue.bias)
        if how is None:
            continue
        fused += 1
        low, high = epilogue.clip or (None, None)
        expected = values >> (epilogue.shift or 0)
        expected = np.minimum(
            np.maximum(expected, least if low is None else low), most if high is None else high
        )
        got = np.clip(values >> how.shift, *how.bounds)
        np.testing.assert_array_equal(got, expected, err_msg=f"{epilogue}")
    assert fused > 20


@pytest.mark.parametrize(
    ("epilogue", "added", "how"),
    [
        (Epilogue(True, 8, (-128, 127)), True, Requantize(8, LowKind.COMPLEMENT, 127)),
        (Epilogue(False, 8, (-127, 127)), False, Requantize(8, LowKind.NEGATIVE, 127)),
        (Epilogue(True, None, (0, 127)), True, Requantize(0, LowKind.ZERO, 127)),
        (Epilogue(True, 20, None), True, Requantize(20, LowKind.COMPLEMENT, (1 << 11) - 1)),
        (Epilogue(True, 8, None), True, None),  # nothing that has to be clipped
        (Epilogue(True, 8, (0, None)), True, None),
        (Epilogue(True, 8, (1, 127)), True, None),
        (Epilogue(True, -1, (0, 127)), True, None),
        (Epilogue(False, 8, None), False, None),  # one operation as it is
        (Epilogue(True, None, None), True, None),
    ],
)
def test_what_one_pass_can_do(epilogue: Epilogue, added: bool, how: Requantize | None) -> None:
    assert epilogue.fused(TINY, added=added) == how
    assert epilogue.fused(PLAIN, added=added) is None
