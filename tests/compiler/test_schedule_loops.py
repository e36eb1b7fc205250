"""Primitives on the loops of one stage."""

import expressions
import pytest
from scheduled import assert_unchanged

from compiler import te
from compiler.ir.nodes import (
    Binary,
    BinaryOp,
    Buffer,
    For,
    Load,
    LoopKind,
    Produce,
    Program,
    Store,
    Var,
)
from compiler.ir.printer import to_text
from compiler.ir.visit import loops
from compiler.schedule import Schedule, create_schedule
from vta_isa.errors import ScheduleError


def vector(extent=7):
    x = te.placeholder((extent,), "int32", "x", axes=("i",))
    return te.compute((extent,), lambda i: x[i] * 2, "y")


def nest_text(schedule, stage):
    """The lines of one stage's nest."""
    lines = str(schedule).splitlines()
    start = lines.index(f"    produce {stage}:")
    end = next(
        (n for n in range(start + 1, len(lines)) if lines[n].startswith("    produce")), None
    )
    return "\n".join(line[8:] for line in lines[start + 1 : end])


def refused(step):
    with pytest.raises(ScheduleError) as caught:
        step()
    return str(caught.value)


# -- split ------------------------------------------------------------------------------------


@pytest.mark.parametrize("factor", [1, 2, 3, 6, 7, 8, 20])
def test_split_by_any_factor_computes_the_same(factor):
    y = vector()
    s = create_schedule(y)
    assert s.split(y, "i", factor=factor) == ("i_o", "i_i")
    assert s.extents(y) == {"i_o": -(-7 // factor), "i_i": factor}
    assert ("if" in str(s)) == (7 % factor != 0)
    assert_unchanged(s, y)


@pytest.mark.parametrize("nparts", [1, 2, 3, 7, 9])
def test_split_into_any_number_of_parts_computes_the_same(nparts):
    y = vector()
    s = create_schedule(y)
    s.split(y, "i", nparts=nparts)
    assert s.extents(y)["i_o"] == nparts
    assert_unchanged(s, y)


def test_split_guards_a_tail():
    y = vector()
    s = create_schedule(y)
    s.split("y", "i", factor=4)
    assert (
        nest_text(s, "y")
        == """\
for y.i_o in range(2):
    for y.i_i in range(4):
        if y.i_o * 4 + y.i_i < 7:
            y[y.i_o * 4 + y.i_i] = x[y.i_o * 4 + y.i_i] * 2"""
    )


def test_guards_of_two_splits_go_below_all_loops():
    (y,) = expressions.chain()
    s = create_schedule(y)
    s.split("y", "i", 2)
    s.split("y", "j", 4)
    s.split("y", "i_o", 2)
    assert s.loops("y") == ["i_o_o", "i_o_i", "i_i", "j_o", "j_i"]
    s.reorder("y", "j_i", "i_i", "j_o", "i_o_i", "i_o_o")
    assert_unchanged(s, [y])


def test_a_reduction_axis_splits_with_a_guard_too():
    outputs = expressions.matmul()
    s = create_schedule(outputs)
    s.split("acc", "k", 3)
    s.reorder("acc", "k_o", "n", "m", "k_i")
    assert_unchanged(s, outputs)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"factor": 0}, r"y.i \(extent 7\): cannot split with factor = 0; use an integer from 1"),
        ({"nparts": -1}, "cannot split with nparts = -1"),
        ({"factor": 2.0}, "factor = 2.0"),
        ({}, "split takes factor= or nparts=, one of the two"),
        ({"factor": 2, "nparts": 2}, "one of the two"),
    ],
)
def test_split_refuses_what_is_no_size(options, message):
    s = create_schedule(vector())
    with pytest.raises(ScheduleError, match=message):
        s.split("y", "i", **options)


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (
            lambda s: s.split("yy", "i", 2),
            "y: no stage 'yy'; did you mean 'y'? There are a, b, y",
        ),
        (lambda s: s.split("y", "ii", 2), "y: no loop 'ii'; did you mean 'i'? There are i, j"),
        (lambda s: s.split("y", "zzz", 2), "y: no loop 'zzz'; there are i, j"),
        (lambda s: s.loops("conv"), "y: no stage 'conv'; there are a, b, y"),
    ],
)
def test_unknown_names_are_answered_with_the_nearest(step, message):
    s = create_schedule(expressions.chain())
    assert refused(lambda: step(s)) == message


def test_a_refused_step_changes_nothing():
    s = create_schedule(vector())
    before = s.program
    refused(lambda: s.split("y", "i", 0))
    assert s.program is before
    assert s.steps == []


# -- fuse, reorder, tile ----------------------------------------------------------------------


def test_fuse_counts_through_both_loops():
    (y,) = expressions.chain()
    s = create_schedule(y)
    assert s.fuse("y", "i", "j") == "i_j"
    assert s.extents("y") == {"i_j": 30}
    assert "y[y.i_j // 6, y.i_j % 6] = b[y.i_j // 6, y.i_j % 6]" in str(s)
    assert_unchanged(s, [y])


def test_splitting_a_fused_loop_where_it_was_fused_restores_the_indices():
    (y,) = expressions.chain()
    s = create_schedule(y)
    s.fuse("y", "i", "j")
    s.split("y", "i_j", factor=6)
    assert_unchanged(s, [y])


def test_fuse_needs_one_loop_directly_inside_the_other():
    (y,) = expressions.matmul()
    s = create_schedule(y)
    assert refused(lambda: s.fuse("acc", "m", "k")) == (
        "acc.m (extent 5): cannot fuse with acc.k (extent 7), which is not directly inside it; "
        "the loop directly inside it is n; reorder first"
    )
    assert "it has no loop directly inside it" in refused(lambda: s.fuse("y", "n", "m"))


@pytest.mark.parametrize("order", [("k", "n", "m"), ("n", "k"), ("k", "m"), ("m", "n", "k")])
def test_reorder_keeps_the_places_of_other_loops(order):
    outputs = expressions.matmul()
    s = create_schedule(outputs)
    s.reorder("acc", *order)
    places = [name if name not in order else None for name in ("m", "n", "k")]
    wanted = iter(order)
    assert s.loops("acc") == [name or next(wanted) for name in places]
    assert_unchanged(s, outputs)


def test_reorder_refuses_loops_with_something_between():
    s = create_schedule(expressions.chain())
    s.compute_at("b", "y", "i")
    assert refused(lambda: s.reorder("y", "j", "i")) == (
        "y.j (extent 6): cannot reorder, other statements stand between it and y.i (extent 5); "
        "reorder before computing stages at that loop"
    )


@pytest.mark.parametrize("order", [("i",), ("i", "i"), ()])
def test_reorder_takes_several_different_loops(order):
    s = create_schedule(expressions.chain())
    assert "takes two or more different loops" in refused(lambda: s.reorder("y", *order))


def accumulation(op):
    """for i: for j: for k: y[k] = y[k] op x[i, j]"""
    i, j, k = Var("y.i"), Var("y.j"), Var("y.k")
    x, y = Buffer("x", (3, 4), "int32"), Buffer("y", (2,), "int32")
    value = Binary(op, Load(y, (k,)), Load(x, (i, j)), "int32")
    nest = For(i, 3, For(j, 4, For(k, 2, Store(y, (k,), value))))
    return Schedule(Program("p", (x, y), Produce("y", nest), (y,)))


def test_loops_of_an_accumulation_change_places_only_if_it_commutes():
    accumulation(BinaryOp.ADD).reorder("y", "j", "i")
    accumulation(BinaryOp.SUB).reorder("y", "k", "i", "j")
    message = refused(lambda: accumulation(BinaryOp.SUB).reorder("y", "j", "i"))
    assert message == (
        "y: cannot reorder i, j: y is accumulated by an operation that depends on the order; "
        "these loops must stay in the order i, j"
    )


def test_tile_makes_blocks():
    (y,) = expressions.chain()
    s = create_schedule(y)
    assert s.tile("y", "i", "j", 2, 4) == ("i_o", "j_o", "i_i", "j_i")
    assert s.extents("y") == {"i_o": 3, "j_o": 2, "i_i": 2, "j_i": 4}
    assert_unchanged(s, [y])


# -- marks and names --------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["unroll", "vectorize", "parallel", "vthread"])
def test_a_loop_is_marked(kind):
    y = vector()
    s = create_schedule(y)
    getattr(s, kind)("y", "i")
    assert loops(s.program.body)[0].kind is LoopKind(kind)
    assert f"for y.i in {kind}(7):" in str(s)
    assert_unchanged(s, y)


@pytest.mark.parametrize("step", ["split", "fuse", "unroll", "vthread"])
def test_a_marked_loop_is_not_changed_again(step):
    s = create_schedule(expressions.chain())
    s.parallel("y", "i")
    args = {"split": ("y", "i", 2), "fuse": ("y", "i", "j")}.get(step, ("y", "i"))
    message = refused(lambda: getattr(s, step)(*args))
    assert message.startswith(
        f"y.i (extent 5): cannot {step} a loop that is parallel; {step} it before"
    )


@pytest.mark.parametrize("kind", ["vectorize", "parallel"])
def test_iterations_that_add_to_one_element_run_in_order(kind):
    s = create_schedule(expressions.matmul())
    message = refused(lambda: getattr(s, kind)("acc", "k"))
    assert message.startswith("acc.k (extent 7): cannot be ")
    assert "its iterations write the same elements of acc" in message


def test_only_an_innermost_loop_is_vectorized():
    s = create_schedule(expressions.chain())
    message = refused(lambda: s.vectorize("y", "i"))
    assert message == (
        "y.i (extent 5): cannot be vectorized, it holds the loop y.j; only an innermost loop can, "
        "reorder it inside"
    )


def test_annotations_are_kept_and_replaced():
    s = create_schedule(vector())
    s.annotate("y", "i", "pragma", 1)
    s.annotate("y", "i", "pragma", 2)
    s.annotate("y", "i", "other", "x")
    assert loops(s.program.body)[0].annotations == {"pragma": 2, "other": "x"}
    s.split("y", "i", 7)
    assert "range(7):" in str(s)


def test_a_loop_gets_another_name():
    y = vector()
    s = create_schedule(y)
    assert s.rename("y", "i", "lane") == "lane"
    assert s.loops("y") == ["lane"]
    assert_unchanged(s, y)
    assert "'a b' is no name for a loop" in refused(lambda: s.rename("y", "lane", "a b"))


def test_two_loops_never_get_one_name():
    s = create_schedule(expressions.chain())
    assert (
        refused(lambda: s.rename("y", "i", "j"))
        == "y: there is a loop y.j already; rename it first"
    )
    s.rename("y", "j", "i_o")
    assert "there is a loop y.i_o already" in refused(lambda: s.split("y", "i", 2))


# -- steps ------------------------------------------------------------------------------------


def test_the_trace_is_python_and_replays():
    outputs = expressions.matmul()
    s = create_schedule(outputs)
    s.split("y", "m", factor=2)
    s.split("y", "n", nparts=2)
    s.reorder("y", "m_o", "n_o", "m_i", "n_i")
    s.compute_at("low", "y", "n_o")
    s.cache_read("x", "inp", ["acc"])
    assert (
        s.trace()
        == """\
s.split('y', 'm', factor=2)
s.split('y', 'n', nparts=2)
s.reorder('y', 'm_o', 'n_o', 'm_i', 'n_i')
s.compute_at('low', 'y', 'n_o')
s.cache_read('x', 'inp', ['acc'])"""
    )
    by_hand = create_schedule(outputs)
    exec(s.trace(), {"s": by_hand})
    assert to_text(by_hand.program) == to_text(s.program)
    again = s.replay_on(create_schedule(outputs))
    assert again.program == s.program
    assert again.steps == s.steps


def test_a_schedule_lists_its_stages_and_loops():
    s = create_schedule(expressions.matmul())
    assert s.stages() == ["acc.init", "acc", "low", "y"]
    assert s.loops("acc") == ["m", "n", "k"]
    assert s.extents("acc") == {"m": 5, "n": 6, "k": 7}


def test_parameters_are_the_inputs_as_they_are_met_or_as_asked():
    (y,) = expressions.matmul()
    x, w = (t for t in te.topological([y]) if t.definition is None)
    assert [b.name for b in create_schedule(y).program.params] == ["x", "w", "y"]
    assert [b.name for b in create_schedule(y, [w, x]).program.params] == ["w", "x", "y"]
    assert "inputs lacks w" in refused(lambda: create_schedule(y, [x]))
    assert "output x is a placeholder" in refused(lambda: create_schedule(x))
    assert "no output tensor given" in refused(lambda: create_schedule([]))
