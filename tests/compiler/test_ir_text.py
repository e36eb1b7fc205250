"""Programs as text; faults of programs that are not well formed; walking."""

import pytest

from compiler import intrinsics
from compiler.ir.build import ZERO, add, block, less, mul, seq, sub, unblock
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
    DmaLoad,
    DmaStore,
    Emit,
    For,
    If,
    Load,
    LoopKind,
    Not,
    Produce,
    Program,
    Region,
    Scope,
    Select,
    Seq,
    Store,
    Synchronize,
    TensorCall,
    UopKernel,
    UopLoop,
    UopPush,
    Var,
)
from compiler.ir.printer import to_text
from compiler.ir.verify import verify
from compiler.ir.visit import (
    map_expr,
    map_stmt,
    rename_loops,
    replace_buffers,
    substitute,
    variables,
    walk,
)
from vta_isa.enums import AluOp, Stage
from vta_isa.errors import CompileError
from vta_isa.machine import load_machine

A, B, C = (Var(name) for name in "abc")
X = Buffer("x", (4, 4), "int32")
T = Buffer("t", (2, 1, 4), "int32", Scope.ACC)


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (mul(add(A, B), C), "(a + b) * c"),
        (add(mul(A, B), C), "a * b + c"),
        (sub(A, sub(B, C)), "a - (b - c)"),
        (sub(sub(A, B), C), "a - b - c"),
        (sub(A, Const(-3)), "a - -3"),
        (less(add(A, B), C), "a + b < c"),
        (Not(less(A, B)), "not a < b"),
        (Binary(BinaryOp.AND, less(A, B), less(B, C), "bool"), "a < b and b < c"),
        (
            Binary(BinaryOp.EQ, Cast(less(A, B), "int8"), Cast(C, "int8"), "bool"),
            "int8(a < b) == int8(c)",
        ),
        (Binary(BinaryOp.SHR, add(A, B), C), "a + b >> c"),
        (Binary(BinaryOp.MIN, A, add(B, C)), "min(a, b + c)"),
        (Select(less(A, B), A, B), "select(a < b, a, b)"),
        (Load(X, (A, add(B, C))), "x[a, b + c]"),
        (Const(1, "bool"), "True"),
        (Const(0.5, "float32"), "0.5"),
    ],
)
def test_expressions_have_as_few_parentheses_as_python_needs(expr, text):
    assert to_text(expr) == text


def test_a_program_reads_from_top_to_bottom():
    inner = Seq(
        (
            Store(T, (A, ZERO, B), Const(0, "int32")),
            If(
                less(A, B), Store(X, (A, B), Const(1, "int32")), Store(X, (B, A), Const(2, "int32"))
            ),
        )
    )
    nest = Produce(
        "x", For(A, 2, Alloc(T, For(B, 4, inner, LoopKind.UNROLL, {"note": 1})), LoopKind.VTHREAD)
    )
    assert (
        to_text(Program("p", (X,), nest, (X,)))
        == """\
program p(x: int32[4, 4]) -> x:
    produce x:
        for a in vthread(2):
            alloc t: int32[2, 1, 4] in acc
            for b in unroll(4):  # note=1
                t[a, 0, b] = 0
                if a < b:
                    x[a, b] = 1
                else:
                    x[b, a] = 2"""
    )


def test_statements_of_the_machine_are_printed_too():
    load = DmaLoad(
        T, A, X, Const(8), Const(4), Const(2), Const(16), (ZERO, Const(1)), (ZERO, ZERO), widen=True
    )
    store = DmaStore(T, A, X, add(A, B), Const(4), Const(2), Const(16))
    kernel = UopKernel(
        Emit("alu", alu_op=AluOp.SHR, imm=3),
        (UopLoop(4, 1, 2, 0),),
        UopPush(Emit("alu"), A, ZERO, ZERO),
        (A,),
    )
    deps = (DepPush(Stage.LOAD, Stage.COMPUTE), DepPop(Stage.COMPUTE, Stage.STORE), Synchronize())
    call = Call("VTAStoreBuffer2D", (X, Const(3)))
    assert (
        to_text(Coproc(Stage.LOAD, Seq((load, store, kernel, *deps, call, Seq(())))))
        == """\
on load:
    load t@a <- x@8, 2 x 4, stride=16, pad=(0, 0, 0, 1), widen
    store t@a -> x@(a + b), 2 x 4, stride=16
    kernel(a) alu shr imm=3:
        repeat 4: dst+1 src+2 wgt+0
        uop alu dst=a src=0 wgt=0
    push load -> compute
    pop compute -> store
    synchronize
    VTAStoreBuffer2D(x, 3)
    pass"""
    )


def test_a_tensorized_call_shows_its_boxes_and_its_immediate():
    shift = intrinsics.alu(load_machine("tiny"), "shr", -2)
    box = Region(T, (A, ZERO, ZERO), (1, 1, 4))
    assert to_text(TensorCall(shift, (box, box))) == "alu_shr(t[a, 0, 0:+4], t[a, 0, 0:+4], imm=-2)"


# -- verify -----------------------------------------------------------------------------------


def faults(body, params=(X,), outputs=(X,), machine=None):
    with pytest.raises(CompileError) as caught:
        verify(Program("p", params, body, outputs), machine)
    return str(caught.value)


def store(*indices, value=None, buffer=X):
    return Store(buffer, indices, value or Const(0, "int32"))


def test_a_good_program_passes():
    verify(Program("p", (X,), For(A, 4, For(B, 4, store(A, B))), (X,)))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (Seq((For(A, 4, store(A, A)), For(A, 4, store(A, A)))), "two loops are named a"),
        (For(A, 0, store(A, A)), "loop a: extent 0 is less than 1"),
        (store(A, ZERO), "variable a is used outside its loop"),
        (store(ZERO), "x: 1 indices for 2 axes"),
        (store(ZERO, Cast(ZERO, "int32")), "index int32(0) of x: int32 where int64 is needed"),
        (store(ZERO, ZERO, value=Const(0, "int8")), "store to x: int8 where int32 is needed"),
        (store(ZERO, ZERO, ZERO, buffer=T), "buffer t is used outside its allocation"),
        (
            store(ZERO, ZERO, buffer=Buffer("x", (2, 2), "int32")),
            "buffer x: int32[2, 2] is declared as x: int32[4, 4]",
        ),
        (Alloc(X, store(ZERO, ZERO)), "two buffers are named x"),
        (
            Alloc(Buffer("u", (0,), "int8"), store(ZERO, ZERO)),
            "buffer u: int8[0]: extents are at least 1",
        ),
        (Alloc(Buffer("u", (1,), "int9"), store(ZERO, ZERO)), "unknown type int9"),
        (
            Seq((Produce("s", store(ZERO, ZERO)), Produce("s", store(ZERO, ZERO)))),
            "two stages are named s",
        ),
        (If(ZERO, store(ZERO, ZERO)), "if 0: int64 where bool is needed"),
        (
            store(ZERO, ZERO, value=Cast(add(ZERO, Const(0, "int8")), "int32")),
            "+ in 0 + 0: int8 where int64",
        ),
        (
            store(ZERO, ZERO, value=Select(ZERO, Const(1, "int32"), Const(2, "int32"), "int32")),
            "condition of select",
        ),
        (store(ZERO, ZERO, value=Cast(Not(ZERO), "int32")), "not 0: int64 where bool is needed"),
    ],
)
def test_each_fault_is_named(body, message):
    assert message in faults(body)


def test_all_faults_are_listed():
    text = faults(For(A, 0, store(B)), outputs=(T,))
    assert text.count("\n") == 4
    assert "output t: int32[2, 1, 4] in acc is not a parameter" in text


def test_parameters_are_in_dram():
    assert "parameter t: int32[2, 1, 4] in acc must be in global" in faults(
        store(ZERO, ZERO), (X, T)
    )


def test_scratchpad_buffers_end_in_an_entry_of_the_machine():
    machine = load_machine("tiny")
    verify(Program("p", (X,), Alloc(T, store(ZERO, ZERO)), (X,)), machine)
    bad = Buffer("t", (1, 4), "int8", Scope.WGT)
    text = faults(Alloc(bad, store(ZERO, ZERO)), machine=machine)
    assert "t: int8[1, 4] in wgt: does not end in one WGT entry, int8[4, 4]" in text


def test_operands_of_an_intrinsic_are_checked():
    reset = intrinsics.gemm_reset(load_machine("tiny"))
    inp = Buffer("u", (2, 1, 4), "int8", Scope.INP)
    wrong = TensorCall(
        reset, (Region(inp, (ZERO, ZERO, ZERO), (2, 1, 4)), Region(T, (ZERO,) * 3, (1, 1, 4)))
    )
    text = faults(Alloc(inp, Alloc(T, wrong)))
    assert "gemm_reset: 2 operands for 1 formals" in text
    assert "operand acc in u: int8[2, 1, 4] in inp: int8 where int32 is needed" in text
    assert "must be in acc" in text
    assert "the box [2, 1, 4] is not one [1, 4]" in text


# -- walking ----------------------------------------------------------------------------------

NEST = For(A, 2, For(B, 3, Store(X, (A, B), Cast(add(A, B), "int32"))))


def test_substitution_replaces_uses():
    assert (
        to_text(substitute(NEST.body, {A: Const(5)}))
        == "for b in range(3):\n    x[5, b] = int32(5 + b)"
    )


def test_loops_are_renamed_with_their_uses():
    assert to_text(rename_loops(NEST, {B: C})).splitlines()[1:] == [
        "    for c in range(3):",
        "        x[a, c] = int32(a + c)",
    ]


def test_buffers_are_replaced_in_statements_expressions_and_regions():
    y = Buffer("y", (4, 4), "int32")
    both = Seq(
        (
            Store(X, (A, B), Load(X, (B, A))),
            TensorCall(intrinsics.gemm_reset(load_machine("tiny")), (Region(X, (A, B), (1, 4)),)),
        )
    )
    assert to_text(replace_buffers(both, {"x": y})) == "y[a, b] = y[b, a]\ngemm_reset(y[a, b:+4])"


def test_mapping_visits_leaves_first_and_keeps_what_does_not_change():
    assert map_stmt(NEST) is NEST
    seen = []
    map_expr(add(A, B), lambda e: (seen.append(to_text(e)), e)[1])
    assert seen == ["a", "b", "a + b"]
    doubled = map_stmt(NEST, lambda s: Seq((s, s)) if isinstance(s, Store) else s)
    assert sum(isinstance(n, Store) for n in walk(doubled)) == 2
    swapped = map_stmt(NEST, expr_fn=lambda e: C if e == A else e)
    assert variables(swapped) == {B, C}


def test_blocks_come_apart_as_they_were_built():
    stores = [store(ZERO, ZERO), store(ZERO, A)]
    u = Buffer("u", (1,), "int8")
    assert unblock(block([T, u], stores)) == ([T, u], stores)
    assert seq([Seq((stores[0],)), stores[1]]) == Seq(tuple(stores))
    assert unblock(stores[0]) == ([], [stores[0]])
