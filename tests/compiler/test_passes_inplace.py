"""ALU operations come to work in place, or the reason they cannot is given."""

from __future__ import annotations

import numpy as np
import pytest

from compiler.intrinsics import alu
from compiler.ir.build import add, const, floormod, mul, seq, sub
from compiler.ir.interpreter import run
from compiler.ir.nodes import (
    Alloc,
    Buffer,
    Expr,
    For,
    Intrinsic,
    Load,
    Program,
    Region,
    Scope,
    Stmt,
    Store,
    TensorCall,
    Var,
)
from compiler.ir.visit import allocated_buffers, substitute, walk
from compiler.passes.inplace import unify_in_place
from vta_isa import CompileError, load_machine

TINY = load_machine("tiny")
E, J, T = Var("i"), Var("j"), Var("t")
N = 6
ZERO = const(0)


def acc(name: str, *shape: int) -> Buffer:
    return Buffer(name, (*(shape or (N,)), 1, 4), "int32", Scope.ACC)


X, Y, Z, W = (acc(name) for name in "xyzw")
IN, IN2, OUT = (Buffer(name, (N, 1, 4), "int32") for name in ("in", "in2", "out"))
FRESH = iter(range(1 << 20))


def fresh() -> Var:
    return Var(f"v{next(FRESH)}")


def copy(to: Buffer, source: Buffer, start: Expr = ZERO, count: int = N) -> Stmt:
    i, k = fresh(), fresh()
    at = add(i, start)
    body = Store(to, (at, const(0), k), Load(source, (at, const(0), k)))
    return For(i, count, For(k, 4, body))


def apply(op: Intrinsic, *buffers: Buffer, at: Expr = E, count: int = N, var: Var = E) -> Stmt:
    regions = tuple(Region(b, (at, const(0), const(0)), (1, 1, 4)) for b in buffers)
    fresh_var = fresh()
    return For(fresh_var, count, substitute(TensorCall(op, regions), {var: fresh_var}))


ADD, MAX, SHR = alu(TINY, "add"), alu(TINY, "max"), alu(TINY, "shr")
SHIFT, FLOOR = alu(TINY, "shr", 1), alu(TINY, "max", 0)


def program(body: Stmt, *buffers: Buffer) -> Program:
    for buffer in buffers:
        body = Alloc(buffer, body)
    return Program("p", (IN, IN2, OUT), body, (OUT,))


def unified(before: Program) -> Program:
    """After the pass: in place everywhere, and computing the same."""
    after = unify_in_place(before)
    rng = np.random.default_rng(0)
    arrays = {b.name: rng.integers(-99, 99, b.shape).astype(b.dtype) for b in before.params}
    expected = {k: v.copy() for k, v in arrays.items()}
    run(before, expected)
    run(after, arrays)
    np.testing.assert_array_equal(arrays["out"], expected["out"])
    for stmt in walk(after.body):
        if isinstance(stmt, TensorCall):
            assert stmt.operands[0] == stmt.operands[1]
    return after


def buffers(after: Program) -> list[str]:
    return sorted(b.name for b in allocated_buffers(after.body))


def test_a_chain_becomes_one_buffer() -> None:
    steps = [copy(X, IN), apply(SHIFT, Y, X), apply(FLOOR, Z, Y), copy(OUT, Z)]
    assert buffers(unified(program(seq(steps), X, Y, Z))) == ["x"]


@pytest.mark.parametrize("order", [(X, W), (W, X)])
def test_a_commutative_operation_takes_either_operand(order: tuple[Buffer, Buffer]) -> None:
    """``w`` is needed later, so the sum goes over ``x``, wherever that stands."""
    steps = [
        copy(X, IN),
        copy(W, IN2),
        apply(ADD, Y, *order),
        apply(MAX, Z, Y, W),
        copy(OUT, Z),
    ]
    assert buffers(unified(program(seq(steps), X, Y, Z, W))) == ["w", "x"]


def test_what_is_in_place_already_stays() -> None:
    steps = [copy(X, IN), apply(SHIFT, X, X), apply(ADD, X, X, X), copy(OUT, X)]
    before = program(seq(steps), X)
    assert unify_in_place(before) == before


def test_the_outer_allocation_stays() -> None:
    inner = Alloc(X, seq([copy(X, IN), apply(SHIFT, Y, X)]))
    after = unified(program(seq([inner, copy(OUT, Y)]), Y))
    assert buffers(after) == ["x"]
    assert isinstance(after.body, Alloc)


def test_tiles_are_unified_inside_their_loop() -> None:
    """Each iteration allocates its own: nothing is read again later."""
    start = mul(T, const(2))
    steps = [
        copy(X, IN, start, 2),
        apply(SHIFT, Y, X, at=add(start, E), count=2),
        copy(OUT, Y, start, 2),
    ]
    loop = For(T, 3, Alloc(X, Alloc(Y, seq(steps))))
    assert buffers(unified(program(loop))) == ["x"]


def refuse(body: Stmt, *allocated: Buffer, match: str) -> None:
    with pytest.raises(CompileError, match=match) as caught:
        unify_in_place(program(body, *allocated))
    assert str(caught.value).startswith("in place: ")
    assert "alu_" in str(caught.value), "the message shows the operation"


def test_an_operand_that_is_needed_later() -> None:
    steps = [copy(X, IN), apply(SHIFT, Y, X), apply(ADD, Y, Y, X), copy(OUT, Y)]
    refuse(seq(steps), X, Y, match="x is read again later")


def test_an_operand_that_the_next_iteration_needs() -> None:
    body = For(T, 2, seq([apply(SHIFT, Y, X), copy(OUT, Y)]))
    refuse(seq([copy(X, IN), body]), X, Y, match="an entry of x is used more than once")


def test_a_second_operand_does_not_help_where_order_matters() -> None:
    steps = [copy(X, IN), copy(W, IN2), apply(SHR, Y, X, W), apply(ADD, Y, Y, X), copy(OUT, Y)]
    refuse(seq(steps), X, Y, W, match="x is read again later")


def test_a_destination_in_use_before() -> None:
    steps = [copy(X, IN), copy(Y, IN2), copy(OUT, Y), apply(SHIFT, Y, X), copy(OUT, Y)]
    refuse(seq(steps), X, Y, match="y is in use before")


def test_different_entries() -> None:
    dst = Region(Y, (E, const(0), const(0)), (1, 1, 4))
    src = Region(X, (sub(const(N - 1), E), const(0), const(0)), (1, 1, 4))
    body = For(E, N, TensorCall(SHIFT, (dst, src)))
    refuse(seq([copy(X, IN), body, copy(OUT, Y)]), X, Y, match="x and y are not indexed alike")
    same = For(
        J,
        N,
        TensorCall(
            SHIFT,
            (
                Region(X, (J, *dst.start[1:]), dst.shape),
                Region(X, (sub(const(N - 1), J), const(0), const(0)), (1, 1, 4)),
            ),
        ),
    )
    refuse(seq([copy(X, IN), same]), X, match="x is read and written at different entries")


def test_different_shapes() -> None:
    small = acc("small", 2)
    dst = Region(Y, (E, const(0), const(0)), (1, 1, 4))
    src = Region(small, (floormod(E, 2), const(0), const(0)), (1, 1, 4))
    body = For(E, N, TensorCall(SHIFT, (dst, src)))
    refuse(
        seq([copy(small, IN, count=2), body]), small, Y, match=r"small has the shape \(2, 1, 4\)"
    )


def test_an_entry_used_twice() -> None:
    dst = Region(Y, (const(0), const(0), const(0)), (1, 1, 4))
    src = Region(X, (const(0), const(0), const(0)), (1, 1, 4))
    body = For(E, 2, TensorCall(SHIFT, (dst, src)))
    refuse(seq([copy(X, IN), body, copy(OUT, Y, count=1)]), X, Y, match="used more than once")
