"""Scheduled programs all the way down: the same result after every pass, and on the machine."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from machine_ir import check_order, execute
from numpy.typing import NDArray

from compiler import te
from compiler.intrinsics import alu, gemm, gemm_reset
from compiler.ir.build import add, const, mul, seq
from compiler.ir.interpreter import run
from compiler.ir.nodes import (
    Alloc,
    Binary,
    BinaryOp,
    Buffer,
    Cast,
    Const,
    For,
    Load,
    LoopKind,
    Program,
    Region,
    Scope,
    Stmt,
    Store,
    TensorCall,
    Var,
)
from compiler.module import Module, build
from compiler.pipeline import PASSES, lower
from compiler.schedule import Schedule, create_schedule
from simulator.checker import check
from vta_isa import Buffer as Memory
from vta_isa import CompileError, Machine, VtaError, load_machine
from vta_isa.errors import RuntimeCallError
from vta_runtime import ReferenceDevice, Runtime

TINY = load_machine("tiny")
BATCHED = TINY.replace(gemm={"batch": 2, "block_in": 4, "block_out": 8})


def matmul(machine: Machine, *, threads: int, split: tuple[int, int, int] = (2, 2, 2)) -> Schedule:
    """out[m, co] = (data . weights + bias) >> 2, tiled; threads over output channels."""
    m, co, ci = 4, 8, 4
    b, bi, bo = machine.gemm.batch, machine.gemm.block_in, machine.gemm.block_out
    data = te.placeholder((m, ci, b, bi), machine.dtype(Memory.INP).name, "data")
    weights = te.placeholder((co, ci, bo, bi), machine.dtype(Memory.WGT).name, "weights")
    bias = te.placeholder((co, b, bo), "int32", "bias")
    c, k = te.reduce_axis(ci, "ci"), te.reduce_axis(bi, "k")
    axes = ("m", "co", "b", "o")
    product = te.compute(
        (m, co, b, bo),
        lambda m, co, b, o: te.sum(
            data[m, c, b, k].astype("int32") * weights[co, c, o, k].astype("int32"), axis=[c, k]
        ),
        name="product",
        axes=axes,
    )
    shape = (m, co, b, bo)
    biased = te.compute(
        shape, lambda m, co, b, o: product[m, co, b, o] + bias[co, b, o], name="biased", axes=axes
    )
    shifted = te.compute(shape, lambda *i: biased[i] >> 2, name="shifted", axes=axes)
    out = te.compute(
        shape,
        lambda *i: shifted[i].astype(machine.dtype(Memory.OUT).name),
        name="out",
        axes=axes,
    )
    s = create_schedule(out)
    for name in ("product", "biased", "shifted"):
        s.set_scope(name, Scope.ACC)
    s.cache_read("bias", Scope.ACC, ["biased"])
    inp = s.cache_read("data", Scope.INP, ["product"])
    wgt = s.cache_read("weights", Scope.WGT, ["product"])
    m_o, m_i = s.split("out", "m", factor=split[0])
    co_o, co_i = s.split("out", "co", factor=split[1])
    if threads > 1:
        thread, co_o = s.split("out", co_o, nparts=threads)
        s.reorder("out", thread, co_o, m_o, m_i, co_i)
        s.vthread("out", thread)
    else:
        s.reorder("out", co_o, m_o, m_i, co_i)
    for name in ("shifted", "biased", "product"):
        s.compute_at(name, "out", m_o)
    s.tensorize("shifted", "b", alu(machine, "shr", 2))
    s.tensorize("biased", "b", alu(machine, "add"))
    ci_o, ci_i = s.split("product", "ci", factor=split[2])
    s.reorder("product", ci_o, "m", "co", ci_i, "b", "o", "k")
    s.compute_at(inp, "product", ci_o)
    s.compute_at(wgt, "product", ci_o)
    s.tensorize("product.init", "b", gemm_reset(machine))
    s.tensorize("product", "b", gemm(machine))
    return s


def convolution(machine: Machine, *, threads: int, stride: int = 1, pad: int = 1) -> Schedule:
    """A 3 x 3 convolution of a 6 x 5 image; threads over output rows."""
    ci, co, high, wide = 2, 2, 6, 5
    rows, columns = ((n + 2 * pad - 3) // stride + 1 for n in (high, wide))
    b, bi, bo = machine.gemm.batch, machine.gemm.block_in, machine.gemm.block_out
    data = te.placeholder((ci, high, wide, b, bi), "int8", "data")
    weights = te.placeholder((co, ci, 3, 3, bo, bi), "int8", "weights")
    padded = te.compute(
        (ci, high + 2 * pad, wide + 2 * pad, b, bi),
        lambda c, y, x, b, k: te.select(
            (y >= pad) & (y < high + pad) & (x >= pad) & (x < wide + pad),
            data[c, y - pad, x - pad, b, k],
            te.const(0, "int8"),
        ),
        name="padded",
    )
    c, k = te.reduce_axis(ci, "ci"), te.reduce_axis(bi, "k")
    dy, dx = te.reduce_axis(3, "dy"), te.reduce_axis(3, "dx")
    shape = (co, rows, columns, b, bo)
    axes = ("co", "y", "x", "b", "o")
    conv = te.compute(
        shape,
        lambda co, y, x, b, o: te.sum(
            padded[c, y * stride + dy, x * stride + dx, b, k].astype("int32")
            * weights[co, c, dy, dx, o, k].astype("int32"),
            axis=[c, dy, dx, k],
        ),
        name="conv",
        axes=axes,
    )
    out = te.compute(shape, lambda *i: conv[i].astype("int8"), name="out", axes=axes)
    s = create_schedule(out)
    s.set_scope("conv", Scope.ACC)
    s.set_scope("padded", Scope.INP)
    wgt = s.cache_read("weights", Scope.WGT, ["conv"])
    y_o, y_i = s.split("out", "y", factor=1)
    if threads > 1:
        thread, y_o = s.split("out", y_o, nparts=threads)
        s.reorder("out", thread, y_o, "co", y_i)
        s.vthread("out", thread)
    else:
        s.reorder("out", y_o, "co", y_i)
    s.compute_at("conv", "out", y_o)
    ci_o, ci_i = s.split("conv", "ci", factor=1)
    s.reorder("conv", ci_o, "co", "y", "x", ci_i, "dy", "dx", "b", "o", "k")
    s.compute_at("padded", "conv", ci_o)
    s.compute_at(wgt, "conv", ci_o)
    s.tensorize("conv.init", "b", gemm_reset(machine))
    s.tensorize("conv", "b", gemm(machine))
    return s


def vector_add(machine: Machine, *, threads: int) -> Schedule:
    """The sum of two vectors, straight from the ALU, narrowed by the store."""
    b, bo = machine.gemm.batch, machine.gemm.block_out
    x, y = (te.placeholder((12, b, bo), "int32", name) for name in "xy")
    axes = ("i", "b", "o")
    total = te.compute((12, b, bo), lambda *i: x[i] + y[i], name="total", axes=axes)
    out = te.compute((12, b, bo), lambda *i: total[i].astype("int8"), name="out", axes=axes)
    s = create_schedule(out)
    s.set_scope("total", Scope.ACC)
    reads = [s.cache_read(name, Scope.ACC, ["total"]) for name in "xy"]
    step, _ = s.split("out", "i", factor=3)
    if threads > 1:
        thread, step = s.split("out", step, nparts=threads)
        s.vthread("out", thread)
    s.compute_at("total", "out", step)
    for name in reads:
        s.compute_at(name, "out", step)
    s.tensorize("total", "b", alu(machine, "add"))
    return s


def tail(machine: Machine, *, threads: int) -> Schedule:
    """11 entries in tiles of 3: the last one is cut short."""
    b, bo = machine.gemm.batch, machine.gemm.block_out
    axes = ("i", "b", "o")
    x = te.placeholder((11, b, bo), "int32", "x")
    moved = te.compute((11, b, bo), lambda *i: x[i] + 5, name="moved", axes=axes)
    out = te.compute((11, b, bo), lambda *i: moved[i].astype("int8"), name="out", axes=axes)
    s = create_schedule(out)
    s.set_scope("moved", Scope.ACC)
    read = s.cache_read("x", Scope.ACC, ["moved"])
    step, _ = s.split("out", "i", factor=3)
    thread, step = s.split("out", step, nparts=threads)
    s.vthread("out", thread)
    s.compute_at("moved", "out", step)
    s.compute_at(read, "out", step)
    s.tensorize("moved", "b", alu(machine, "add", 5))
    return s


CASES = {
    "matmul": lambda: (matmul(TINY, threads=1), TINY),
    "matmul, 2 threads": lambda: (matmul(TINY, threads=2), TINY),
    "matmul, 4 threads": lambda: (matmul(TINY, threads=4), TINY),
    "matmul, one step": lambda: (matmul(TINY, threads=2, split=(2, 4, 4)), TINY),
    "matmul, many steps": lambda: (matmul(TINY, threads=2, split=(4, 2, 1)), TINY),
    "matmul, batch 2": lambda: (matmul(BATCHED, threads=2), BATCHED),
    "convolution": lambda: (convolution(TINY, threads=1), TINY),
    "convolution, 2 threads": lambda: (convolution(TINY, threads=2), TINY),
    "convolution, 3 threads, stride 2": lambda: (convolution(TINY, threads=3, stride=2), TINY),
    "convolution, wide padding": lambda: (convolution(TINY, threads=2, pad=2), TINY),
    "tiles cut short": lambda: (tail(TINY, threads=2), TINY),
    "vector add": lambda: (vector_add(TINY, threads=1), TINY),
    "vector add, 2 threads": lambda: (vector_add(TINY, threads=2), TINY),
}


def random_arrays(program: Program, seed: int = 0) -> dict[str, NDArray]:
    rng = np.random.default_rng(seed)
    return {b.name: rng.integers(-60, 60, b.shape).astype(b.dtype) for b in program.params}


@cache
def case(name: str) -> SimpleNamespace:
    """Schedule, machine, module, random arrays and what the outputs must be."""
    schedule, machine = CASES[name]()
    arrays = random_arrays(schedule.program)
    expected = {k: v.copy() for k, v in arrays.items()}
    run(schedule.program, expected)
    module = build(schedule, machine)
    return SimpleNamespace(
        schedule=schedule, machine=machine, module=module, arrays=arrays, expected=expected
    )


@pytest.mark.parametrize("name", CASES)
def test_every_pass_computes_the_same(name: str) -> None:
    c = case(name)
    for stage, program in lower(c.schedule.program, c.machine):
        if stage == "calls":
            break
        arrays = {k: v.copy() for k, v in c.arrays.items()}
        machine = execute(program, arrays)
        for buffer in program.params:
            np.testing.assert_array_equal(
                arrays[buffer.name], c.expected[buffer.name], err_msg=f"{buffer.name} after {stage}"
            )
        if stage in ("vthreads", "allocate", "uops"):
            check_order(machine.events, f"after {stage}")


@pytest.mark.parametrize("name", CASES)
def test_the_machine_computes_the_same_without_races(name: str) -> None:
    c = case(name)
    runtime = Runtime(
        ReferenceDevice(c.machine, memory_bytes=1 << 20), portable=True, keep_memory=True
    )
    arrays = {k: v.copy() for k, v in c.arrays.items()}
    c.module.run([arrays[b.name] for b in c.module.program.params], runtime)
    for key, array in c.expected.items():
        np.testing.assert_array_equal(arrays[key], array, err_msg=key)
    assert len(runtime.streams) == 1
    (stream,) = runtime.streams
    assert stream.dram is not None
    assert check(stream.words, c.machine, stream.dram, fresh=True) == []


def test_virtual_threads_overlap_loads_with_products() -> None:
    cycles = []
    for name in ("matmul", "matmul, 2 threads"):
        c = case(name)
        runtime = Runtime(ReferenceDevice(c.machine, memory_bytes=1 << 20))
        c.module.run([c.arrays[b.name].copy() for b in c.module.program.params], runtime)
        cycles.append(runtime.launches[0].cycles)
    assert cycles[1] < cycles[0]


def test_peeling_joins_reset_and_epilogue_with_the_product() -> None:
    """A tile of a thread is one compute block per step: nothing waits in between."""
    text = case("matmul, 2 threads").module.text("peel")
    blocks = text.split("on compute:")
    assert "gemm_reset" in blocks[2]
    assert "gemm(" in blocks[2]
    assert "alu_shr" in blocks[-1]
    assert "gemm(" in blocks[-1]


def test_the_module_shows_every_form() -> None:
    module = case("matmul, 2 threads").module
    assert module.forms() == ("schedule", *(name for name, _ in PASSES), "loops", "llvm")
    assert "vthread" in module.text("schedule")
    assert "kernel gemm" in module.text("loops")
    assert "VTALoadBuffer2D(cmd, data" in module.text("calls")
    assert "call void @VTASynchronize(ptr" in module.text("llvm")
    with pytest.raises(CompileError, match="there is no form 'stream'; there are schedule, "):
        module.text("stream")


# ---------------------------------------------------------------------------------------------
# Running
# ---------------------------------------------------------------------------------------------


def outputs(module: Module, arrays: dict[str, NDArray], runtime: Runtime | None) -> NDArray:
    own = {k: v.copy() for k, v in arrays.items()}
    module.run([own[b.name] for b in module.program.params], runtime)
    return own[module.program.outputs[0].name]


def test_a_module_runs_on_several_runtimes_again_and_again() -> None:
    c = case("matmul, 2 threads")
    first, second = (Runtime(ReferenceDevice(TINY, memory_bytes=1 << 20)) for _ in range(2))
    for runtime in (first, second, first, second):
        np.testing.assert_array_equal(outputs(c.module, c.arrays, runtime), c.expected["out"])
    assert len(first.launches) == len(second.launches) == 2


def test_two_modules_share_a_runtime() -> None:
    runtime = Runtime(ReferenceDevice(TINY, memory_bytes=1 << 20))
    for name in ("matmul", "convolution", "matmul"):
        c = case(name)
        np.testing.assert_array_equal(outputs(c.module, c.arrays, runtime), c.expected["out"])


def test_a_program_that_uses_the_accelerator_needs_a_runtime_of_its_machine() -> None:
    c = case("matmul")
    with pytest.raises(VtaError, match="out uses the accelerator: run it with a Runtime"):
        outputs(c.module, c.arrays, None)
    other = Runtime(ReferenceDevice(BATCHED, memory_bytes=1 << 20))
    with pytest.raises(VtaError, match=r"compiled for tiny \(.*the runtime serves"):
        outputs(c.module, c.arrays, other)


def test_errors_of_the_runtime_reach_the_caller() -> None:
    c = case("matmul")
    cramped = Runtime(ReferenceDevice(TINY, memory_bytes=1 << 14))
    with pytest.raises(RuntimeCallError):
        outputs(c.module, c.arrays, cramped)


@pytest.mark.parametrize("kinds", [("int4", "int2"), ("int2", "int8"), ("int8", "int4")])
def test_scalars_narrower_than_a_byte(kinds: tuple[str, str]) -> None:
    inp, wgt = kinds
    machine = TINY.replace(
        gemm={"block_in": 8, "block_out": 8}, types={"inp": inp, "wgt": wgt, "out": inp}
    )
    schedule = matmul(machine, threads=2)
    rng = np.random.default_rng(3)
    limits = {"data": Memory.INP, "weights": Memory.WGT, "out": Memory.OUT}
    arrays = {}
    for b in schedule.program.params:
        low, high = machine.scalar_range(limits[b.name]) if b.name in limits else (-9, 9)
        arrays[b.name] = rng.integers(low, high, b.shape, endpoint=True).astype(b.dtype)
    expected = {k: v.copy() for k, v in arrays.items()}
    run(schedule.program, expected)
    shift = 8 - machine.bits(Memory.OUT)  # a store keeps the low bits of the accumulator
    narrowed = np.right_shift(np.left_shift(expected["out"], shift), shift)
    runtime = Runtime(ReferenceDevice(machine, memory_bytes=1 << 20))
    np.testing.assert_array_equal(outputs(build(schedule, machine), arrays, runtime), narrowed)


# ---------------------------------------------------------------------------------------------
# Host and accelerator together
# ---------------------------------------------------------------------------------------------


def mixed(kind: LoopKind = LoopKind.SERIAL) -> Program:
    """The host doubles x, the accelerator shifts it, the host adds 1, twice in all."""
    n = 6
    x, out = Buffer("x", (n, 1, 4), "int32"), Buffer("out", (n, 1, 4), "int8")
    doubled, halved = Buffer("doubled", (n, 1, 4), "int32"), Buffer("halved", (n, 1, 4), "int8")
    chip = Buffer("chip", (n, 1, 4), "int32", Scope.ACC)
    shift = alu(TINY, "shr", 2)

    def nest(tag: str, to: Buffer, value) -> Stmt:  # type: ignore[no-untyped-def]
        loops = [Var(f"{tag}{axis}") for axis in "ibo"]
        body: Stmt = Store(to, tuple(loops), value(tuple(loops)))
        for var, extent in zip(reversed(loops), reversed(to.shape), strict=True):
            body = For(var, extent, body, kind if var is loops[0] else LoopKind.SERIAL)
        return body

    i = Var("call")
    region = Region(chip, (i, const(0), const(0)), (1, 1, 4))
    steps = [
        nest("d", doubled, lambda at: mul(Load(x, at), Const(2, "int32"))),
        nest("l", chip, lambda at: Load(doubled, at)),
        For(i, n, TensorCall(shift, (region, region))),
        nest("s", halved, lambda at: Cast(Load(chip, at), "int8")),
        nest("o", out, lambda at: add(Load(halved, at), Const(1, "int8"))),
    ]
    body: Stmt = For(Var("again"), 2, seq(steps))
    for buffer in (chip, halved, doubled):
        body = Alloc(buffer, body)
    return Program("mixed", (x, out), body, (out,))


@pytest.mark.parametrize("kind", [LoopKind.SERIAL, LoopKind.PARALLEL])
def test_host_and_accelerator_share_intermediate_buffers(kind: LoopKind) -> None:
    """A synchronisation lies before the host reads, and before it overwrites, twice a round."""
    program = mixed()
    arrays = random_arrays(program)
    expected = ((arrays["x"] * 2) >> 2).astype("int8") + np.int8(1)
    module = build(program, TINY)
    runtime = Runtime(ReferenceDevice(TINY, memory_bytes=1 << 20))
    np.testing.assert_array_equal(outputs(module, arrays, runtime), expected)
    assert len(runtime.launches) == 2
    stages = dict(lower(program, TINY))
    check_order(execute(stages["vthreads"], random_arrays(program)).events)


def test_host_code_needs_no_runtime() -> None:
    x = te.placeholder((7,), "int32", "x")
    y = te.compute((7,), lambda i: x[i] * 3 - 1, name="y")
    module = build(create_schedule(y), TINY)
    assert not module.uses_accelerator
    arrays = {"x": np.arange(7, dtype="int32"), "y": np.zeros(7, "int32")}
    np.testing.assert_array_equal(outputs(module, arrays, None), np.arange(7) * 3 - 1)


def test_many_parameters_of_a_kernel() -> None:
    """More values than one call site may have: each kernel is recorded for its own entry."""
    n, m = 13, 9
    out = Buffer("out", (m, n, 1, 4), "int8")
    table = Buffer("table", (n * m, 1, 4), "int32")
    chip = Buffer("chip", (n * m, 1, 4), "int32", Scope.ACC)
    machine = TINY.replace(sram={"acc": "4 KiB"})
    one = Buffer("one", (1, 1, 4), "int32", Scope.ACC)
    i, j, b, o, l, p, q = (Var(name) for name in ("i", "j", "b", "o", "l", "p", "q"))  # noqa: E741
    zero = const(0)
    load_all = For(l, n * m, For(p, 1, For(q, 4, Store(chip, (l, p, q), Load(table, (l, p, q))))))
    entry = Region(chip, (add(mul(i, const(n)), j), zero, zero), (1, 1, 4))
    here = Region(one, (zero, zero, zero), (1, 1, 4))
    clear = TensorCall(gemm_reset(machine), (here,))
    fetch = TensorCall(alu(machine, "add"), (here, here, entry))
    drain = For(b, 1, For(o, 4, Store(out, (i, j, b, o), Cast(Load(one, (zero, b, o)), "int8"))))
    loop = For(i, m, For(j, n, Alloc(one, seq([clear, fetch, drain]))))
    program = Program("many", (table, out), Alloc(chip, seq([load_all, loop])), (out,))
    module = build(program, machine)
    assert "[2 x ptr]" in module.text("llvm")
    arrays = {
        "table": np.arange(n * m * 4, dtype="int32").reshape(-1, 1, 4) % 127,
        "out": np.zeros(out.shape, "int8"),
    }
    runtime = Runtime(ReferenceDevice(machine, memory_bytes=1 << 20), portable=True)
    got = outputs(module, arrays, runtime)
    np.testing.assert_array_equal(got.reshape(-1, 1, 4), arrays["table"].astype("int8"))


def test_a_parallel_loop_around_instructions_runs_serially() -> None:
    """One queue serves one thread; loops of the host beside them stay parallel."""
    program = mixed(LoopKind.PARALLEL)
    arrays = random_arrays(program)
    runtime = Runtime(ReferenceDevice(TINY, memory_bytes=1 << 20))
    got = outputs(build(program, TINY), arrays, runtime)
    np.testing.assert_array_equal(got, ((arrays["x"] * 2) >> 2).astype("int8") + np.int8(1))


def test_packed_scalars_cannot_be_indexed_by_the_host() -> None:
    machine = TINY.replace(types={"out": "int4"}, gemm={"block_out": 8})
    out = Buffer("out", (2, 1, 8), "int8")
    chip = Buffer("chip", (2, 1, 8), "int32", Scope.ACC)
    i, j, k = Var("i"), Var("j"), Var("k")
    store = For(
        i, 2, For(k, 8, Store(out, (i, const(0), k), Cast(Load(chip, (i, const(0), k)), "int8")))
    )
    total = Binary(BinaryOp.ADD, Load(out, (j, const(0), const(0))), Const(1, "int8"), "int8")
    host = For(j, 2, Store(out, (j, const(0), const(0)), total))
    program = Program("packed", (out,), Alloc(chip, seq([store, host])), (out,))
    with pytest.raises(CompileError, match="out holds scalars of 4 bits packed"):
        build(program, machine)
