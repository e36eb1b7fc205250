"""Tensor expressions: how they read, what types they have, what they refuse."""

import numpy as np
import pytest
from scheduled import random_arrays, results

from compiler import te
from compiler.schedule import create_schedule
from compiler.te import TensorError

X = te.placeholder((4, 6), "int32", "x", axes=("i", "j"))
BYTES = te.placeholder((4, 6), "int8", "bytes")
REALS = te.placeholder((4, 6), "float32", "reals")
FLAGS = te.placeholder((4, 6), "bool", "flags")


def element(tensor=X):
    return tensor[0, 0]


def text(value):
    return repr(value)


# -- what they mean ---------------------------------------------------------------------------


def computed(fn, *operands, seed=0):
    """The values of ``compute((4, 6), fn)`` and the arrays of its operands, in order."""
    y = te.compute((4, 6), fn, "y")
    program = create_schedule(y, operands).program
    arrays = random_arrays(program, seed)
    return results(program, seed)["y"], *(arrays[t.name] for t in operands)


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: x + 5,
        lambda x: 5 - x,
        lambda x: x * x,
        lambda x: x // 7,
        lambda x: x % 7,
        lambda x: -x,
        lambda x: x >> 3,
        lambda x: x << 3,
        lambda x: (x << 25) + (x << 24),
    ],
)
def test_operators_compute_what_numpy_does(fn):
    got, x = computed(lambda i, j: fn(X[i, j]), X)
    np.testing.assert_array_equal(got, fn(x))


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: (x < 3) & (x > -3),
        lambda x: (x <= 3) | (x >= 50),
        lambda x: ~(x == 3),
        lambda x: (x != 3) & (4 > x),
    ],
)
def test_conditions_compute_what_numpy_does(fn):
    got, x = computed(lambda i, j: fn(X[i, j]), X)
    np.testing.assert_array_equal(got, fn(x))


def test_selection_and_extremes():
    got, x = computed(
        lambda i, j: te.select(X[i, j] > 0, te.minimum(X[i, j], 50), te.maximum(X[i, j], -50)), X
    )
    np.testing.assert_array_equal(got, np.clip(x, -50, 50))


@pytest.mark.parametrize(
    ("reduce", "numpy"), [(te.sum, np.sum), (te.min, np.min), (te.max, np.max)]
)
def test_reductions_over_several_axes(reduce, numpy):
    cube = te.placeholder((4, 6, 3, 2), "int32", "cube")
    a, b = te.reduce_axis(3, "a"), te.reduce_axis(2, "b")
    got, x = computed(lambda i, j: reduce(cube[i, j, a, b], axis=[a, b]), cube)
    np.testing.assert_array_equal(got, numpy(x, axis=(2, 3)))


@pytest.mark.parametrize(
    ("dtype", "reduce"), [("int8", te.max), ("float32", te.min), ("float32", te.sum)]
)
def test_reductions_start_from_the_neutral_element_of_their_type(dtype, reduce):
    cube = te.placeholder((4, 6, 3), dtype, "cube")
    a = te.reduce_axis(3, "a")
    got, x = computed(lambda i, j: reduce(cube[i, j, a], axis=a), cube)
    wanted = {te.max: np.max, te.min: np.min, te.sum: np.sum}[reduce](x, axis=2)
    np.testing.assert_array_equal(got, wanted.astype(dtype))


def test_elements_may_be_read_at_an_index_read_from_memory():
    at = te.placeholder((4, 6), "int64", "at")
    got, x, where = computed(lambda i, j: X[i, at[i, j] % 6], X, at)
    np.testing.assert_array_equal(got, np.take_along_axis(x, where % 6, axis=1))


# -- types ------------------------------------------------------------------------------------


def test_python_numbers_take_the_type_of_the_other_side():
    assert (element(BYTES) + 1).dtype == "int8"
    assert (2 * element(REALS)).dtype == "float32"
    assert (element(REALS) / 2).dtype == "float32"
    assert (element() < 3).dtype == "bool"
    assert te.const(3, "int16").dtype == "int16"
    assert element(BYTES).astype("int32").dtype == "int32"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: element() + element(BYTES),
            r"\+ mixes int32 \(x\[0, 0\]\) and int8 \(bytes\[0, 0\]\); cast one of them",
        ),
        (lambda: te.minimum(element(), element(BYTES)), "min mixes int32"),
        (lambda: te.select(element() < 0, element(), element(BYTES)), "select mixes int32"),
        (lambda: element(BYTES) + 128, r"128 does not fit int8 \(-128..127\); cast"),
        (lambda: element() + 0.5, "0.5 is not an integer and cannot be int32"),
        (lambda: te.minimum(1, 2), "min of 1 and 2: give one of them a type with te.const"),
        (lambda: element(REALS) // 2, "// is for integers, not float32"),
        (lambda: element(REALS) >> 1, ">> is for integers"),
        (lambda: element() / 2, "/ is for floating point, not int32"),
        (lambda: element() // 0, "division by zero"),
        (lambda: element() % 0, "division by zero"),
        (lambda: element() >> 32, r"a shift of int32 takes -31..31"),
        (lambda: element(FLAGS) + True, r"bool has no \+"),
        (lambda: element() & element(), "int32 is not bool; & is logical"),
        (lambda: element() | element(), "int32 is not bool; | is logical"),
        (lambda: ~element(), "int32 is not bool; ~ negates a condition"),
        (lambda: te.select(element(), 1, 2), r"the condition must be a comparison \(bool\)"),
        (lambda: 0 <= element() < 4, r"no truth value .*write \(a <= b\) & \(b < c\)"),
        (lambda: element() + "1", r"\+: '1' is no scalar value; index a tensor first"),
        (lambda: element() + X, r"Tensor\(x: int32\[4, 6\]\) is no scalar value"),
        (lambda: element().astype("int7"), "unknown type 'int7'; the types are bool, int8"),
        (lambda: te.const(2, "bool"), r"2 does not fit bool \(0..1\)"),
    ],
)
def test_what_has_no_meaning_is_refused_with_a_way_out(make, message):
    with pytest.raises(TensorError, match=message):
        make()


def test_a_shift_by_a_negative_constant_goes_the_other_way():
    assert text(element() >> -3) == "x[0, 0] << 3"
    assert text(element() << -3) == "x[0, 0] >> 3"


# -- tensors ----------------------------------------------------------------------------------


def test_axes_are_named_after_parameters_or_by_hand_or_numbered():
    assert te.compute((2, 3), lambda co, oh: X[co, oh], "y").axes == ("co", "oh")
    assert te.compute((2, 3), lambda *i: X[i], "y").axes == ("ax0", "ax1")
    assert te.compute((2, 3), lambda *i: X[i], "y", axes=("a", "b")).axes == ("a", "b")
    assert BYTES.axes == ("ax0", "ax1")


K = te.reduce_axis(6, "k")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: X[0], r"x has 2 axes \(i, j\) and is given 1 indices"),
        (lambda: X[0, 6], r"x\[..j..\]: index 6 is outside 0..5"),
        (lambda: X[0, -1], r"index -1 is outside 0..5"),
        (lambda: X[0, element()], r"index x\[0, 0\] is int32; an index is int64, cast it"),
        (lambda: X[0, 1.0], "index 1.0 is no integer value"),
        (lambda: te.placeholder((), "int8", "y"), r"y: a tensor has at least one axis"),
        (
            lambda: te.placeholder((4, 0), "int8", "y"),
            r"y: shape \(4, 0\) has 0; extents are integers from 1",
        ),
        (lambda: te.placeholder((4,), "int8", "1y"), "'1y' is no name"),
        (lambda: te.placeholder((4,), "char", "y"), "placeholder y: unknown type 'char'"),
        (
            lambda: te.placeholder((4,), "int8", "y", axes=("a", "b")),
            r"y: 2 axes \(a, b\) for a shape of rank 1",
        ),
        (
            lambda: te.placeholder((4, 4), "int8", "y", axes=("a", "a")),
            "y: axis names a, a are not all different",
        ),
        (lambda: te.compute((4,), lambda i: 3, "y"), r"y: the function gave 3; .*te.const"),
        (
            lambda: te.compute((4,), lambda i, j: X[i, j], "y"),
            r"y: 2 axes \(i, j\) for a shape of rank 1",
        ),
        (
            lambda: te.compute((4,), lambda i: X[i, K], "y"),
            "y: k is neither an axis of y nor reduced over",
        ),
        (
            lambda: te.compute((4,), lambda k: te.sum(X[k, K], axis=K), "y"),
            "y: reduction axis k is also an axis of y",
        ),
        (
            lambda: te.compute((4,), lambda i: te.sum(X[i, K], axis=K) + 1, "y"),
            "use the result in another compute",
        ),
        (
            lambda: te.compute((4,), lambda i: 1 + X[i, 0] + te.sum(X[i, K], axis=K), "y"),
            "keep a reduction the whole body",
        ),
        (lambda: te.sum(X[0, K], axis=[]), "axis must be one reduce_axis or several"),
        (
            lambda: te.sum(X[0, K], axis=[K, K]),
            r"two reduction axes have one name \(\['k', 'k'\]\)",
        ),
        (lambda: te.sum(te.sum(X[0, K], axis=K), axis=K), "a reduction of one is two stages"),
        (lambda: te.max(X[0, K] < 3, axis=K), "bool cannot be reduced"),
        (lambda: te.reduce_axis(0, "k"), "reduce_axis k: extent 0 is not an integer of at least 1"),
        (lambda: te.reduce_axis(2, "k k"), "'k k' is no name"),
    ],
)
def test_malformed_tensors_are_refused(make, message):
    with pytest.raises(TensorError, match=message):
        make()


def test_two_tensors_of_one_name_are_refused():
    other = te.placeholder((4, 6), "int32", "x")
    y = te.compute((4, 6), lambda i, j: X[i, j] + other[i, j], "y")
    with pytest.raises(TensorError, match="two tensors are named x; give them different names"):
        te.to_text(y)


def test_the_text_shows_one_tensor_per_line_inputs_first():
    w = te.placeholder((6,), "int32", "w", axes=("k",))
    acc = te.compute((4,), lambda i: te.sum(X[i, K] * w[K], axis=K), "acc")
    y = te.compute((4,), lambda i: te.select(i < 2, acc[i] >> 8, 0).astype("int8"), "y")
    assert (
        te.to_text(y)
        == """\
x[i:4, j:6] = placeholder int32
w[k:6] = placeholder int32
acc[i:4] = sum(x[i, k] * w[k], over k:6)
y[i:4] = int8(select(i < 2, acc[i] >> 8, 0))"""
    )
