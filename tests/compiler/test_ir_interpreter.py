"""What running a program means, and what it refuses to do."""

import numpy as np
import pytest

from compiler.ir.build import add, less
from compiler.ir.interpreter import InterpreterError, run
from compiler.ir.nodes import (
    Alloc,
    Binary,
    BinaryOp,
    Buffer,
    Call,
    Cast,
    Const,
    Coproc,
    DepPop,
    DepPush,
    For,
    If,
    Load,
    LoopKind,
    Not,
    Produce,
    Program,
    Select,
    Seq,
    Store,
    Synchronize,
    Var,
)
from vta_isa.enums import Stage

I = Var("i")  # noqa: E741 - the index of every loop here
X, Y = Buffer("x", (4,), "int32"), Buffer("y", (4,), "int32")


def program(body, inputs=(X,), output=Y):
    return Program("p", (*inputs, output), body, (output,))


def elementwise(value, dtype="int32"):
    """y[i] = value, value written in terms of x[i]."""
    y = Buffer("y", (4,), dtype)
    return program(For(I, 4, Store(y, (I,), value)), output=y)


def outcome(prog, x):
    y = np.full(4, 99, dtype=prog.outputs[0].dtype)
    run(prog, {"x": np.array(x, dtype=np.int32), "y": y})
    return y.tolist()


LOAD = Load(X, (I,))


@pytest.mark.parametrize("kind", LoopKind)
def test_loops_of_every_kind_run_in_order(kind):
    body = For(I, 4, Store(Y, (I,), add(LOAD, Const(1, "int32"))), kind)
    assert outcome(program(body), [1, 2, 3, 4]) == [2, 3, 4, 5]


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        (BinaryOp.ADD, [-(2**31), 1, -4, 8]),
        (BinaryOp.SUB, [2**31 - 2, -1, -6, 6]),
        (BinaryOp.MUL, [2**31 - 1, 0, -5, 7]),
        (BinaryOp.MIN, [1, 0, -5, 1]),
        (BinaryOp.MAX, [2**31 - 1, 1, 1, 7]),
        (BinaryOp.FLOORDIV, [2**31 - 1, 0, -5, 7]),
        (BinaryOp.FLOORMOD, [0, 0, 0, 0]),
        (BinaryOp.SHR, [2**30 - 1, 0, -3, 3]),
        (BinaryOp.SHL, [-2, 0, -10, 14]),
    ],
)
def test_arithmetic_wraps_and_rounds_down(op, expected):
    value = Binary(op, LOAD, Const(1, "int32"), "int32")
    assert outcome(elementwise(value), [2**31 - 1, 0, -5, 7]) == expected


def test_casts_keep_low_bits():
    assert outcome(elementwise(Cast(LOAD, "int8"), "int8"), [127, 128, -129, 256]) == [
        127,
        -128,
        127,
        0,
    ]


def test_floats_round_to_their_type():
    value = Binary(BinaryOp.DIV, Cast(LOAD, "float32"), Const(3.0, "float32"), "float32")
    got = outcome(elementwise(value, "float32"), [1, 2, 3, 0])
    np.testing.assert_array_equal(got, np.array([1, 2, 3, 0], dtype=np.float32) / np.float32(3))


def test_only_the_chosen_side_of_a_select_is_evaluated():
    outside = Load(X, (add(I, Const(1)),))
    value = Select(less(I, Const(3)), outside, Const(0, "int32"), "int32")
    assert outcome(elementwise(value), [1, 2, 3, 4]) == [2, 3, 4, 0]


def test_the_second_condition_is_evaluated_only_if_it_matters():
    safe = Binary(
        BinaryOp.AND,
        less(I, Const(3)),
        less(Load(X, (add(I, Const(1)),)), Const(3, "int32")),
        "bool",
    )
    value = Cast(safe, "int32")
    assert outcome(elementwise(value), [1, 2, 3, 4]) == [1, 0, 0, 0]


def test_branches_take_one_side():
    body = For(
        I, 4, If(Not(less(I, Const(2))), Store(Y, (I,), LOAD), Store(Y, (I,), Const(0, "int32")))
    )
    assert outcome(program(body), [1, 2, 3, 4]) == [0, 0, 3, 4]


def test_ordering_of_machine_stages_does_nothing():
    store = Store(Y, (I,), LOAD)
    steps = Seq(
        (
            DepPush(Stage.LOAD, Stage.COMPUTE),
            DepPop(Stage.LOAD, Stage.COMPUTE),
            store,
            Synchronize(),
        )
    )
    body = Produce("y", For(I, 4, Coproc(Stage.COMPUTE, steps)))
    assert outcome(program(body), [1, 2, 3, 4]) == [1, 2, 3, 4]


def test_reading_what_was_never_written_names_the_element():
    t = Buffer("t", (2, 4), "int32")
    body = Alloc(t, For(I, 4, Store(Y, (I,), Load(t, (Const(1), I)))))
    with pytest.raises(InterpreterError, match=r"t\[1, 0\] is read but was never written"):
        outcome(program(body), [1, 2, 3, 4])


def test_an_allocation_forgets_its_contents_every_time():
    t = Buffer("t", (1,), "int32")
    first = If(less(I, Const(1)), Store(t, (Const(0),), LOAD))
    body = For(I, 4, Alloc(t, Seq((first, Store(Y, (I,), Load(t, (Const(0),)))))))
    with pytest.raises(InterpreterError, match=r"t\[0\] is read but was never written"):
        outcome(program(body), [1, 2, 3, 4])


@pytest.mark.parametrize("shift", [-1, 1])
def test_indices_outside_a_buffer_name_the_element(shift):
    body = For(I, 4, Store(Y, (I,), Load(X, (add(I, Const(shift)),))))
    with pytest.raises(InterpreterError, match=r"x\[(-1|4)\] is outside x\[4\]"):
        outcome(program(body), [1, 2, 3, 4])


def test_every_axis_is_checked_on_its_own():
    t = Buffer("x", (2, 2), "int32")
    body = Store(Y, (Const(0),), Load(t, (Const(0), Const(2))))
    with pytest.raises(InterpreterError, match=r"x\[0, 2\] is outside x\[2, 2\]"):
        run(program(body, (t,)), {"x": np.zeros((2, 2), np.int32), "y": np.zeros(4, np.int32)})


def test_a_division_by_zero_shows_the_operands():
    value = Binary(BinaryOp.FLOORDIV, Const(1, "int32"), LOAD, "int32")
    with pytest.raises(InterpreterError, match="1 // 0"):
        outcome(elementwise(value), [0, 0, 0, 0])


def test_arrays_are_checked():
    prog = elementwise(LOAD)
    with pytest.raises(InterpreterError, match="no array for 'x'; it takes x, y"):
        run(prog, {"y": np.zeros(4, np.int32)})
    with pytest.raises(InterpreterError, match=r"x is int8\[4\], expected int32\[4\]"):
        run(prog, {"x": np.zeros(4, np.int8), "y": np.zeros(4, np.int32)})


def test_inputs_stay_as_they_are_and_may_be_read_only():
    x = np.arange(4, dtype=np.int32)
    x.setflags(write=False)
    y = np.zeros(4, np.int32)
    run(elementwise(LOAD), {"x": x, "y": y})
    assert y.tolist() == [0, 1, 2, 3]


def test_statements_of_the_machine_are_refused():
    with pytest.raises(InterpreterError, match="does not run Call statements"):
        outcome(program(Call("VTASynchronize", ())), [0, 0, 0, 0])


def test_use_outside_the_allocation_is_refused():
    t = Buffer("t", (4,), "int32")
    with pytest.raises(InterpreterError, match="t is used outside its allocation"):
        outcome(program(Store(t, (Const(0),), Const(0, "int32"))), [0, 0, 0, 0])
