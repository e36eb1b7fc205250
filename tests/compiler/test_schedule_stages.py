"""Primitives that move stages, copy tensors and place buffers."""

import expressions
import pytest
from scheduled import assert_unchanged

from compiler import te
from compiler.ir.nodes import Alloc
from compiler.ir.visit import walk
from compiler.schedule import create_schedule
from vta_isa.errors import ScheduleError


def refused(step):
    with pytest.raises(ScheduleError) as caught:
        step()
    return str(caught.value)


def shape(schedule, name):
    """The extents of an allocated buffer."""
    return next(
        n.buffer.shape
        for n in walk(schedule.program.body)
        if isinstance(n, Alloc) and n.buffer.name == name
    )


def read_with(index, extent=12, reads=8):
    """a = x + 1, y[i] = a[index(i)]."""
    x = te.placeholder((extent,), "int32", "x", axes=("i",))
    a = te.compute((extent,), lambda i: x[i] + 1, "a")
    return te.compute((reads,), lambda i: a[index(i)] * 2, "y")


# -- compute_at: how much is computed ---------------------------------------------------------


@pytest.mark.parametrize(
    ("index", "needed"),
    [
        (lambda i: i, 4),
        (lambda i: i + 3, 4),
        (lambda i: 11 - i, 4),
        (lambda i: i // 2, 2),
        (lambda i: (i + 1) // 2, 3),
        (lambda i: i % 4, 4),
        (lambda i: i % 3, 3),
        (lambda i: te.minimum(i, 6), 4),
        (lambda i: te.maximum(i - 2, 0), 4),
        (lambda i: te.select(i < 3, i, 3), 8),
    ],
)
def test_a_stage_computes_the_box_that_one_iteration_reads(index, needed):
    y = read_with(index)
    s = create_schedule(y)
    s.split("y", "i", factor=4)
    s.compute_at("a", "y", "i_o")
    assert shape(s, "a") == (needed,)
    assert_unchanged(s, y)


def test_a_box_with_steps_spans_them():
    y = read_with(lambda i: i * 3, extent=24)
    s = create_schedule(y)
    s.split("y", "i", factor=4)
    s.compute_at("a", "y", "i_o")
    assert shape(s, "a") == (10,)
    assert_unchanged(s, y)


def test_several_reads_need_their_union():
    x = te.placeholder((10, 4), "int32", "x", axes=("i", "j"))
    a = te.compute((10, 4), lambda i, j: x[i, j] + 1, "a")
    y = te.compute((8, 4), lambda i, j: a[i, j] + a[i + 2, 3 - j], "y")
    s = create_schedule(y)
    s.split("y", "i", factor=2)
    s.compute_at("a", "y", "i_o")
    assert shape(s, "a") == (4, 4)
    assert_unchanged(s, y)


def test_the_text_before_and_after():
    y = read_with(lambda i: i + 1)
    s = create_schedule(y)
    s.split("y", "i", factor=4)
    s.compute_at("a", "y", "i_o")
    assert (
        str(s)
        == """\
program y(x: int32[12], y: int32[8]) -> y:
    produce y:
        for y.i_o in range(2):
            alloc a: int32[4]
            produce a:
                for a.i in range(4):
                    a[a.i] = x[y.i_o * 4 + a.i + 1] + 1
            for y.i_i in range(4):
                y[y.i_o * 4 + y.i_i] = a[y.i_i] * 2"""
    )


def test_parts_of_the_box_outside_the_tensor_are_skipped():
    y = read_with(lambda i: i, extent=7, reads=7)
    s = create_schedule(y)
    s.split("y", "i", factor=4)
    s.compute_at("a", "y", "i_o")
    assert (
        "if y.i_o * 4 + a.i < 7:\n                        a[a.i] = x[y.i_o * 4 + a.i] + 1" in str(s)
    )
    assert_unchanged(s, y)


def test_stages_further_in_are_skipped_with_the_rows_that_do_not_exist():
    (y,) = expressions.chain()
    s = create_schedule(y)
    s.cache_write("b", "acc")
    s.compute_at("b.acc", "b", "i")
    s.tile("y", "i", "j", 4, 4)
    s.compute_at("b", "y", "j_o")
    assert_unchanged(s, [y])


def test_a_halo_before_the_first_element_is_skipped():
    x = te.placeholder((8,), "int32", "x", axes=("i",))
    a = te.compute((8,), lambda i: x[i] + 1, "a")
    b = te.compute((8,), lambda i: te.select(i > 0, a[i - 1], 7), "b")
    y = te.compute((8,), lambda i: b[i] * 3, "y")
    s = create_schedule(y)
    s.split("y", "i", factor=3)
    s.compute_at("b", "y", "i_o")
    s.compute_at("a", "b", "i")
    assert "if 0 <= y.i_o * 3 + b.i - 1:" in str(s)
    assert_unchanged(s, y)


@pytest.mark.parametrize("outer", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("make", [expressions.padded_convolution, expressions.strided_convolution])
def test_a_convolution_in_tiles_of_any_size(make, outer):
    outputs = make()
    s = create_schedule(outputs)
    s.tile("y", "i", "j", outer, 2)
    s.reorder("y", "i_o", "j_o", "o", "i_i", "j_i")
    s.compute_at("conv", "y", "j_o")
    s.reorder("conv", "c", "o", "i", "j", "r", "s")
    s.compute_at("pad", "conv", "c")
    s.split("conv", "o", factor=2)
    s.reorder("conv", "o_o", "i", "j", "o_i")
    assert shape(s, "pad")[0] == 1
    assert_unchanged(s, outputs)


def test_a_reduction_moves_with_its_initial_values():
    outputs = expressions.matmul()
    s = create_schedule(outputs)
    s.split("y", "n", factor=3)
    s.reorder("y", "n_o", "m", "n_i")
    s.compute_at("low", "y", "n_o")
    s.compute_at("acc", "low", "m")
    assert s.stages() == ["y", "low", "acc.init", "acc"]
    assert shape(s, "acc") == (1, 3)
    assert_unchanged(s, outputs)


def test_a_stage_moves_in_further_and_further():
    (y,) = expressions.padded_convolution()
    s = create_schedule(y)
    s.compute_at("conv", "y", "o")
    s.compute_at("pad", "y", "o")
    s.compute_at("conv", "y", "i")
    s.compute_at("pad", "y", "i")
    s.compute_at("pad", "conv", "c")
    s.compute_at("pad", "conv", "r")
    assert shape(s, "pad") == (1, 1, 3)
    assert_unchanged(s, [y])


def test_all_readers_may_stand_in_the_loop():
    (y,) = expressions.chain()
    s = create_schedule(y)
    s.compute_at("b", "y", "i")
    s.compute_at("a", "y", "i")
    assert s.stages() == ["y", "a", "b"]
    assert shape(s, "a") == (1, 6)
    assert_unchanged(s, [y])


def test_what_is_read_from_memory_is_computed_whole():
    (y,) = expressions.gathered()
    s = create_schedule(y)
    s.compute_at("table", "y", "i")
    s.compute_at("where", "y", "i")
    assert (shape(s, "table"), shape(s, "where")) == ((6,), (1,))
    assert_unchanged(s, [y])


# -- compute_at: where it is refused ----------------------------------------------------------


def test_the_output_stays():
    x = te.placeholder((4,), "int32", "x")
    a = te.compute((4,), lambda i: x[i] + 1, "a")
    b = te.compute((4,), lambda i: a[i] + 1, "b")
    s = create_schedule([a, b])
    message = refused(lambda: s.compute_at("a", "b", "i"))
    assert message.startswith("a: cannot be computed at a loop, it is an output of a")
    assert "cache_write gives a stage that can move" in message
    s.cache_write("a", "global")
    assert "inputs" not in str(s)
    s.compute_at("a.global", "a", "i")
    assert_unchanged(s, [a, b])


@pytest.mark.parametrize(
    ("stage", "consumer", "loop", "message"),
    [
        ("nosuch", "y", "m", "y: no stage 'nosuch'; there are acc.init, acc, low, y"),
        ("low", "y", "q", "y: no loop 'q'; there are m, n"),
        (
            "acc",
            "y",
            "m",
            "acc: cannot be computed at y.m (extent 5), nothing in that loop reads it; "
            "it is read by low",
        ),
        (
            "low",
            "acc",
            "k",
            "low: cannot be computed at acc.k (extent 7), nothing in that loop reads it; "
            "it is read by y",
        ),
        (
            "acc",
            "acc",
            "k",
            "acc: cannot be computed at acc.k (extent 7), a loop inside acc itself",
        ),
        (
            "acc.init",
            "low",
            "m",
            "acc.init: the initial values move with their reduction; "
            "compute acc at that loop instead",
        ),
    ],
)
def test_compute_at_names_loop_and_reason(stage, consumer, loop, message):
    s = create_schedule(expressions.matmul())
    assert refused(lambda: s.compute_at(stage, consumer, loop)) == message


def test_a_reader_outside_the_loop_is_named():
    s = create_schedule(expressions.chain())
    assert refused(lambda: s.compute_at("a", "b", "i")) == (
        "a: cannot be computed at b.i (extent 5), y reads it outside that loop; "
        "compute y at that loop first"
    )


def test_a_stage_does_not_move_out_again():
    s = create_schedule(expressions.matmul())
    s.compute_at("low", "y", "n")
    assert refused(lambda: s.compute_at("low", "y", "m")) == (
        "low: cannot be computed at y.m (extent 5), it is computed inside y.n already "
        "and only moves further in"
    )


def test_an_axis_that_was_cut_before_cannot_be_restricted():
    s = create_schedule(expressions.matmul())
    s.split("acc", "m", 2)
    message = refused(lambda: s.compute_at("acc", "low", "m"))
    assert message == (
        "acc: cannot compute only 1 of 5 elements of axis 0 of acc, which is not written by one "
        "loop of that extent; call compute_at before the axis is split, fused or tensorized"
    )
    s.compute_at("low", "y", "n")  # other axes are not touched


# -- compute_inline ---------------------------------------------------------------------------


def test_an_inlined_stage_leaves_its_expression():
    (y,) = expressions.chain()
    s = create_schedule(y)
    s.compute_inline("b")
    assert s.stages() == ["a", "y"]
    assert "y[y.i, y.j] = a[y.i, y.j] * a[y.i, y.j] - a[y.i, y.j]" in str(s)
    s.compute_inline("a")
    assert s.stages() == ["y"]
    assert_unchanged(s, [y])


def test_an_inlined_selection_still_guards_its_reads():
    outputs = expressions.padded_convolution()
    s = create_schedule(outputs)
    s.compute_inline("pad")
    assert_unchanged(s, outputs)


def test_a_stage_of_extent_one_is_inlined():
    x = te.placeholder((1, 4), "int32", "x")
    a = te.compute((1, 4), lambda i, j: x[i, j] + 1, "a")
    y = te.compute((1, 4), lambda i, j: a[i, j] * 2, "y")
    s = create_schedule(y)
    s.split("y", "j", 2)
    s.compute_at("a", "y", "j_o")
    s.compute_inline("a")
    assert s.stages() == ["y"]
    assert_unchanged(s, y)


@pytest.mark.parametrize(
    ("prepare", "stage", "message"),
    [
        (None, "y", "y: an output of y cannot be inlined"),
        (None, "acc", "acc: a reduction cannot be inlined; compute_at moves it"),
        (None, "acc.init", "acc.init: a reduction cannot be inlined"),
        (lambda s: s.split("low", "m", 2), "low", "low: only a plain nest, one loop per axis"),
        (lambda s: s.compute_at("acc", "low", "m"), "low", "low: only a plain nest"),
    ],
)
def test_inlining_is_refused_with_a_reason(prepare, stage, message):
    s = create_schedule(expressions.matmul())
    if prepare:
        prepare(s)
    assert refused(lambda: s.compute_inline(stage)).startswith(message)


# -- caches and scopes ------------------------------------------------------------------------


def test_a_cached_input_is_copied_at_the_start():
    outputs = expressions.matmul()
    s = create_schedule(outputs)
    assert s.cache_read("w", "wgt", ["acc"]) == "w.wgt"
    assert s.stages() == ["w.wgt", "acc.init", "acc", "low", "y"]
    assert s.loops("w.wgt") == ["n", "k"]
    s.compute_at("w.wgt", "acc", "n")
    assert shape(s, "w.wgt") == (1, 7)
    assert_unchanged(s, outputs)


def test_a_cached_stage_is_copied_after_it_was_computed_for_some_readers():
    (y,) = expressions.chain()
    s = create_schedule(y)
    assert s.cache_read("a", "acc", "b") == "a.acc"
    assert s.stages() == ["a", "a.acc", "b", "y"]
    assert "b[b.i, b.j] = a.acc[b.i, b.j] * a.acc[b.i, b.j]" in str(s)
    assert "y[y.i, y.j] = b[y.i, y.j] - a[y.i, y.j]" in str(s)
    assert_unchanged(s, [y])


def test_a_tensor_is_computed_in_another_memory_and_copied_out():
    outputs = expressions.matmul()
    s = create_schedule(outputs)
    assert s.cache_write("acc", "acc") == "acc.acc"
    assert s.stages() == ["acc.acc.init", "acc.acc", "acc", "low", "y"]
    assert s.loops("acc.acc") == ["m", "n", "k"]
    assert s.loops("acc") == ["m", "n"]
    s.compute_at("acc.acc", "acc", "m")
    s.split("acc.acc", "k", 4)
    assert_unchanged(s, outputs)


def test_a_copy_of_a_stage_that_reaches_past_its_tensor_skips_the_same_elements():
    y = read_with(lambda i: i, extent=7, reads=7)
    s = create_schedule(y)
    s.split("y", "i", factor=4)
    s.compute_at("a", "y", "i_o")
    s.cache_write("a", "acc")
    s.cache_read("a", "inp", ["y"])
    assert str(s).count("if y.i_o * 4 +") == 4
    assert_unchanged(s, y)


def test_a_copy_of_a_cut_stage_that_reaches_past_its_tensor_is_refused():
    y = read_with(lambda i: i, extent=7, reads=7)
    s = create_schedule(y)
    s.split("y", "i", factor=4)
    s.compute_at("a", "y", "i_o")
    s.split("a", "i", factor=2)
    assert refused(lambda: s.cache_write("a", "acc")).startswith(
        "a: cannot be copied, it is computed in part by loops that are split or fused"
    )


def test_scopes_are_set():
    s = create_schedule(expressions.matmul())
    s.set_scope("acc", "acc")
    assert "alloc acc: int32[5, 6] in acc" in str(s)


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (lambda s: s.cache_read("w", "wgt", ["low"]), "w: low does not read it; it is read by acc"),
        (lambda s: s.cache_read("w", "wgt", []), "w: cache_read needs at least one consumer"),
        (
            lambda s: s.cache_read("w", "wgd", ["acc"]),
            "w: no scope 'wgd'; did you mean 'wgt'? There are global, inp, wgt, acc",
        ),
        (
            lambda s: s.cache_read("v", "wgt", ["acc"]),
            "y: no tensor 'v'; there are x, w, y, acc, low",
        ),
        (
            lambda s: s.cache_read("acc", "acc", ["acc"]),
            "acc: acc does not read it; it is read by low",
        ),
        (lambda s: s.cache_write("w", "wgt"), "w: an input is not computed; use cache_read"),
        (
            lambda s: s.set_scope("low", "sram"),
            "low: no scope 'sram'; there are global, inp, wgt, acc",
        ),
        (
            lambda s: s.set_scope("w", "wgt"),
            "w: a parameter of y stays in global; copy it with cache_read or cache_write",
        ),
    ],
)
def test_caches_and_scopes_are_refused_with_a_reason(step, message):
    s = create_schedule(expressions.matmul())
    assert refused(lambda: step(s)) == message


def test_a_second_copy_of_the_same_kind_is_refused():
    s = create_schedule(expressions.matmul())
    s.cache_read("w", "wgt", ["acc"])
    assert "there is a stage w.wgt already" in refused(lambda: s.cache_read("w", "wgt", ["acc"]))


# -- vthread ----------------------------------------------------------------------------------


def test_virtual_threads_have_their_own_buffers():
    outputs = expressions.matmul()
    s = create_schedule(outputs)
    s.split("y", "n", nparts=2)
    s.reorder("y", "n_o", "m", "n_i")
    message = refused(
        lambda: (
            s.compute_at("low", "y", "n_o"),
            s.compute_at("acc", "low", "m"),
            s.vthread("low", "m"),
        )
    )
    assert message == (
        "low.m (extent 5): cannot be virtual threads, they share low: it is allocated outside the "
        "loop; move the loop outside with reorder and compute low at it or further in"
    )
    s.vthread("y", "n_o")
    assert "for y.n_o in vthread(2):" in str(s)
    assert_unchanged(s, outputs)


def test_a_copy_is_made_before_there_are_virtual_threads():
    s = create_schedule(expressions.matmul())
    s.vthread("y", "m")
    assert refused(lambda: s.cache_write("y", "global")) == (
        "y.m (extent 5): its virtual threads would share the copy; call cache_write before vthread"
    )


def test_virtual_threads_do_not_add_to_one_output():
    x = te.placeholder((4, 6), "int32", "x")
    k = te.reduce_axis(6, "k")
    s = create_schedule(te.compute((4,), lambda i: te.sum(x[i, k], axis=k), "y"))
    assert "each virtual thread adds to the same elements" in refused(lambda: s.vthread("y", "k"))
    s.vthread("y", "i")
