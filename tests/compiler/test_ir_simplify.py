"""Shorter expressions of the same value, and bounds that hold."""

import random

import pytest
from random_exprs import RANGES, X, Y, Z, points, random_expr, value

from compiler.ir.affine import interval
from compiler.ir.arithmetic import apply, convert
from compiler.ir.build import FALSE, TRUE, ZERO, binary
from compiler.ir.nodes import (
    Alloc,
    Binary,
    BinaryOp,
    Buffer,
    Cast,
    Const,
    For,
    If,
    Load,
    LoopKind,
    Not,
    Select,
    Seq,
    Store,
    Var,
)
from compiler.ir.printer import to_text
from compiler.ir.simplify import as_affine, simplify, simplify_stmt
from compiler.ir.span import span

ADD, SUB, MUL = BinaryOp.ADD, BinaryOp.SUB, BinaryOp.MUL
DIV, MOD = BinaryOp.FLOORDIV, BinaryOp.FLOORMOD


def op(kind, a, b):
    a = Const(a) if isinstance(a, int) else a
    b = Const(b) if isinstance(b, int) else b
    return binary(kind, a, b)


@pytest.mark.parametrize("seed", range(20))
def test_random_expressions_keep_their_value(seed):
    rng = random.Random(seed)
    for _ in range(15):
        expr = random_expr(rng, 4)
        simple = simplify(expr, RANGES)
        low, high = interval(expr, RANGES)
        for point in points(X, Y, Z):
            expected = value(expr, point)
            assert value(simple, point) == expected, (seed, to_text(expr), to_text(simple), point)
            assert low <= expected <= high, (seed, to_text(expr), point)


@pytest.mark.parametrize("seed", range(20))
def test_the_span_of_a_random_expression_holds_all_its_values(seed):
    rng = random.Random(seed)
    for _ in range(15):
        expr = random_expr(rng, 4)
        found = span(expr, {Y, Z}, RANGES)
        for fixed in points(X):
            values = [value(expr, {**fixed, **moving}) for moving in points(Y, Z)]
            low = value(found.low, fixed)
            assert low <= min(values), (seed, to_text(expr), fixed)
            assert max(values) < low + found.width, (seed, to_text(expr), fixed)


@pytest.mark.parametrize(
    ("expr", "low", "width"),
    [
        (op(ADD, op(MUL, X, 4), Y), "x * 4", 4),
        (op(SUB, op(MUL, X, 4), Y), "x * 4 - 3", 4),
        (op(ADD, op(MUL, Y, 2), Z), "0", 9),
        (op(DIV, op(ADD, op(MUL, X, 8), Y), 2), "x * 4", 2),
        (op(MOD, op(ADD, Y, 4), 8), "4", 4),
        (op(BinaryOp.MIN, op(ADD, X, Y), 6), "min(x, 6)", 4),
        (op(ADD, X, 3), "x + 3", 1),
    ],
)
def test_the_span_of_a_usual_index_is_exact(expr, low, width):
    found = span(expr, {Y, Z}, RANGES)
    assert (to_text(found.low), found.width) == (low, width)


def test_an_index_read_from_memory_has_no_span():
    assert span(Load(Buffer("t", (4,), "int64"), (X,)), {Y}, RANGES) is None


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (op(ADD, op(MUL, X, 4), op(MUL, X, -4)), "0"),
        (op(ADD, op(MUL, op(ADD, X, 1), 4), Y), "x * 4 + y + 4"),
        (op(ADD, op(MUL, op(DIV, X, 3), 3), op(MOD, X, 3)), "x"),
        (op(DIV, op(ADD, op(MUL, X, 4), Y), 4), "x"),
        (op(MOD, op(ADD, op(MUL, X, 4), Y), 4), "y"),
        (op(DIV, op(DIV, X, 2), 3), "x // 6"),
        (op(MOD, op(MOD, X, 6), 3), "x % 3"),
        (op(DIV, op(ADD, op(MUL, X, 6), 9), 3), "x * 2 + 3"),
        (op(BinaryOp.LT, Y, 4), "True"),
        (op(BinaryOp.LT, X, 0), "False"),
        (op(BinaryOp.LE, op(SUB, X, 7), ZERO), "True"),
        (op(BinaryOp.EQ, op(ADD, X, Y), op(ADD, Y, X)), "True"),
        (op(BinaryOp.NE, X, op(ADD, X, 1)), "True"),
        (op(BinaryOp.LT, X, Y), "x < y"),
        (op(BinaryOp.MAX, Y, 3), "3"),
        (op(BinaryOp.MIN, X, op(ADD, X, 1)), "x"),
        (Not(Not(op(BinaryOp.LT, X, Y))), "x < y"),
        (Not(TRUE), "False"),
        (op(BinaryOp.AND, TRUE, op(BinaryOp.LT, X, Y)), "x < y"),
        (op(BinaryOp.OR, op(BinaryOp.LT, X, Y), TRUE), "True"),
        (Select(TRUE, X, Y), "x"),
        (Select(op(BinaryOp.LT, X, Y), X, X), "x"),
        (Cast(Const(300, "int32"), "int8"), "44"),
        (Cast(Var("x"), "int64"), "x"),
        (op(DIV, X, 0), "x // 0"),
        (op(BinaryOp.SHL, X, 3), "x * 8"),
        (op(SUB, 3, X), "0 - x + 3"),
    ],
)
def test_rules(expr, text):
    assert to_text(simplify(expr, RANGES)) == text


def test_data_keeps_its_rounding_and_wrapping():
    data = Load(Buffer("t", (8,), "int64"), (X,))
    wraps = op(DIV, op(MUL, data, 4), 4)
    assert simplify(wraps, RANGES) == wraps
    f = Load(Buffer("f", (8,), "float32"), (X,))
    zero = Const(0.0, "float32")
    assert simplify(Binary(ADD, f, zero, "float32")) == Binary(ADD, f, zero, "float32")


def test_affine_expressions_give_their_coefficients_and_others_none():
    assert as_affine(op(SUB, op(MUL, op(ADD, X, 2), 3), Y)) == (6, {X: 3, Y: -1})
    assert as_affine(Const(5)) == (5, {})
    assert as_affine(op(MUL, X, Y)) is None
    assert as_affine(op(MOD, X, 2)) is None


def test_statements_lose_decided_tests_and_nested_sequences():
    t = Buffer("t", (8,), "int32")
    store = Store(t, (X,), Const(1, "int32"))
    always = If(op(BinaryOp.LT, X, 8), store)
    never = If(op(BinaryOp.LT, X, 0), store, Seq((store, Seq((store,)))))
    loop = simplify_stmt(For(X, 8, Seq((always, never))))
    assert loop == For(X, 8, Seq((store, store, store)))


def test_unit_loops_go_only_when_asked_and_virtual_threads_never():
    t = Buffer("t", (8,), "int32")
    loop = For(X, 1, Store(t, (X,), Const(1, "int32")))
    assert to_text(simplify_stmt(loop)) == "for x in range(1):\n    t[0] = 1"
    assert to_text(simplify_stmt(loop, drop_unit_loops=True)) == "t[0] = 1"
    threads = For(X, 1, Store(t, (X,), Const(1, "int32")), LoopKind.VTHREAD)
    assert isinstance(simplify_stmt(threads, drop_unit_loops=True), For)


def test_loops_around_nothing_go():
    gone = If(FALSE, Store(Buffer("t", (8,), "int32"), (X,), Const(1, "int32")))
    assert simplify_stmt(Alloc(Buffer("u", (1,), "int8"), For(X, 8, gone))).body == Seq(())


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (128, "int8", -128),
        (-129, "int8", 127),
        (255, "uint8", 255),
        (256, "uint8", 0),
        (-1, "uint32", 2**32 - 1),
        (1 << 63, "int64", -(1 << 63)),
        (-3.9, "int32", -3),
        (0.1, "float32", 0.10000000149011612),
        (7, "bool", 1),
    ],
)
def test_conversions_keep_the_low_bits(value, dtype, expected):
    assert convert(value, dtype) == expected


def test_division_rounds_down_and_shifts_are_checked():
    assert apply(DIV, -7, 2, "int32") == -4
    assert apply(MOD, -7, 2, "int32") == 1
    assert apply(DIV, -128, -1, "int8") == -128
    assert apply(BinaryOp.SHR, -7, 1, "int32") == -4
    assert apply(BinaryOp.SHL, 3, 31, "int32") == -(1 << 31)
    for amount in (-1, 32):
        with pytest.raises(ValueError, match=r"not in 0\.\.31"):
            apply(BinaryOp.SHR, 1, amount, "int32")
