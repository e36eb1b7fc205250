"""Copy nests become transfers that move the same data, as few as possible.

The scratchpad buffer is a parameter here, so that what a transfer leaves in it can be compared.
"""

from __future__ import annotations

import numpy as np
import pytest
from machine_ir import execute

from compiler.ir.build import add, all_of, const, floordiv, floormod, less, less_equal, mul, sub
from compiler.ir.interpreter import run
from compiler.ir.nodes import (
    Alloc,
    Binary,
    BinaryOp,
    Buffer,
    Cast,
    Const,
    DmaLoad,
    DmaStore,
    Expr,
    For,
    If,
    Load,
    LoopKind,
    Program,
    Scope,
    Select,
    Seq,
    Stmt,
    Store,
    Var,
)
from compiler.ir.visit import walk
from compiler.passes.dma import inject_dma
from vta_isa import CompileError, Machine, load_machine

TINY = load_machine("tiny")
N, C, Y, X, B, K = (Var(name) for name in ("n", "c", "y", "x", "b", "k"))
Loops = list[tuple[Var, int]]


def nest(loops: Loops, body: Stmt) -> Stmt:
    for var, extent in reversed(loops):
        body = For(var, extent, body)
    return body


def sram(*shape: int, scope: Scope = Scope.INP) -> Buffer:
    entry = (4, 4) if scope is Scope.WGT else (1, 4)
    return Buffer("tile", (*shape, *entry), "int32" if scope is Scope.ACC else "int8", scope)


def dram(*shape: int, dtype: str = "int8", entry: tuple[int, int] = (1, 4)) -> Buffer:
    return Buffer("data", (*shape, *entry), dtype)


def load(tile: Buffer, loops: Loops, to: tuple[Expr, ...], value: Expr) -> Program:
    """``for loops, b, k: tile[to, b, k] = value``."""
    entry = list(zip((B, K), tile.shape[-2:], strict=True))
    body = nest([*loops, *entry], Store(tile, (*to, B, K), value))
    source = next(e.buffer for e in walk(value) if isinstance(e, Load))
    return Program("copy", (source, tile), body, (tile,))


def at(data: Buffer, *indices: Expr) -> Load:
    return Load(data, (*indices, B, K))


def padded(value: Expr, *inside: Expr) -> Expr:
    return Select(all_of(inside), value, Const(0, value.dtype), value.dtype)


def within(index: Expr, size: int) -> tuple[Expr, Expr]:
    return less_equal(const(0), index), less(index, const(size))


def lowered(program: Program, machine: Machine = TINY) -> tuple[Program, int]:
    """After the pass, which must not change results; with the number of instructions executed."""
    rng = np.random.default_rng(1)
    arrays = {b.name: rng.integers(-100, 100, b.shape).astype(b.dtype) for b in program.params}
    expected = {name: array.copy() for name, array in arrays.items()}
    run(program, expected)
    after = inject_dma(program, machine)
    machine_after = execute(after, arrays)
    for name, array in expected.items():
        np.testing.assert_array_equal(arrays[name], array, err_msg=name)
    return after, machine_after.instructions


def transfers(program: Program) -> list[DmaLoad | DmaStore]:
    return [s for s in walk(program.body) if isinstance(s, (DmaLoad, DmaStore))]


# ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scope", [Scope.INP, Scope.WGT, Scope.ACC])
def test_a_contiguous_copy_is_one_row(scope: Scope) -> None:
    tile = sram(2, 3, 4, scope=scope)
    data = Buffer("data", tile.shape, tile.dtype)
    program = load(tile, [(C, 2), (Y, 3), (X, 4)], (C, Y, X), at(data, C, Y, X))
    after, count = lowered(program)
    (dma,) = transfers(after)
    assert count == 1
    assert (dma.y_size, dma.x_size, dma.x_stride) == (const(1), const(24), const(24))
    assert isinstance(dma, DmaLoad)
    assert not dma.widen


def test_rows_of_a_larger_image_are_one_transfer() -> None:
    data, tile = dram(2, 8, 9), sram(2, 3, 4)
    program = load(tile, [(C, 2), (Y, 3), (X, 4)], (C, Y, X), at(data, C, Y, X))
    after, count = lowered(program)
    (dma,) = transfers(after)
    assert count == 2  # a channel each: their distance is not that of the rows
    assert (dma.y_size, dma.x_size, dma.x_stride) == (const(3), const(4), const(9))


def test_rows_that_follow_each_other_are_merged_with_the_channels() -> None:
    data, tile = dram(3, 8, 4), sram(3, 5, 4)
    program = load(tile, [(C, 3), (Y, 5), (X, 4)], (C, Y, X), at(data, C, add(Y, const(2)), X))
    after, count = lowered(program)
    (dma,) = transfers(after)
    assert count == 1
    assert (dma.y_size, dma.x_size, dma.x_stride) == (const(3), const(20), const(32))
    assert dma.dram_offset == const(8)


def test_loops_may_stand_in_any_order() -> None:
    data, tile = dram(2, 8, 9), sram(2, 3, 4)
    program = load(tile, [(X, 4), (C, 2), (Y, 3)], (C, Y, X), at(data, C, Y, X))
    assert lowered(program)[1] == 2


def test_a_transposed_copy_takes_one_transfer_per_column() -> None:
    data, tile = dram(5, 6), sram(6, 5)
    program = load(tile, [(Y, 6), (X, 5)], (Y, X), at(data, X, Y))
    after, count = lowered(program)
    (dma,) = transfers(after)
    assert count == 6
    assert (dma.y_size, dma.x_size, dma.x_stride) == (const(5), const(1), const(6))


def test_every_second_row_and_column() -> None:
    data, tile = dram(9, 9), sram(4, 5)
    index = (mul(Y, const(2)), mul(X, const(2)))
    assert lowered(load(tile, [(Y, 4), (X, 5)], (Y, X), at(data, *index)))[1] == 4


def test_a_row_may_be_repeated() -> None:
    data, tile = dram(4), sram(3, 4)
    after, count = lowered(load(tile, [(Y, 3), (X, 4)], (Y, X), at(data, X)))
    assert count == 1
    assert transfers(after)[0].x_stride == const(0)


def test_a_single_entry() -> None:
    data, tile = dram(7), sram(2)
    assert lowered(load(tile, [], (const(1),), at(data, const(5))))[1] == 1


def test_unit_axes_do_not_matter() -> None:
    data, tile = dram(1, 4, 1, 5), sram(1, 4, 1, 5)
    loops = [(N, 1), (C, 4), (Y, 1), (X, 5)]
    assert lowered(load(tile, loops, (N, C, Y, X), at(data, N, C, Y, X)))[1] == 1


def test_eight_bit_scalars_widen_into_the_accumulator() -> None:
    data, tile = dram(6), sram(6, scope=Scope.ACC)
    value = Cast(at(data, X), "int32")
    after, _ = lowered(load(tile, [(X, 6)], (X,), value))
    (dma,) = transfers(after)
    assert isinstance(dma, DmaLoad)
    assert dma.widen


# ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pad", [(0, 0), (1, 1), (2, 1), (0, 3), (3, 0)])
@pytest.mark.parametrize(("tiles", "rows"), [(1, 8), (2, 4), (4, 2), (8, 1)])
def test_padding_moves_with_the_tile(pad: tuple[int, int], tiles: int, rows: int) -> None:
    """Windows of 3 x 3 over an 8 x 6 image; the first and the last tiles are padded."""
    high, wide = 8, 6
    data = dram(2, high, wide)
    tile = sram(tiles, 2, rows + 2, wide + 2 * pad[1])
    y = sub(add(mul(N, const(rows)), Y), const(pad[0]))
    x = sub(X, const(pad[1]))
    value = padded(at(data, C, y, x), *within(y, high), *within(x, wide))
    loops = [(N, tiles), (C, 2), (Y, rows + 2), (X, wide + 2 * pad[1])]
    _, count = lowered(load(tile, loops, (N, C, Y, X), value))
    assert count <= 2 * tiles * (rows + 2)


def test_padding_of_a_tile_is_an_expression_of_the_outer_loops() -> None:
    """With the tile loop outside of the nest one LOAD per tile and channel remains."""
    data, tile = dram(2, 8, 6), sram(4, 2, 4, 8)
    y, x = sub(add(mul(N, const(2)), Y), const(1)), sub(X, const(1))
    value = padded(at(data, C, y, x), *within(y, 8), *within(x, 6))
    inner = load(tile, [(C, 2), (Y, 4), (X, 8)], (N, C, Y, X), value)
    other = Buffer("other", (4,), "int32")
    marker = Store(other, (N,), Const(1, "int32"))
    body = For(N, 4, Seq((marker, inner.body)))
    program = Program("tiles", (*inner.params, other), body, (tile, other))
    after, count = lowered(program)
    (dma,) = transfers(after)
    assert count == 8
    assert isinstance(dma, DmaLoad)
    assert dma.x_pad == (const(1), const(1))
    assert not isinstance(dma.y_pad[0], Const)


@pytest.mark.parametrize("stride", [1, 2, 3])
def test_padding_with_a_stride(stride: int) -> None:
    data, tile = dram(7, 7), sram(5, 5)
    y, x = (sub(mul(v, const(stride)), const(2)) for v in (Y, X))
    value = padded(at(data, y, x), *within(y, 7), *within(x, 7))
    lowered(load(tile, [(Y, 5), (X, 5)], (Y, X), value))


def test_tiles_may_lie_in_the_padding_as_a_whole() -> None:
    """A 1 x 1 window over a padded image: whole rows and columns of tiles are zero."""
    data, tile = dram(3, 3), sram(5, 5, 1, 1)
    y, x = add(sub(N, const(1)), Y), add(sub(C, const(1)), X)
    value = padded(at(data, y, x), *within(y, 3), *within(x, 3))
    lowered(load(tile, [(N, 5), (C, 5), (Y, 1), (X, 1)], (N, C, Y, X), value))


def test_a_tile_of_many_rows_in_the_padding() -> None:
    """One row of zeros fills any number of rows: they are dense in the scratchpad."""
    data, tile = dram(40, 3), sram(5, 40, 1)
    x = add(sub(C, const(1)), X)
    value = padded(at(data, Y, x), *within(x, 3))
    _, count = lowered(load(tile, [(C, 5), (Y, 40), (X, 1)], (C, Y, X), value))
    assert count == 5


def test_padding_on_three_axes() -> None:
    data, tile = dram(2, 3, 3), sram(4, 5, 5)
    index = [sub(v, const(1)) for v in (C, Y, X)]
    inside = [c for i, n in zip(index, (2, 3, 3), strict=True) for c in within(i, n)]
    value = padded(at(data, *index), *inside)
    lowered(load(tile, [(C, 4), (Y, 5), (X, 5)], (C, Y, X), value))


def test_more_rows_of_padding_than_a_load_can_add() -> None:
    data, tile = dram(2, 3), sram(20, 3)
    y = sub(Y, const(17))
    value = padded(at(data, y, X), *within(y, 2))
    assert lowered(load(tile, [(Y, 20), (X, 3)], (Y, X), value))[1] == 20


def test_a_guard_around_the_copy_is_padding() -> None:
    data, tile = dram(6), sram(4)
    program = load(tile, [(X, 4)], (X,), at(data, add(X, const(2))))
    assert isinstance(program.body, For)
    body = For(X, 4, If(less(X, const(3)), program.body.body))
    after = inject_dma(Program("copy", program.params, body, (tile,)), TINY)
    (dma,) = transfers(after)
    assert isinstance(dma, DmaLoad)
    assert (dma.x_size, dma.x_pad) == (const(3), (const(0), const(1)))


# ---------------------------------------------------------------------------------------------


def store(tile: Buffer, loops: Loops, data: Buffer, to: tuple[Expr, ...], value: Expr) -> Program:
    entry = list(zip((B, K), tile.shape[-2:], strict=True))
    body = nest([*loops, *entry], Store(data, (*to, B, K), value))
    return Program("drain", (tile, data), body, (data,))


def test_a_store_narrows() -> None:
    tile, data = sram(2, 3, 4, scope=Scope.ACC), dram(2, 8, 9)
    value = Cast(at(tile, C, Y, X), "int8")
    program = store(tile, [(C, 2), (Y, 3), (X, 4)], data, (C, Y, add(X, const(2))), value)
    after, count = lowered(program)
    (dma,) = transfers(after)
    assert count == 2
    assert (dma.y_size, dma.x_size, dma.x_stride) == (const(3), const(4), const(9))


def test_a_contiguous_store_is_one_row() -> None:
    tile, data = sram(2, 3, scope=Scope.ACC), dram(2, 3)
    value = Cast(at(tile, C, X), "int8")
    after, count = lowered(store(tile, [(C, 2), (X, 3)], data, (C, X), value))
    assert count == 1
    assert transfers(after)[0].x_size == const(6)


@pytest.mark.parametrize("limit", [1, 5, 6, 8])
def test_a_guarded_store_writes_what_is_inside(limit: int) -> None:
    tile, data = sram(4, 2, 3, scope=Scope.ACC), dram(8, 3)
    y = add(mul(N, const(2)), Y)
    program = store(tile, [(N, 4), (Y, 2), (X, 3)], data, (y, X), Cast(at(tile, N, Y, X), "int8"))

    def guard(stmt: Stmt) -> Stmt:
        if isinstance(stmt, For):
            return For(stmt.var, stmt.extent, guard(stmt.body))
        return If(less(y, const(limit)), stmt)

    lowered(Program("drain", program.params, guard(program.body), (data,)))


# ---------------------------------------------------------------------------------------------


def refuse(program: Program, message: str, machine: Machine = TINY) -> None:
    with pytest.raises(CompileError, match=message) as caught:
        inject_dma(program, machine)
    assert str(caught.value).startswith("dma: ")
    assert "\n" in str(caught.value), "the message shows the nest"


def test_refusals_name_the_reason() -> None:
    data, tile = dram(8), sram(8)
    loops = [(X, 8)]
    one = Const(1, "int8")
    plus_one = Binary(BinaryOp.ADD, at(data, X), one, "int8")
    refuse(load(tile, loops, (X,), plus_one), "not a plain copy")
    not_zero = Select(less(X, const(4)), at(data, X), one, "int8")
    refuse(load(tile, loops, (X,), not_zero), "padding must be the constant 0")
    remainder = at(data, floormod(mul(X, const(3)), 8))
    refuse(load(tile, loops, (X,), remainder), "not affine in x . 3 % 8")
    refuse(load(tile, loops, (sub(const(7), X),), at(data, X)), "x walks tile backwards")
    refuse(load(tile, loops, (const(0),), at(data, X)), "x walks tile again and again")
    odd = padded(at(data, X), Binary(BinaryOp.NE, X, const(3), "bool"))
    refuse(load(tile, loops, (X,), odd), "not a bound of an index")
    halves = padded(at(data, X), less(floordiv(X, 2), const(2)))
    refuse(load(tile, loops, (X,), halves), "not a bound of one loop")


def test_entries_must_be_whole_and_contiguous() -> None:
    tile = sram(2)
    half = Store(tile, (X, B, K), Load(dram(2), (X, B, K)))
    program = Program("half", (dram(2), tile), nest([(X, 2), (K, 2), (B, 1)], half), (tile,))
    refuse(program, "an entry is 4 scalars, the inner loops copy 2")
    turned = Buffer("data", (4, 2), "int8")
    program = load(tile, [(X, 2)], (X,), Load(turned, (K, X)))
    refuse(program, "loop k is inside an entry and steps 1 scalars on chip, 2 in DRAM")
    shifted = Buffer("data", (16,), "int8")
    index = add(add(mul(X, const(4)), K), const(1))
    refuse(load(tile, [(X, 2)], (X,), Load(shifted, (index,))), "not accessed by whole entries")


def test_types_must_be_those_of_the_memory() -> None:
    refuse(
        load(sram(2), [(X, 2)], (X,), at(dram(2, dtype="int16"), X)), "data holds int16, INP int8"
    )
    narrow = Buffer("tile", (2, 1, 4), "int16", Scope.ACC)
    refuse(
        load(narrow, [(X, 2)], (X,), at(dram(2, dtype="int16"), X)), "tile holds int16, ACC int32"
    )
    acc = sram(2, scope=Scope.ACC)
    wide = dram(2, dtype="int32")
    refuse(store(acc, [(X, 2)], wide, (X,), at(acc, X)), "data holds int32, a store writes int8")
    inp = sram(2)
    refuse(store(inp, [(X, 2)], dram(2), (X,), at(inp, X)), "only acc can be stored")


def test_only_transfers_reach_the_scratchpads() -> None:
    acc = sram(2, scope=Scope.ACC)
    other = Buffer("other", (2, 1, 4), "int32", Scope.ACC)
    refuse(load(acc, [(X, 2)], (X,), at(other, X)), "tile and other are both on chip")
    total = Binary(BinaryOp.ADD, at(acc, X), Const(1, "int32"), "int32")
    body = nest(
        [(X, 2), (B, 1), (K, 4)], Store(Buffer("out", (2, 1, 4), "int32"), (X, B, K), total)
    )
    refuse(Program("read", (acc,), body), "tile is on chip, the host cannot read it")


@pytest.mark.parametrize(("before", "wide"), [(17, 30), (0, 20), (16, 19), (25, 25)])
def test_more_padding_along_a_row_than_a_load_can_add(before: int, wide: int) -> None:
    """Rows of zeros, and the data on top of them."""
    data, tile = dram(4, 3), sram(2, 4, wide)
    x, y = sub(X, const(before)), sub(Y, const(1))
    value = padded(at(data, y, x), *within(x, 3), *within(y, 4))
    _, count = lowered(load(tile, [(C, 2), (Y, 4), (X, wide)], (C, Y, X), value))
    assert count <= 2 * 2 * 4


def test_virtual_threads_are_not_part_of_a_copy() -> None:
    data, tile = dram(2, 4), sram(4)
    inner = load(tile, [(X, 4)], (X,), at(data, N, X)).body
    program = Program("threads", (data,), For(N, 2, Alloc(tile, inner), LoopKind.VTHREAD))
    after = inject_dma(program, TINY)
    assert isinstance(after.body, For)
    assert after.body.kind is LoopKind.VTHREAD


def test_long_copies_are_cut_to_the_fields() -> None:
    """x_size and y_size have 16 bits each: a longer copy becomes two-dimensional."""
    roomy = TINY.replace(sram={"inp": "256 KiB"})
    data, tile = dram(1 << 16), sram(1 << 16)
    program = load(
        tile,
        [(Y, 4), (X, 1 << 14)],
        (add(mul(Y, const(1 << 14)), X),),
        at(data, add(mul(Y, const(1 << 14)), X)),
    )
    after = inject_dma(program, roomy)
    (dma,) = transfers(after)
    assert (dma.y_size, dma.x_size, dma.x_stride) == (const(4), const(1 << 14), const(1 << 14))
