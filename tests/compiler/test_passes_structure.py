"""Allocations, stages, peeling, synchronisation, virtual threads and SRAM: what each pass does."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent

import pytest

from compiler.intrinsics import gemm, gemm_reset
from compiler.ir.build import add, const, less, seq
from compiler.ir.nodes import (
    Alloc,
    Buffer,
    Cast,
    Const,
    Coproc,
    DmaLoad,
    DmaStore,
    Expr,
    For,
    If,
    Intrinsic,
    Load,
    LoopKind,
    Produce,
    Program,
    Region,
    Scope,
    Stmt,
    Store,
    TensorCall,
    Var,
)
from compiler.ir.printer import to_text
from compiler.passes.allocate import allocate_scratchpads
from compiler.passes.hoist import hoist_allocations
from compiler.passes.peel import peel_reductions
from compiler.passes.stages import mark_stages
from compiler.passes.synchronize import synchronize_dram
from compiler.passes.tokens import insert_tokens
from compiler.passes.virtual_threads import interleave_virtual_threads
from vta_isa import CompileError, load_machine

TINY = load_machine("tiny")
GEMM, RESET = gemm(TINY), gemm_reset(TINY)
INP = Buffer("inp", (2, 1, 4), "int8", Scope.INP)
WGT = Buffer("wgt", (2, 4, 4), "int8", Scope.WGT)
ACC = Buffer("acc", (2, 1, 4), "int32", Scope.ACC)
A, W, C = (
    Buffer("A", (8, 1, 4), "int8"),
    Buffer("W", (8, 4, 4), "int8"),
    Buffer("C", (8, 1, 4), "int8"),
)
K, T, N = Var("k"), Var("t"), Var("i")
ZERO = const(0)


def load(to: Buffer, source: Buffer, offset: Expr = ZERO) -> Stmt:
    none = (const(0), const(0))
    return DmaLoad(to, const(0), source, offset, const(2), const(1), const(2), none, none)


def store(to: Buffer = C, source: Buffer = ACC) -> Stmt:
    return DmaStore(source, const(0), to, const(0), const(2), const(1), const(2))


def call(intrinsic: Intrinsic, *buffers: Buffer, at: Expr = ZERO) -> Stmt:
    def region(b: Buffer) -> Region:
        return Region(b, (at, const(0), const(0)), (1, *b.shape[1:]))

    return TensorCall(intrinsic, tuple(region(b) for b in buffers))


LOADS = [load(INP, A, K), load(WGT, W, K)]
PRODUCT = call(GEMM, ACC, INP, WGT)
CLEAR = call(RESET, ACC)


def program(body: Stmt, *buffers: Buffer) -> Program:
    for buffer in buffers:
        body = Alloc(buffer, body)
    return Program("p", (A, W, C), body, (C,))


def shape(stmt: Stmt | Program) -> str:
    """The text, transfers and operations by their first word."""
    body = stmt.body if isinstance(stmt, Program) else stmt
    lines = []
    for line in to_text(body).splitlines():
        indent = line[: len(line) - len(line.lstrip())]
        word = line.strip()
        for name in ("load", "store", "gemm_reset", "gemm"):
            if word.startswith((f"{name} ", f"{name}(")):
                word = word.split(" <-")[0].split(" ->")[0] if name in ("load", "store") else name
        lines.append(indent + word)
    return "\n".join(lines)


def expect(stmt: Stmt | Program, text: str) -> None:
    assert shape(stmt) == dedent(text).strip()


def passes(p: Program, *runs: Callable[[Program], Program]) -> Program:
    for run in runs:
        p = run(p)
    return p


# -- hoist ------------------------------------------------------------------------------------


def test_allocations_go_to_the_function_or_the_thread() -> None:
    body = For(K, 4, Alloc(INP, seq(LOADS)))
    expect(
        hoist_allocations(program(For(T, 2, Alloc(ACC, body), LoopKind.VTHREAD), WGT)),
        """
        alloc wgt: int8[2, 4, 4] in wgt
        for t in vthread(2):
            alloc acc: int32[2, 1, 4] in acc
            alloc inp: int8[2, 1, 4] in inp
            for k in range(4):
                load inp@0
                load wgt@0
        """,
    )


def test_a_parallel_iteration_keeps_its_dram_buffer() -> None:
    temp = Buffer("temp", (4,), "int32")
    write = Produce("temp", Store(temp, (const(0),), Const(1, "int32")))
    expect(
        hoist_allocations(program(For(N, 4, Alloc(temp, write), LoopKind.PARALLEL))),
        """
        for i in parallel(4):
            alloc temp: int32[4]
            temp[0] = 1
        """,
    )


# -- stages -----------------------------------------------------------------------------------


def test_runs_of_one_stage_are_one_block() -> None:
    body = For(K, 4, seq([*LOADS, For(N, 2, PRODUCT)]))
    expect(
        mark_stages(program(seq([CLEAR, body, store()]))),
        """
        on compute:
            gemm_reset
        for k in range(4):
            on load:
                load inp@0
                load wgt@0
            on compute:
                for i in range(2):
                    gemm
        on store:
            store acc@0
        """,
    )


def test_loops_and_branches_of_one_stage_are_inside_its_block() -> None:
    body = For(K, 4, If(less(K, const(2)), PRODUCT, CLEAR))
    marked = mark_stages(program(body))
    assert isinstance(marked.body, Coproc)
    assert isinstance(marked.body.body, For)


def test_accumulators_are_loaded_by_the_compute_stage() -> None:
    bias = Buffer("B", (8, 1, 4), "int32")
    marked = mark_stages(program(seq([load(ACC, bias), PRODUCT])))
    expect(marked, "on compute:\n    load acc@0\n    gemm")


def test_host_statements_stay_outside() -> None:
    host = Store(A, (const(0),) * 3, Const(1, "int8"))
    marked = mark_stages(program(seq([host, *LOADS, host])))
    expect(
        marked,
        """
        A[0, 0, 0] = 1
        on load:
            load inp@0
            load wgt@0
        A[0, 0, 0] = 1
        """,
    )


# -- peel -------------------------------------------------------------------------------------


def threaded(extent: int, *, before: bool = True, after: bool = True) -> Program:
    body = For(K, extent, seq([*LOADS, For(N, 2, PRODUCT)]))
    stmts = [*([CLEAR] if before else []), body, *([CLEAR] if after else []), store()]
    return program(For(T, 2, seq(stmts), LoopKind.VTHREAD))


@pytest.mark.parametrize("extent", [1, 2, 3, 5])
@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("after", [False, True])
def test_peeling_joins_neighbours_with_the_first_and_the_last_step(
    extent: int, before: bool, after: bool
) -> None:
    peeled = peel_reductions(mark_stages(threaded(extent, before=before, after=after)))
    text = shape(peeled)
    assert text.count("gemm_reset") == before + after
    blocks = text.count("on compute:")
    ends = min(extent, before + after) if before or after else 0
    rest = extent - ends
    assert blocks == ends + (rest > 0)
    assert ("for k in range" in text) == (rest > 1)
    lines = [line.strip() for line in text.splitlines() if "for i" not in line]
    if before:
        at = lines.index("gemm_reset")
        assert lines[at - 1] == "on compute:"
        assert lines[at + 1].startswith("gemm")
        assert lines[at - 2] == "load wgt@0"


def test_nothing_is_peeled_outside_of_virtual_threads() -> None:
    body = For(K, 4, seq([*LOADS, PRODUCT]))
    marked = mark_stages(program(seq([CLEAR, body, CLEAR, store()])))
    assert peel_reductions(marked) == marked


def test_a_block_that_uses_what_is_loaded_stays_before() -> None:
    body = For(K, 3, seq([*LOADS, PRODUCT]))
    loop = For(T, 2, seq([*LOADS, PRODUCT, body, store()]), LoopKind.VTHREAD)
    text = shape(peel_reductions(mark_stages(program(loop))))
    assert "for k in range(3)" in text


# -- synchronize ------------------------------------------------------------------------------


def marked(*stmts: Stmt) -> Program:
    return synchronize_dram(mark_stages(program(seq(stmts))))


def read(buffer: Buffer) -> Stmt:
    return Store(Buffer("D", (1,), "int8"), (const(0),), Load(buffer, (const(0),) * 3))


def write(buffer: Buffer) -> Stmt:
    return Store(buffer, (const(0),) * 3, Const(1, buffer.dtype))


def test_one_synchronisation_at_the_end() -> None:
    assert shape(marked(*LOADS, PRODUCT, store())).count("synchronize") == 1
    assert shape(marked(*LOADS, PRODUCT, store())).endswith("synchronize")
    assert "synchronize" not in shape(marked(write(A)))


@pytest.mark.parametrize(
    ("stmts", "count"),
    [
        ([store(), read(C)], 1),  # the host reads a result
        ([store(), write(C)], 1),  # or overwrites it
        ([load(INP, A), write(A)], 1),  # or what is still to be loaded
        ([load(INP, A), read(A)], 1),  # reading is fine
        ([write(A), load(INP, A)], 1),  # so is writing before
        ([store(A), load(INP, A)], 2),  # load and store stage meet only through memory
        ([load(INP, A), store(A)], 2),
        ([store(C), store(C)], 1),  # one stage keeps its order
    ],
)
def test_conflicts_in_dram(stmts: list[Stmt], count: int) -> None:
    assert shape(marked(*stmts)).count("synchronize") == count


def test_a_loop_meets_its_previous_iteration() -> None:
    loop = For(K, 3, seq([load(INP, A), store(A)]))
    lines = [line.strip() for line in shape(marked(loop)).splitlines()]
    assert lines == [
        "for k in range(3):",
        "synchronize",
        "on load:",
        "load inp@0",
        "synchronize",
        "on store:",
        "store acc@0",
        "synchronize",
    ]


def test_memory_of_the_program_lives_until_the_queue_has_run() -> None:
    temp = Buffer("temp", (8, 1, 4), "int8")
    text = shape(synchronize_dram(mark_stages(program(store(temp), temp))))
    assert text.splitlines()[0] == "alloc temp: int8[8, 1, 4]"
    p = synchronize_dram(mark_stages(program(store(temp), temp)))
    assert isinstance(p.body, Alloc)
    assert "synchronize" in to_text(p.body.body)


# -- tokens -----------------------------------------------------------------------------------


def test_tokens_of_a_pipeline() -> None:
    loop = For(K, 4, seq([*LOADS, PRODUCT]))
    tile = For(N, 2, seq([CLEAR, loop, store()]))
    expect(
        passes(program(tile), mark_stages, synchronize_dram, insert_tokens),
        """
        on store:
            push store -> compute
        on compute:
            push compute -> load
        for i in range(2):
            on compute:
                pop store -> compute
                gemm_reset
            for k in range(4):
                on load:
                    pop compute -> load
                    load inp@0
                    load wgt@0
                    push load -> compute
                on compute:
                    pop load -> compute
                    gemm
                    push compute -> load
            on compute:
                push compute -> store
            on store:
                pop compute -> store
                store acc@0
                push store -> compute
        on compute:
            pop store -> compute
        on load:
            pop compute -> load
        synchronize
        """,
    )


def test_a_reset_does_not_wait_for_loads_nor_an_epilogue_keep_them_waiting() -> None:
    loop = For(T, 2, seq([*LOADS, CLEAR, PRODUCT, CLEAR]))
    text = shape(passes(program(loop), mark_stages, synchronize_dram, insert_tokens))
    order = [line.strip() for line in text.splitlines()]
    compute = order[order.index("on compute:", 2) :]
    assert compute[:6] == [
        "on compute:",
        "gemm_reset",
        "pop load -> compute",
        "gemm",
        "push compute -> load",
        "gemm_reset",
    ]


# -- virtual threads --------------------------------------------------------------------------


def test_blocks_take_turns_on_buffers_of_their_own() -> None:
    inner = seq([load(INP, A, add(K, T)), call(GEMM, ACC, INP, WGT)])
    body = For(T, 2, Alloc(ACC, Alloc(INP, For(K, 4, inner))), LoopKind.VTHREAD)
    after = passes(program(body, WGT), mark_stages, interleave_virtual_threads)
    assert to_text(after.body) == dedent(
        """\
        alloc wgt: int8[2, 4, 4] in wgt
        alloc acc: int32[2, 2, 1, 4] in acc
        alloc inp: int8[2, 2, 1, 4] in inp
        for k in range(4):
            on load:
                load inp@0 <- A@k, 1 x 2, stride=2, pad=(0, 0, 0, 0)
            on load:
                load inp@2 <- A@(k + 1), 1 x 2, stride=2, pad=(0, 0, 0, 0)
            on compute:
                gemm(acc[0, 0, 0, 0:+4], inp[0, 0, 0, 0:+4], wgt[0, 0:+4, 0:+4])
            on compute:
                gemm(acc[1, 0, 0, 0:+4], inp[1, 0, 0, 0:+4], wgt[0, 0:+4, 0:+4])"""
    )


def test_loops_inside_blocks_keep_names_of_their_own() -> None:
    body = For(T, 3, For(N, 2, call(RESET, ACC, at=N)), LoopKind.VTHREAD)
    after = passes(
        program(For(T, 3, Alloc(ACC, body.body), LoopKind.VTHREAD)),
        mark_stages,
        interleave_virtual_threads,
    )
    names = [line.split()[1] for line in to_text(after.body).splitlines() if "for" in line]
    assert names == ["i", "i.t1", "i.t2"]


def test_nested_virtual_threads() -> None:
    s = Var("s")
    inner = For(s, 2, Alloc(ACC, call(RESET, ACC)), LoopKind.VTHREAD)
    after = passes(
        program(For(T, 2, inner, LoopKind.VTHREAD)), mark_stages, interleave_virtual_threads
    )
    text = to_text(after.body)
    assert text.startswith("alloc acc: int32[4, 2, 1, 4] in acc")
    assert [text.index(f"gemm_reset(acc[{n},") for n in range(4)] == sorted(
        text.index(f"gemm_reset(acc[{n},") for n in range(4)
    )


def test_threads_cannot_write_what_they_share() -> None:
    body = For(T, 2, seq([*LOADS, PRODUCT]), LoopKind.VTHREAD)
    with pytest.raises(
        CompileError, match=r"the threads of t all write .*, which is allocated out"
    ):
        passes(program(body, INP, WGT, ACC), mark_stages, interleave_virtual_threads)


def test_host_statements_of_threads_have_memory_of_their_own() -> None:
    temp = Buffer("temp", (4,), "int32")
    work = For(N, 4, Store(temp, (N,), Cast(T, "int32")))
    show = For(K, 4, Store(C, (K, T, T), Cast(Load(temp, (K,)), "int8")))
    body = For(T, 2, Alloc(temp, seq([work, show])), LoopKind.VTHREAD)
    after = passes(program(body), mark_stages, interleave_virtual_threads)
    assert to_text(after.body) == dedent(
        """\
        alloc temp: int32[2, 4]
        for i in range(4):
            temp[0, i] = int32(0)
            temp[1, i] = int32(1)
        for k in range(4):
            C[k, 0, 0] = int8(temp[0, k])
            C[k, 1, 1] = int8(temp[1, k])"""
    ).replace("int32(0)", "0").replace("int32(1)", "1")


def test_threads_cannot_transfer_to_dram_of_their_own() -> None:
    temp = Buffer("temp", (8, 1, 4), "int8")
    body = For(T, 2, Alloc(temp, store(temp)), LoopKind.VTHREAD)
    with pytest.raises(CompileError, match="temp is allocated inside a virtual thread in DRAM"):
        passes(program(body, ACC), mark_stages, interleave_virtual_threads)


def test_a_branch_of_a_thread_cannot_hold_threads() -> None:
    s = Var("s")
    inner = For(s, 2, Alloc(ACC, call(RESET, ACC)), LoopKind.VTHREAD)
    body = For(T, 2, If(less(T, const(1)), inner), LoopKind.VTHREAD)
    with pytest.raises(CompileError, match="lies in a branch inside another"):
        passes(program(body), mark_stages, interleave_virtual_threads)


def test_a_branch_of_a_thread_cannot_depend_on_what_it_stores() -> None:
    cond = less(Cast(Load(C, (ZERO, ZERO, ZERO)), "int64"), const(1))
    body = For(T, 2, If(cond, store()), LoopKind.VTHREAD)
    with pytest.raises(CompileError, match="depends on what its arms store"):
        synchronize_dram(mark_stages(program(body, ACC)))


# -- allocate ---------------------------------------------------------------------------------


def test_buffers_follow_each_other_in_their_scratchpad() -> None:
    more = Buffer("more", (3, 2, 1, 4), "int32", Scope.ACC)
    clear = TensorCall(RESET, (Region(more, (N, K, const(0), const(0)), (1, 1, 1, 4)),))
    body = For(N, 3, For(K, 2, seq([clear, CLEAR])))
    after = allocate_scratchpads(program(body, more, ACC), TINY)
    assert to_text(after.body) == dedent(
        """\
        alloc acc.sram: int32[64, 1, 4] in acc
        for i in range(3):
            for k in range(2):
                gemm_reset(acc.sram[i * 2 + k + 2, 0, 0:+4])
                gemm_reset(acc.sram[0, 0, 0:+4])"""
    )


def test_overflow_says_what_needs_how_much() -> None:
    big = Buffer("big", (63, 1, 4), "int32", Scope.ACC)
    with pytest.raises(
        CompileError,
        match=r"allocate: acc needs 1040 bytes and has 1024 \(acc 32, big 1008\); use smaller",
    ):
        allocate_scratchpads(program(seq([CLEAR, call(RESET, big)]), big, ACC), TINY)
    exact = Buffer("exact", (62, 1, 4), "int32", Scope.ACC)
    allocate_scratchpads(program(seq([CLEAR, call(RESET, exact)]), exact, ACC), TINY)


def test_a_buffer_must_end_in_its_entry() -> None:
    odd = Buffer("odd", (2, 4, 1), "int32", Scope.ACC)
    with pytest.raises(CompileError, match=r"odd \(2, 4, 1\) is in acc but does not end in its"):
        allocate_scratchpads(program(call(RESET, odd), odd), TINY)
