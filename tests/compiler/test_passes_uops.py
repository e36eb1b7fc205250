"""Nests of tensorized calls become few instructions of few micro-ops with the same result."""

from __future__ import annotations

import random

import numpy as np
import pytest
from machine_ir import execute

from compiler.intrinsics import alu, gemm, gemm_reset
from compiler.ir.build import add, const, floordiv, floormod, less, mul, sub
from compiler.ir.nodes import (
    Buffer,
    Expr,
    For,
    If,
    Intrinsic,
    Program,
    Region,
    Scope,
    Seq,
    Stmt,
    TensorCall,
    UopKernel,
    Var,
)
from compiler.ir.visit import walk
from compiler.passes.uops import MAX_ITERATIONS, fold_uops
from vta_isa import AluOp, CompileError, Machine, load_machine
from vta_isa import Buffer as Memory

TINY = load_machine("tiny")
V = {name: Var(name) for name in "abcdefgh"}
Loops = list[tuple[Var, int]]


def memories(machine: Machine) -> list[Buffer]:
    return [
        Buffer("acc.sram", (machine.depth(Memory.ACC), 1, 4), "int32", Scope.ACC),
        Buffer("inp.sram", (machine.depth(Memory.INP), 1, 4), "int8", Scope.INP),
        Buffer("wgt.sram", (machine.depth(Memory.WGT), 4, 4), "int8", Scope.WGT),
    ]


def index(*terms: tuple[str, int], base: int = 0) -> Expr:
    total: Expr = const(base)
    for name, step in terms:
        total = add(total, mul(V[name], const(step)))
    return total


def call(intrinsic: Intrinsic, *entries: Expr, machine: Machine = TINY) -> TensorCall:
    scopes = memories(machine)
    regions = []
    for formal, entry in zip(intrinsic.formals, entries, strict=True):
        memory = next(m for m in scopes if m.scope is formal.scope)
        regions.append(Region(memory, (entry, const(0), const(0)), (1, *memory.shape[1:])))
    return TensorCall(intrinsic, tuple(regions))


def nest(sizes: dict[str, int], body: Stmt) -> Stmt:
    for name, extent in reversed(sizes.items()):
        body = For(V[name], extent, body)
    return body


def folded(body: Stmt, machine: Machine = TINY) -> tuple[Stmt, int, int]:
    """The lowered body, which must compute the same; instructions and micro-ops executed."""
    program = Program("nest", tuple(memories(machine)), body)
    rng = np.random.default_rng(0)
    before = {b.name: rng.integers(-50, 50, b.shape).astype(b.dtype) for b in program.params}
    after = {name: array.copy() for name, array in before.items()}
    execute(program, before)
    lowered = fold_uops(program, machine)
    counts = execute(lowered, after)
    for name, array in before.items():
        np.testing.assert_array_equal(after[name], array, err_msg=name)
    return lowered.body, counts.instructions, counts.uops


def kernels(body: Stmt) -> list[UopKernel]:
    return [s for s in walk(body) if isinstance(s, UopKernel)]


# ---------------------------------------------------------------------------------------------


def test_a_contiguous_reset_is_one_micro_op_and_one_loop() -> None:
    body = nest(
        {"a": 2, "b": 3, "c": 4}, call(gemm_reset(TINY), index(("a", 12), ("b", 4), ("c", 1)))
    )
    after, instructions, uops = folded(body)
    assert (instructions, uops) == (1, 1)
    assert [level.extent for level in kernels(after)[0].loops] == [24]


def test_a_bias_needs_two_loops() -> None:
    """Channel by channel: one operand moves with the channel only."""
    dst = index(("a", 12), ("b", 4), ("c", 1))
    body = nest(
        {"a": 2, "b": 3, "c": 4}, call(alu(TINY, "add"), dst, dst, index(("a", 1), base=40))
    )
    after, instructions, uops = folded(body)
    assert (instructions, uops) == (1, 1)
    assert [level.extent for level in kernels(after)[0].loops] == [2, 12]


def test_an_immediate_reads_its_destination() -> None:
    """As every implementation of the instruction set does, source and destination are one."""
    dst = index(("a", 2), base=3)
    body = nest({"a": 5}, call(alu(TINY, "shr", 2), dst, dst))
    after, *_ = folded(body)
    (kernel,) = kernels(after)
    assert kernel.loops[0].dst_factor == kernel.loops[0].src_factor == 2


def conv(rows: int, columns: int, channels: int, taps: int, ci: int = 1) -> Stmt:
    """a, b: output rows and columns; c: output channels; d, e: taps; f: input channels."""
    wide = columns + taps - 1
    dst = index(("c", rows * columns), ("a", columns), ("b", 1))
    src = index(("f", wide * (rows + taps - 1)), ("a", wide), ("d", wide), ("b", 1), ("e", 1))
    wgt = index(("c", ci * taps * taps), ("f", taps * taps), ("d", taps), ("e", 1))
    sizes = {"f": ci, "a": rows, "b": columns, "c": channels, "d": taps, "e": taps}
    return nest(sizes, call(gemm(TINY), dst, src, wgt))


@pytest.mark.parametrize(
    ("shape", "most"),
    [
        ((4, 4, 4, 3), 36),
        ((3, 5, 1, 3), 15),
        ((2, 2, 2, 3), 18),
        ((1, 1, 4, 3), 12),
        ((4, 4, 3, 1), 3),
    ],
)
def test_a_convolution_is_one_instruction(shape: tuple[int, int, int, int], most: int) -> None:
    _, instructions, uops = folded(conv(*shape))
    assert instructions == 1
    assert uops <= most


def test_reductions_that_cannot_be_spaced_are_loops_outside() -> None:
    """One output entry: its destination would come back at once, so loops stay around."""
    src, wgt = index(("d", 20), ("e", 5), ("f", 1)), index(("d", 9), ("e", 3), ("f", 1))
    body = nest({"d": 2, "e": 3, "f": 3}, call(gemm(TINY), const(7), src, wgt))
    after, instructions, uops = folded(body)
    assert (instructions, uops) == (2, 2)
    assert all(len(kernel.loops) == 2 for kernel in kernels(after))


def test_a_backwards_loop_is_turned_around() -> None:
    dst = sub(const(9), V["a"])
    body = nest({"a": 10}, call(gemm_reset(TINY), dst))
    after, instructions, uops = folded(body)
    assert (instructions, uops) == (1, 1)
    assert kernels(after)[0].loops[0].dst_factor == 1


def test_loops_in_opposite_directions_are_recorded() -> None:
    body = nest({"a": 5}, call(gemm(TINY), V["a"], sub(const(9), V["a"]), const(0)))
    after, instructions, uops = folded(body)
    assert (instructions, uops) == (1, 5)
    assert kernels(after)[0].loops == ()


def test_a_loop_longer_than_the_field_is_split() -> None:
    """Indices end before iteration counts do, so only a loop that stands still gets this long."""
    extent = 2 * (MAX_ITERATIONS - 1)
    body = nest({"a": extent}, call(gemm(TINY), const(0), const(1), const(2)))
    after = fold_uops(Program("long", tuple(memories(TINY)), body), TINY)
    (kernel,) = kernels(after.body)
    assert [level.extent for level in kernel.loops] == [2, MAX_ITERATIONS - 1]


def test_outer_variables_are_parameters() -> None:
    inner = nest({"b": 4}, call(gemm_reset(TINY), index(("a", 4), ("b", 1))))
    body = For(V["a"], 3, Seq((inner, inner)))
    after, instructions, _ = folded(body)
    assert instructions == 6
    assert all(kernel.params == (V["a"],) for kernel in kernels(after))


def test_a_branch_stays_outside_of_the_kernel() -> None:
    guarded = If(
        less(V["a"], const(2)), nest({"b": 4}, call(gemm_reset(TINY), index(("a", 4), ("b", 1))))
    )
    _, instructions, _ = folded(For(V["a"], 3, guarded))
    assert instructions == 2


def test_an_index_that_is_not_affine_is_a_loop_outside() -> None:
    dst = add(mul(floordiv(V["a"], 2), const(8)), add(floormod(V["a"], 2), mul(V["b"], const(2))))
    after, instructions, _ = folded(nest({"a": 4, "b": 4}, call(gemm_reset(TINY), dst)))
    assert instructions == 4
    assert all(kernel.params == (V["a"],) for kernel in kernels(after))


def test_too_many_micro_ops_are_several_kernels() -> None:
    small = TINY.replace(sram={"uop": 16})
    assert small.depth(Memory.UOP) == 4
    _, instructions, uops = folded(conv(4, 4, 4, 3), small)
    assert instructions == 9
    assert uops == 36


# ---------------------------------------------------------------------------------------------


def test_tensor_operations_that_read_their_own_results_keep_their_order() -> None:
    """A running sum: reordered or merged loops would compute something else."""
    body = nest(
        {"a": 3, "b": 2},
        call(alu(TINY, "add"), *[index(("b", 3), ("a", 1), base=1)] * 2, index(("b", 3), ("a", 1))),
    )
    folded(body)


def test_running_sums_with_too_many_loops_are_several_kernels() -> None:
    dst = index(("a", 1), ("b", 5), ("c", 2), base=1)
    src = index(("a", 1), ("b", 4), ("c", 2))
    folded(nest({"a": 3, "b": 2, "c": 4}, call(alu(TINY, "add"), dst, dst, src)))


def test_an_index_that_is_not_affine_cannot_keep_its_order() -> None:
    dst = floormod(mul(V["a"], const(3)), 7)
    body = nest({"a": 4}, call(alu(TINY, "add"), dst, dst, V["a"]))
    with pytest.raises(CompileError, match=r"uops: the index is not affine in a; in\nfor a in"):
        fold_uops(Program("n", tuple(memories(TINY)), body), TINY)


@pytest.mark.parametrize("seed", range(100))
def test_random_nests(seed: int) -> None:
    rng = random.Random(seed)
    names = rng.sample("abcdef", rng.randint(1, 4))
    sizes = {name: rng.randint(1, 4) for name in names}

    def affine(limit: int) -> Expr:
        terms = []
        room = limit - 1
        base = 0
        for name in names:
            most = room // max(1, sizes[name] - 1)
            step = rng.choice([0, 1, 1, 2, 3, 4, 8, 12])
            step = min(step, most)
            if rng.random() < 0.1:
                base += step * (sizes[name] - 1)
                terms.append((name, -step))
            else:
                terms.append((name, step))
            room -= step * (sizes[name] - 1)
        return index(*terms, base=base)

    acc, inp, wgt = (m.shape[0] for m in memories(TINY))
    match rng.randint(0, 4):
        case 0:
            stmt = call(gemm_reset(TINY), affine(acc))
        case 1 | 2:
            stmt = call(gemm(TINY), affine(acc), affine(inp), affine(wgt))
        case 3:
            dst = affine(acc)
            op = rng.choice(list(AluOp))
            stmt = call(alu(TINY, op, rng.randint(-3, 3)), dst, dst)
        case _:
            dst = affine(acc // 2)
            op = rng.choice([AluOp.ADD, AluOp.MIN, AluOp.MAX, AluOp.MUL])
            src = affine(acc // 2)
            if rng.random() < 0.7:
                src = add(src, const(acc // 2))
            stmt = call(alu(TINY, op), dst, dst, src)
    try:
        folded(nest(sizes, stmt))
    except CompileError as error:
        raise AssertionError(f"seed {seed}: {error}") from error
