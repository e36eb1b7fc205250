"""Host code against the interpreter: every operation, type, loop kind and buffer."""

import itertools
import random

import numpy as np
import pytest
from numpy.typing import NDArray

from compiler.codegen.link import link, optimised
from compiler.codegen.module import emit_llvm
from compiler.codegen.types import value_type
from compiler.ir.build import add, binary, const, floordiv, floormod, less, mul, seq, sub
from compiler.ir.interpreter import run
from compiler.ir.nodes import (
    INDEX,
    Alloc,
    Binary,
    BinaryOp,
    Buffer,
    Cast,
    Const,
    Expr,
    For,
    If,
    Load,
    LoopKind,
    Not,
    Program,
    Select,
    Stmt,
    Store,
    Synchronize,
    Var,
)
from compiler.module import build
from vta_isa import CompileError, VtaError, load_machine

TINY = load_machine("tiny")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float32", "float64")
ARITHMETIC = (BinaryOp.ADD, BinaryOp.SUB, BinaryOp.MUL, BinaryOp.MIN, BinaryOp.MAX)
COMPARISONS = (BinaryOp.LT, BinaryOp.LE, BinaryOp.EQ, BinaryOp.NE)
DIVISIONS = (BinaryOp.FLOORDIV, BinaryOp.FLOORMOD)
I = Var("i")  # noqa: E741


def check(program: Program, arrays: dict[str, NDArray]) -> dict[str, NDArray]:
    """Native code and interpreter leave the same arrays; returns them."""
    expected = {name: array.copy() for name, array in arrays.items()}
    run(program, expected)
    got = {name: array.copy() for name, array in arrays.items()}
    build(program, TINY).run(got)
    for name, array in expected.items():
        np.testing.assert_array_equal(got[name], array, err_msg=name)
    return got


def elementwise(value: Expr, *inputs: Buffer, kind: LoopKind = LoopKind.SERIAL) -> Program:
    n = inputs[0].shape[0]
    out = Buffer("out", (n,), value.dtype)
    body = For(I, n, Store(out, (I,), value), kind)
    return Program("test", (*inputs, out), body, (out,))


def extremes(dtype: str) -> list[int]:
    info = np.iinfo(dtype)
    return sorted(
        {info.min, info.min + 1, 0, 1, 2, 3, 7, info.max - 1, info.max} | {-1, -2, -7}
        if info.min
        else {0, 1, 2, 3, 7, info.max // 2, info.max - 1, info.max}
    )


def pairs(dtype: str) -> tuple[NDArray, NDArray]:
    if dtype in FLOATS:
        values = [0.0, -0.0, 1.0, -1.0, 0.1, -2.5, 7.75, 1e30, -1e-30, 3.0]
    else:
        values = extremes(dtype)
    a, b = zip(*itertools.product(values, values), strict=True)
    return np.array(a, dtype), np.array(b, dtype)


@pytest.mark.parametrize("dtype", INTEGERS + FLOATS)
def test_arithmetic(dtype: str) -> None:
    a, b = pairs(dtype)
    x, y = Buffer("x", a.shape, dtype), Buffer("y", b.shape, dtype)
    values = [binary(op, Load(x, (I,)), Load(y, (I,))) for op in ARITHMETIC + COMPARISONS]
    outs = [Buffer(f"out_{i}", a.shape, value.dtype) for i, value in enumerate(values)]
    stores = [Store(out, (I,), value) for out, value in zip(outs, values, strict=True)]
    program = Program("binary", (x, y, *outs), For(I, len(a), seq(stores)), tuple(outs))
    check(program, {"x": a, "y": b} | {out.name: np.zeros(a.shape, out.dtype) for out in outs})


@pytest.mark.parametrize("dtype", INTEGERS + FLOATS)
@pytest.mark.parametrize("op", DIVISIONS)
def test_division_rounds_down(op: BinaryOp, dtype: str) -> None:
    a, b = pairs(dtype)
    a, b = a[b != 0], b[b != 0]
    x, y = Buffer("x", a.shape, dtype), Buffer("y", b.shape, dtype)
    program = elementwise(binary(op, Load(x, (I,)), Load(y, (I,))), x, y)
    check(program, {"x": a, "y": b, "out": np.zeros(a.shape, dtype)})


@pytest.mark.parametrize("by", [-7, -1, 1, 3, 8])
@pytest.mark.parametrize("op", DIVISIONS)
def test_division_by_a_constant(op: BinaryOp, by: int) -> None:
    a = np.array(extremes("int32"), "int32")
    x = Buffer("x", a.shape, "int32")
    program = elementwise(binary(op, Load(x, (I,)), Const(by, "int32")), x)
    check(program, {"x": a, "out": np.zeros(a.shape, "int32")})


@pytest.mark.parametrize("dtype", FLOATS)
def test_true_division(dtype: str) -> None:
    a, b = pairs(dtype)
    a, b = a[b != 0], b[b != 0]
    x, y = Buffer("x", a.shape, dtype), Buffer("y", b.shape, dtype)
    program = elementwise(binary(BinaryOp.DIV, Load(x, (I,)), Load(y, (I,))), x, y)
    check(program, {"x": a, "y": b, "out": np.zeros(a.shape, dtype)})


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("op", [BinaryOp.SHR, BinaryOp.SHL])
def test_shifts(op: BinaryOp, dtype: str) -> None:
    width = np.dtype(dtype).itemsize * 8
    values = itertools.product(extremes(dtype), [0, 1, width // 2, width - 1])
    a, b = (np.array(side, dtype) for side in zip(*values, strict=True))
    x, y = Buffer("x", a.shape, dtype), Buffer("y", b.shape, dtype)
    program = elementwise(binary(op, Load(x, (I,)), Load(y, (I,))), x, y)
    check(program, {"x": a, "y": b, "out": np.zeros(a.shape, dtype)})


@pytest.mark.parametrize("source", [*INTEGERS, *FLOATS, "bool"])
def test_conversions(source: str) -> None:
    """To every type; floats that no integer type holds are left out where they go to one."""
    if source == "bool":
        a = np.array([False, True])
    elif source in FLOATS:
        a = np.array([0.0, 0.5, -0.5, 1.9, -1.9, 300.9, -300.9, 2.0**31, -(2.0**40)], source)
    else:
        a = np.array(extremes(source), source)
    x = Buffer("x", a.shape, source)
    outs = [Buffer(f"to_{t}", a.shape, t) for t in (*INTEGERS, *FLOATS, "bool")]
    body = For(I, len(a), seq(Store(out, (I,), Cast(Load(x, (I,)), out.dtype)) for out in outs))
    program = Program("casts", (x, *outs), body, tuple(outs))
    check(program, {"x": a} | {out.name: np.zeros(a.shape, out.dtype) for out in outs})


def test_only_the_chosen_side_of_a_select_is_computed() -> None:
    x = Buffer("x", (4,), "int32")
    inside = less(sub(I, const(3)), const(4))
    low = less(const(2), I)
    shifted = Select(low, Load(x, (sub(I, const(3)),)), Const(-5, "int32"), "int32")
    guarded = Select(inside, shifted, Const(-6, "int32"), "int32")
    out = Buffer("out", (9,), "int32")
    program = Program("test", (x, out), For(I, 9, Store(out, (I,), guarded)), (out,))
    arrays = {"x": np.arange(4, dtype="int32"), "out": np.zeros(9, "int32")}
    assert check(program, arrays)["out"].tolist() == [-5, -5, -5, 0, 1, 2, 3, -6, -6]


@pytest.mark.parametrize("op", [BinaryOp.AND, BinaryOp.OR])
def test_logic_stops_at_the_first_operand_that_decides(op: BinaryOp) -> None:
    x = Buffer("x", (4,), "bool")
    first = less(I, const(4))
    first = first if op is BinaryOp.AND else Not(first)
    value = Not(binary(op, first, Load(x, (I,))))
    out = Buffer("out", (6,), "bool")
    program = Program("test", (x, out), For(I, 6, Store(out, (I,), value)), (out,))
    check(program, {"x": np.array([True, False, True, False]), "out": np.zeros(6, "bool")})


class Expressions:
    """Random expressions over a row of inputs of all types."""

    def __init__(self, seed: int):
        self.rng = random.Random(seed)
        self.n = 16
        self.inputs = [Buffer(f"x_{t}", (self.n,), t) for t in (*INTEGERS, *FLOATS, "bool")]

    def make(self, dtype: str, depth: int) -> Expr:
        rng = self.rng
        if depth == 0 or rng.random() < 0.15:
            if rng.random() < 0.3:
                return self.constant(dtype)
            buffer = next(b for b in self.inputs if b.dtype == dtype)
            return Load(buffer, (floormod(add(I, const(rng.randrange(self.n))), self.n),))
        kind = rng.random()
        if kind < 0.15:
            cond = self.make("bool", depth - 1)
            return Select(cond, self.make(dtype, depth - 1), self.make(dtype, depth - 1), dtype)
        if kind < 0.3:
            sources = INTEGERS if dtype not in FLOATS else INTEGERS + FLOATS
            source = rng.choice([*sources, "bool"])
            return Cast(self.make(source, depth - 1), dtype)
        if dtype == "bool":
            other = rng.choice(INTEGERS + FLOATS)
            if kind < 0.7:
                op = rng.choice(COMPARISONS)
                return Binary(op, self.make(other, depth - 1), self.make(other, depth - 1), "bool")
            if kind < 0.8:
                return Not(self.make("bool", depth - 1))
            op = rng.choice([BinaryOp.AND, BinaryOp.OR])
            return Binary(op, self.make("bool", depth - 1), self.make("bool", depth - 1), "bool")
        a, b = self.make(dtype, depth - 1), self.make(dtype, depth - 1)
        if dtype in INTEGERS and kind < 0.5:
            by = rng.choice([1, 2, 3, 5, 100])
            if kind < 0.4:
                return binary(rng.choice(DIVISIONS), a, Const(by, dtype))
            return binary(rng.choice([BinaryOp.SHL, BinaryOp.SHR]), a, Const(by % 7, dtype))
        return binary(rng.choice(ARITHMETIC), a, b)

    def constant(self, dtype: str) -> Const:
        if dtype == "bool":
            return Const(self.rng.randrange(2), "bool")
        if dtype in FLOATS:
            return Const(float(np.float32(self.rng.uniform(-9, 9))), dtype)
        return Const(self.rng.choice(extremes(dtype)), dtype)

    def arrays(self) -> dict[str, NDArray]:
        rng = np.random.default_rng(self.rng.randrange(1 << 30))
        found = {}
        for b in self.inputs:
            if b.dtype in FLOATS:
                found[b.name] = rng.uniform(-100, 100, self.n).astype(b.dtype)
            elif b.dtype == "bool":
                found[b.name] = rng.random(self.n) < 0.5
            else:
                info = np.iinfo(b.dtype)
                found[b.name] = rng.integers(info.min, info.max, self.n, b.dtype, endpoint=True)
        return found


@pytest.mark.parametrize("seed", range(40))
def test_random_expressions(seed: int) -> None:
    source = Expressions(seed)
    outs = [Buffer(f"out_{k}", (source.n,), t) for k, t in enumerate((*INTEGERS, *FLOATS, "bool"))]
    stores: list[Stmt] = [Store(out, (I,), source.make(out.dtype, 4)) for out in outs]
    kind = source.rng.choice([LoopKind.SERIAL, LoopKind.VECTORIZE, LoopKind.UNROLL])
    body = For(I, source.n, seq(stores), kind)
    program = Program(f"seed{seed}", (*source.inputs, *outs), body, tuple(outs))
    arrays = source.arrays() | {b.name: np.zeros(b.shape, b.dtype) for b in outs}
    with np.errstate(all="ignore"):
        check(program, arrays)


# ---------------------------------------------------------------------------------------------


def matmul(kinds: tuple[LoopKind, LoopKind, LoopKind], n: int = 12) -> Program:
    a, b, c = (Buffer(name, (n, n), "int32") for name in "abc")
    i, j, k = Var("i"), Var("j"), Var("k")
    update = add(Load(c, (i, j)), mul(Load(a, (i, k)), Load(b, (k, j))))
    inner = For(k, n, For(j, n, Store(c, (i, j), update), kinds[2]), kinds[1])
    clear = For(Var("z"), n, Store(c, (i, Var("z")), Const(0, "int32")))
    return Program("matmul", (a, b, c), For(i, n, seq([clear, inner]), kinds[0]), (c,))


@pytest.mark.parametrize("outer", [LoopKind.SERIAL, LoopKind.PARALLEL, LoopKind.UNROLL])
@pytest.mark.parametrize("inner", [LoopKind.SERIAL, LoopKind.VECTORIZE, LoopKind.UNROLL])
def test_loop_kinds_compute_the_same(outer: LoopKind, inner: LoopKind) -> None:
    rng = np.random.default_rng(0)
    program = matmul((outer, LoopKind.SERIAL, inner))
    arrays = {b.name: rng.integers(-9, 9, b.shape).astype(b.dtype) for b in program.params}
    got = check(program, arrays)
    np.testing.assert_array_equal(got["c"], arrays["a"] @ arrays["b"])


def test_parallel_loops_inside_parallel_loops_do_not_wait_for_each_other() -> None:
    i, j = Var("i"), Var("j")
    out = Buffer("out", (40, 30), "int32")
    value = Cast(add(mul(i, const(100)), j), "int32")
    inner = For(j, 30, Store(out, (i, j), value), LoopKind.PARALLEL)
    program = Program("nested", (out,), For(i, 40, inner, LoopKind.PARALLEL), (out,))
    check(program, {"out": np.zeros((40, 30), "int32")})


def test_a_vector_loop_becomes_vector_instructions() -> None:
    """A gather and a scatter with indices from memory: only the mark tells they do not meet."""
    n = 1024
    a, at, out = (
        Buffer("a", (n,), "int32"),
        Buffer("at", (n,), "int64"),
        Buffer("out", (n,), "int32"),
    )
    place = Load(at, (I,))
    store = Store(out, (place,), add(Load(out, (place,)), Load(a, (I,))))

    def vectors(kind: LoopKind) -> bool:
        program = Program("scatter", (a, at, out), For(I, n, store, kind), (out,))
        rng = np.random.default_rng(0)
        arrays = {"a": rng.integers(0, 99, n, "int32"), "at": rng.permutation(n)}
        check(program, arrays | {"out": np.zeros(n, "int32")})
        return " x i32>" in optimised(build(program, TINY).text("llvm"))

    assert vectors(LoopKind.VECTORIZE)
    assert not vectors(LoopKind.SERIAL)


def test_a_loop_that_cannot_be_vectorized_says_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    x, y = Buffer("x", (8,), "int32"), Buffer("y", (8,), "int32")
    for kind in (LoopKind.VECTORIZE, LoopKind.UNROLL):
        value = binary(BinaryOp.FLOORDIV, Load(x, (I,)), Load(y, (I,)))
        build(elementwise(value, x, y, kind=kind), TINY).run([np.ones(8, "int32")] * 3)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("n", [8, 100_000])
@pytest.mark.parametrize("kind", [LoopKind.SERIAL, LoopKind.PARALLEL])
def test_intermediate_buffers(n: int, kind: LoopKind) -> None:
    """On the stack where small, on the heap where not; one per iteration of a parallel loop."""
    x, t, out = (
        Buffer("x", (n,), "int32"),
        Buffer("t", (n,), "int32"),
        Buffer("out", (2, n), "int32"),
    )
    r, i, j = Var("r"), Var("i"), Var("j")
    scale = Cast(add(r, const(2)), "int32")
    fill = For(i, n, Store(t, (i,), binary(BinaryOp.MUL, Load(x, (i,)), scale)))
    drain = For(j, n, Store(out, (r, j), Load(t, (sub(const(n - 1), j),))))
    program = Program("test", (x, out), For(r, 2, Alloc(t, seq([fill, drain])), kind), (out,))
    values = np.arange(n, dtype="int32")
    got = np.zeros((2, n), "int32")
    build(program, TINY).run([values, got])
    np.testing.assert_array_equal(got, np.stack([values[::-1] * 2, values[::-1] * 3]))


def test_branches() -> None:
    x, out = Buffer("x", (10,), "int32"), Buffer("out", (10,), "int32")
    small = less(Load(x, (I,)), Const(5, "int32"))
    then = Store(out, (I,), Const(1, "int32"))
    orelse = If(less(I, const(8)), Store(out, (I,), Const(2, "int32")))
    program = Program("test", (x, out), For(I, 10, If(small, then, orelse)), (out,))
    check(program, {"x": np.arange(10, dtype="int32"), "out": np.zeros(10, "int32")})


def test_arguments_may_overlap() -> None:
    x = Buffer("x", (8,), "int32")
    program = elementwise(Load(x, (sub(const(7), I),)), x)
    data = np.arange(8, dtype="int32")
    build(program, TINY).run([data, data])
    assert data.tolist() == list(range(7, -1, -1))


@pytest.mark.parametrize(
    ("op", "right", "message"),
    [
        (BinaryOp.FLOORDIV, 0, "division by zero"),
        (BinaryOp.FLOORMOD, 0, "division by zero"),
        (BinaryOp.SHR, 32, "shift"),
        (BinaryOp.SHL, -1, "shift"),
    ],
)
def test_undefined_operations_are_reported(op: BinaryOp, right: int, message: str) -> None:
    x, y = Buffer("x", (4,), "int32"), Buffer("y", (4,), "int32")
    module = build(elementwise(binary(op, Load(x, (I,)), Load(y, (I,))), x, y), TINY)
    y_values = np.ones(4, "int32")
    out = np.zeros(4, "int32")
    module.run([np.ones(4, "int32"), y_values, out])
    y_values[2] = right
    with pytest.raises(VtaError, match=f"test: .*{message}"):
        module.run([np.ones(4, "int32"), y_values, out])
    y_values[2] = 1
    module.run([np.ones(4, "int32"), y_values, out])


def test_wrong_arguments_are_named() -> None:
    x = Buffer("x", (4,), "int32")
    module = build(elementwise(Load(x, (I,)), x), TINY)
    good = np.zeros(4, "int32")
    with pytest.raises(VtaError, match=r"test takes 2 arrays \(x, out\), got 1"):
        module.run([good])
    with pytest.raises(VtaError, match="test takes arrays named x, out, got x, y"):
        module.run({"x": good, "y": good})
    with pytest.raises(VtaError, match=r"test: out is int8\[4\], expected int32\[4\]"):
        module.run([good, np.zeros(4, "int8")])
    with pytest.raises(VtaError, match=r"test: x is int32\[5\], expected int32\[4\]"):
        module.run([np.zeros(5, "int32"), good])


def test_programs_without_code_are_refused() -> None:
    with pytest.raises(CompileError, match="Synchronize should have been lowered"):
        emit_llvm(Program("test", (), Synchronize()))
    with pytest.raises(CompileError, match=r"no machine type for 'float16'; known are bool, int8"):
        value_type("float16")
    x = Buffer("x", (4,), "bool")
    program = elementwise(binary(BinaryOp.ADD, Load(x, (I,)), Load(x, (I,))), x)
    with pytest.raises(CompileError, match=r"\+ is not defined on bool"):
        emit_llvm(program)


def test_an_index_may_be_computed_from_other_types() -> None:
    """Loop variables are 64-bit; indices come from divisions and casts too."""
    x = Buffer("x", (4,), "int32")
    index = floordiv(add(I, Cast(Const(3, "int8"), INDEX)), 4)
    program = elementwise(Load(x, (index,)), x)
    check(program, {"x": np.arange(4, dtype="int32"), "out": np.zeros(4, "int32")})


def test_one_module_links_many_times() -> None:
    x = Buffer("x", (4,), "int32")
    text = emit_llvm(elementwise(Load(x, (I,)), x))
    codes = [link(text, 2) for _ in range(3)]
    for code in codes:
        a, b = np.arange(4, dtype="int32"), np.zeros(4, "int32")
        assert code.function(a.ctypes.data, b.ctypes.data) == 0
        assert b.tolist() == [0, 1, 2, 3]
