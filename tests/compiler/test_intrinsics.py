"""What the hardware operations mean, and when a nest is one of them."""

import numpy as np
import pytest
from scheduled import assert_unchanged, random_arrays, results

from compiler import intrinsics, te
from compiler.ir.expand import expand_call
from compiler.ir.nodes import Buffer, Scope, TensorCall
from compiler.ir.printer import buffer_text, to_text
from compiler.ir.verify import verify
from compiler.ir.visit import walk
from compiler.schedule import create_schedule
from vta_isa.enums import AluOp
from vta_isa.errors import ScheduleError
from vta_isa.machine import load_machine

TINY = load_machine("tiny")
ENTRY = (1, 4)


def refused(step):
    with pytest.raises(ScheduleError) as caught:
        step()
    return str(caught.value)


def calls(schedule):
    return [n for n in walk(schedule.program.body) if isinstance(n, TensorCall)]


# -- the declarations -------------------------------------------------------------------------


def test_gemm_is_one_declaration_for_update_and_reset():
    gemm = intrinsics.gemm(TINY)
    assert [buffer_text(f) for f in gemm.formals] == [
        "acc: int32[1, 4] in acc",
        "inp: int8[1, 4] in inp",
        "wgt: int8[4, 4] in wgt",
    ]
    assert (
        to_text(gemm.body)
        == """\
for b in range(1):
    for o in range(4):
        for k in range(4):
            acc[b, o] = acc[b, o] + int32(inp[b, k]) * int32(wgt[o, k])"""
    )
    reset = intrinsics.gemm_reset(TINY)
    assert (
        to_text(reset.body) == "for b in range(1):\n    for o in range(4):\n        acc[b, o] = 0"
    )
    assert (gemm.emit.mode, gemm.emit.reset, reset.emit.reset) == ("gemm", False, True)


@pytest.mark.parametrize("preset", ["default", "ultra96", "tiny"])
def test_formals_have_the_shapes_of_the_machine(preset):
    machine = load_machine(preset)
    acc, inp, wgt = intrinsics.gemm(machine).formals
    batch, block_in, block_out = machine.gemm.batch, machine.gemm.block_in, machine.gemm.block_out
    assert acc.shape == (batch, block_out)
    assert inp.shape == (batch, block_in)
    assert wgt.shape == (block_out, block_in)


@pytest.mark.parametrize(
    ("op", "imm", "value"),
    [
        ("min", None, "min(x[b, o], y[b, o])"),
        (AluOp.MAX, None, "max(x[b, o], y[b, o])"),
        ("add", None, "x[b, o] + y[b, o]"),
        ("shr", None, "x[b, o] >> y[b, o]"),
        ("mul", None, "x[b, o] * y[b, o]"),
        ("min", 127, "min(x[b, o], 127)"),
        ("max", -128, "max(x[b, o], -128)"),
        ("add", -(1 << 15), "x[b, o] + -32768"),
        ("shr", 8, "x[b, o] >> 8"),
        ("shr", -31, "x[b, o] << 31"),
        ("mul", (1 << 15) - 1, "x[b, o] * 32767"),
    ],
)
def test_alu_operations(op, imm, value):
    intrinsic = intrinsics.alu(TINY, op, imm)
    assert to_text(intrinsic.body).endswith(f"dst[b, o] = {value}")
    assert [f.name for f in intrinsic.formals] == ["dst", "x", "y"][: 3 if imm is None else 2]
    assert intrinsic.emit.mode == "alu"
    assert intrinsic.emit.imm == imm


@pytest.mark.parametrize(
    ("op", "imm", "message"),
    [
        ("add", 1 << 15, r"alu_add: immediate 32768 is outside -32768..32767"),
        ("add", -(1 << 15) - 1, "outside -32768..32767"),
        ("shr", 32, r"alu_shr: immediate 32 is outside -31..31"),
        ("max", 0.5, "immediate 0.5"),
        ("sub", 1, "no operation 'sub'; there are min, max, add, shr, mul"),
    ],
)
def test_immediates_and_operations_are_checked(op, imm, message):
    with pytest.raises(ScheduleError, match=message):
        intrinsics.alu(TINY, op, imm)


# -- matching ---------------------------------------------------------------------------------


def elementwise(fn, *, dtype="int32", shape=(3, 1, 4)):
    """y = cast(fn(a, b)) over entries, a and b copied to the accumulator memory."""
    a = te.placeholder(shape, dtype, "a", axes=("i", "b", "o"))
    b = te.placeholder(shape, dtype, "b", axes=("i", "b", "o"))
    r = te.compute(shape, lambda i, bb, o: fn(a[i, bb, o], b[i, bb, o]), "r", axes=("i", "b", "o"))
    y = te.compute(shape, lambda i, bb, o: r[i, bb, o] + 1, "y", axes=("i", "b", "o"))
    s = create_schedule(y)
    for tensor in (a, b):
        if tensor.name in [buffer.name for buffer in s.program.params]:
            s.cache_read(tensor, "acc", ["r"])
    s.set_scope("r", "acc")
    return y, s


@pytest.mark.parametrize(
    ("fn", "op", "imm"),
    [
        (lambda a, b: a + b, "add", None),
        (lambda a, b: te.maximum(b, a), "max", None),
        (lambda a, b: a * a, "mul", None),
        (lambda a, b: a >> 3, "shr", 3),
        (lambda a, b: a << 3, "shr", -3),
        (lambda a, b: a >> -3, "shr", -3),
        (lambda a, b: a * 1, "shr", 0),
        (lambda a, b: a - 7, "add", -7),
        (lambda a, b: 7 + a, "add", 7),
        (lambda a, b: te.minimum(9, a), "min", 9),
        (lambda a, b: a.astype("int32") + 0 + b, "add", None),
    ],
)
def test_elementwise_nests_become_alu_calls(fn, op, imm):
    y, s = elementwise(fn)
    s.tensorize("r", "b", intrinsics.alu(TINY, op, imm))
    assert [len(c.operands) for c in calls(s)] == [2 if imm is not None else 3]
    verify(s.program, TINY)
    assert_unchanged(s, y)


def matmul(rows=2, blocks_out=2, blocks_in=3):
    x = te.placeholder((rows, blocks_in, 1, 4), "int8", "x", axes=("m", "c", "b", "k"))
    w = te.placeholder((blocks_out, blocks_in, 4, 4), "int8", "w", axes=("n", "c", "o", "k"))
    c, k = te.reduce_axis(blocks_in, "c"), te.reduce_axis(4, "k")
    acc = te.compute(
        (rows, blocks_out, 1, 4),
        lambda m, n, b, o: te.sum(
            w[n, c, o, k].astype("int32") * x[m, c, b, k].astype("int32"), axis=[c, k]
        ),
        "acc",
    )
    y = te.compute(
        (rows, blocks_out, 1, 4),
        lambda m, n, b, o: acc[m, n, b, o].astype("int8"),
        "y",
    )
    s = create_schedule(y)
    s.cache_read("x", "inp", ["acc"])
    s.cache_read("w", "wgt", ["acc"])
    s.set_scope("acc", "acc")
    s.reorder("acc", "m", "n", "c", "b", "o", "k")
    return y, s


@pytest.mark.parametrize("order", [("b", "o", "k"), ("k", "b", "o"), ("o", "k", "b")])
def test_a_product_becomes_a_gemm_whatever_the_order_of_loops_and_factors(order):
    y, s = matmul()
    s.reorder("acc", *order)
    s.tensorize("acc", order[0], intrinsics.gemm(TINY))
    s.tensorize("acc.init", "b", intrinsics.gemm_reset(TINY))
    assert (
        "gemm(acc[acc.m, acc.n, 0, 0:+4], x.inp[acc.m, acc.c, 0, 0:+4], "
        "w.wgt[acc.n, acc.c, 0:+4, 0:+4])" in str(s)
    )
    assert s.loops("acc") == ["m", "n", "c"]
    verify(s.program, TINY)
    assert_unchanged(s, y)


def test_stages_move_into_tensorized_readers_and_tensorized_stages_move():
    y, s = matmul()
    s.tensorize("acc", "b", intrinsics.gemm(TINY))
    s.tensorize("acc.init", "b", intrinsics.gemm_reset(TINY))
    s.compute_at("acc", "y", "n")
    s.compute_at("x.inp", "acc", "c")
    s.compute_at("w.wgt", "acc", "c")
    assert "alloc x.inp: int8[1, 1, 1, 4] in inp" in str(s)
    assert "gemm(acc[0, 0, 0, 0:+4], x.inp[0, 0, 0, 0:+4], w.wgt[0, 0, 0:+4, 0:+4])" in str(s)
    assert_unchanged(s, y)


def test_tests_around_whole_tiles_stay_around_the_call():
    y, s = matmul(rows=5)
    s.split("acc", "m", factor=2)
    s.split("acc.init", "m", factor=2)
    s.tensorize("acc", "b", intrinsics.gemm(TINY))
    s.tensorize("acc.init", "b", intrinsics.gemm_reset(TINY))
    lines = [line.strip() for line in str(s).splitlines()]
    test = lines.index("if acc.m_o * 2 + acc.m_i < 5:")
    assert lines[test + 1].startswith("gemm(")
    assert_unchanged(s, y)


def test_a_failed_match_shows_both_bodies_and_the_first_difference():
    _, s = elementwise(lambda a, b: a - b)
    assert (
        refused(lambda: s.tensorize("r", "b", intrinsics.alu(TINY, "add")))
        == """\
r.b (extent 1): cannot be tensorized as alu_add: first difference: \
x[0, r.o] + y[0, r.o] in the intrinsic, a.acc[r.i, 0, r.o] - b.acc[r.i, 0, r.o] in the nest
  the nest is
    for r.b in range(1):
        for r.o in range(4):
            r[r.i, 0, r.o] = a.acc[r.i, 0, r.o] - b.acc[r.i, 0, r.o]
  alu_add is
    dst: int32[1, 4] in acc
    x: int32[1, 4] in acc
    y: int32[1, 4] in acc
    for b in range(1):
        for o in range(4):
            dst[b, o] = x[b, o] + y[b, o]"""
    )


def scopes_wrong():
    _, s = elementwise(lambda a, b: a + b)
    s.set_scope("a.acc", "inp")
    return s


def dtype_wrong():
    return elementwise(lambda a, b: a + b, dtype="int16")[1]


def shape_wrong():
    return elementwise(lambda a, b: a + b, shape=(3, 2, 4))[1]


def constant_wrong():
    return elementwise(lambda a, b: a + 6)[1]


def reversed_entry():
    a = te.placeholder((3, 1, 4), "int32", "a", axes=("i", "b", "o"))
    r = te.compute((3, 1, 4), lambda i, b, o: a[i, b, 3 - o] + 5, "r")
    y = te.compute((3, 1, 4), lambda i, b, o: r[i, b, o], "y")
    s = create_schedule(y)
    s.cache_read("a", "acc", ["r"])
    s.set_scope("r", "acc")
    return s


def guarded_entry():
    _, s = elementwise(lambda a, b: a + 5)
    s.split("r", "o", factor=3)
    return s


def holding_another_stage():
    _, s = elementwise(lambda a, b: a + 5)
    s.compute_at("a.acc", "r", "b")
    return s


@pytest.mark.parametrize(
    ("make", "imm", "reason"),
    [
        (scopes_wrong, None, "operand x against a.acc: its scope is inp, not acc"),
        (dtype_wrong, None, "operand dst against r: its type is int16, not int32"),
        (shape_wrong, None, "the loops differ: the nest has r.b 2, r.o 4, alu_add has o 4"),
        (constant_wrong, 5, "5 in the intrinsic, 6 in the nest"),
        (reversed_entry, 5, "operand x against a.acc: index 0 - r.o + 3 where r.o is needed"),
        (guarded_entry, 5, "`if r.o_o * 3 + r.o_i < 4` cuts iterations of the nest off"),
        (holding_another_stage, 5, "it is no perfect nest around one assignment"),
    ],
)
def test_the_first_difference_is_named(make, imm, reason):
    s = make()
    message = refused(lambda: s.tensorize("r", "b", intrinsics.alu(TINY, "add", imm)))
    assert reason in message.splitlines()[0]


def test_a_sum_of_entries_adds_to_its_own_operand():
    x = te.placeholder((4, 1, 4), "int32", "x", axes=("i", "b", "o"))
    k = te.reduce_axis(4, "k")
    r = te.compute((1, 4), lambda b, o: te.sum(x[k, b, o], axis=k), "r")
    y = te.compute((1, 4), lambda b, o: r[b, o], "y")
    s = create_schedule(y)
    s.cache_read("x", "acc", ["r"])
    s.set_scope("r", "acc")
    s.reorder("r", "k", "b", "o")
    s.tensorize("r", "b", intrinsics.alu(TINY, "add"))
    (call,) = calls(s)
    assert call.operands[0] == call.operands[1]
    assert_unchanged(s, y)


def test_a_call_spelled_out_is_the_nest_it_replaced():
    _, s = elementwise(lambda a, b: a + b)
    s.tensorize("r", "b", intrinsics.alu(TINY, "add"))
    (call,) = calls(s)
    assert (
        to_text(expand_call(call))
        == """\
for b in range(1):
    for o in range(4):
        r[r.i, b, o] = a.acc[r.i, b, o] + b.acc[r.i, b, o]"""
    )


# -- a whole convolution ----------------------------------------------------------------------


def entry_sizes(machine):
    return machine.gemm.batch, machine.gemm.block_in, machine.gemm.block_out


def convolution(size, stride, kernel, machine=TINY, blocks_in=2, blocks_out=4):
    """Bias, shift and clip around a convolution with padding kernel // 2, in entries."""
    batch, block_in, block_out = entry_sizes(machine)
    pad = kernel // 2
    out = (size + 2 * pad - kernel) // stride + 1
    data = te.placeholder(
        (1, blocks_in, size, size, batch, block_in), "int8", "data", axes=tuple("ncyxbk")
    )
    weight = te.placeholder(
        (blocks_out, blocks_in, kernel, kernel, block_out, block_in),
        "int8",
        "weight",
        axes=tuple("ncrsok"),
    )
    bias = te.placeholder((blocks_out, batch, block_out), "int32", "bias", axes=tuple("nbo"))
    padded = te.compute(
        (1, blocks_in, size + 2 * pad, size + 2 * pad, batch, block_in),
        lambda n, c, y, x, b, k: te.select(
            (y >= pad) & (y < size + pad) & (x >= pad) & (x < size + pad),
            data[n, c, y - pad, x - pad, b, k],
            0,
        ),
        "pad",
    )
    ci, kh, kw, k = (
        te.reduce_axis(extent, name)
        for extent, name in ((blocks_in, "ci"), (kernel, "kh"), (kernel, "kw"), (block_in, "k"))
    )
    shape = (1, blocks_out, out, out, batch, block_out)
    conv = te.compute(
        shape,
        lambda n, co, oh, ow, b, o: te.sum(
            padded[n, ci, oh * stride + kh, ow * stride + kw, b, k].astype("int32")
            * weight[co, ci, kh, kw, o, k].astype("int32"),
            axis=[ci, kh, kw, k],
        ),
        "conv",
    )
    axes = ("n", "co", "oh", "ow", "b", "o")
    biased = te.compute(shape, lambda *i: conv[i] + bias[i[1], i[4], i[5]], "biased", axes)
    shifted = te.compute(shape, lambda *i: biased[i] >> 8, "shifted", axes)
    low = te.compute(shape, lambda *i: te.maximum(shifted[i], -128), "low", axes)
    high = te.compute(shape, lambda *i: te.minimum(low[i], 127), "high", axes)
    result = te.compute(shape, lambda *i: high[i].astype("int8"), "out", axes)
    return data, weight, bias, result


def scheduled_convolution(operands, tile_h, tile_w, threads, machine=TINY):
    data, weight, bias, out = operands
    s = create_schedule(out, [data, weight, bias])
    for stage in ("conv", "biased", "shifted", "low", "high"):
        s.set_scope(stage, "acc")
    s.set_scope("pad", "inp")
    weights = s.cache_read(weight, "wgt", ["conv"])
    biases = s.cache_read(bias, "acc", ["biased"])
    co_o, co_i = s.split(out, "co", factor=2)
    oh_o, oh_i = s.split(out, "oh", factor=tile_h)
    ow_o, ow_i = s.split(out, "ow", factor=tile_w)
    thread, co_o = s.split(out, co_o, nparts=threads)
    s.reorder(out, thread, "n", co_o, oh_o, ow_o, co_i, oh_i, ow_i)
    for stage in ("high", "low", "shifted", "biased", biases, "conv"):
        s.compute_at(stage, out, ow_o)
    ci_o, ci_i = s.split("conv", "ci", factor=1)
    s.reorder("conv", ci_o, "n", "oh", "ow", "co", ci_i, "kh", "kw", "b", "o", "k")
    s.compute_at("pad", "conv", ci_o)
    s.compute_at(weights, "conv", ci_o)
    s.tensorize("conv", "b", intrinsics.gemm(machine))
    s.tensorize("conv.init", "b", intrinsics.gemm_reset(machine))
    s.tensorize("biased", "b", intrinsics.alu(machine, "add"))
    s.tensorize("shifted", "b", intrinsics.alu(machine, "shr", 8))
    s.tensorize("low", "b", intrinsics.alu(machine, "max", -128))
    s.tensorize("high", "b", intrinsics.alu(machine, "min", 127))
    s.vthread(out, thread)
    return s


def numpy_convolution(data, weight, bias, stride, kernel):
    pad = kernel // 2
    wide = np.pad(data.astype(np.int64), ((0, 0), (0, 0), (pad, pad), (pad, pad), (0, 0), (0, 0)))
    out = (wide.shape[2] - kernel) // stride + 1
    acc = np.zeros((1, len(weight), out, out, data.shape[4], weight.shape[4]), np.int64)
    for r in range(kernel):
        for s in range(kernel):
            rows = slice(r, r + stride * out, stride)
            window = wide[:, :, rows, s : s + stride * out : stride][:, :, :, :out]
            acc += np.einsum("ncyxbk,dcok->ndyxbo", window, weight[:, :, r, s].astype(np.int64))
    return np.clip((acc + bias[None, :, None, None]) >> 8, -128, 127).astype(np.int8)


@pytest.mark.parametrize(
    ("size", "stride", "kernel", "tile", "threads"),
    [
        (6, 1, 3, (2, 3), 2),  # tiles that divide
        (6, 1, 3, (4, 5), 2),  # tails in both directions
        (7, 2, 3, (2, 2), 1),  # a stride, no threads
        (5, 2, 1, (3, 1), 2),  # no padding
        (1, 1, 1, (1, 1), 2),  # a single point
    ],
)
def test_a_scheduled_convolution_computes_what_numpy_does(size, stride, kernel, tile, threads):
    operands = convolution(size, stride, kernel)
    s = scheduled_convolution(operands, *tile, threads)
    verify(s.program, TINY)
    arrays = random_arrays(s.program, seed=size)
    expected = numpy_convolution(arrays["data"], arrays["weight"], arrays["bias"], stride, kernel)
    assert len(np.unique(expected)) > 5
    np.testing.assert_array_equal(results(s.program, seed=size)["out"], expected)


def test_entries_need_not_be_square():
    machine = TINY.replace(gemm={"batch": 2, "block_in": 8, "block_out": 4})
    s = scheduled_convolution(convolution(4, 1, 3, machine), 3, 2, 2, machine)
    verify(s.program, machine)
    arrays = random_arrays(s.program, seed=1)
    expected = numpy_convolution(arrays["data"], arrays["weight"], arrays["bias"], 1, 3)
    np.testing.assert_array_equal(results(s.program, seed=1)["out"], expected)


def test_the_buffers_of_a_scheduled_convolution_are_those_of_one_tile():
    s = scheduled_convolution(convolution(6, 1, 3), 2, 3, 2)
    text = str(s)
    for line in (
        "for out.co_o_o in vthread(2):",
        "alloc conv: int32[1, 2, 2, 3, 1, 4] in acc",
        "alloc pad: int8[1, 1, 4, 5, 1, 4] in inp",
        "alloc weight.wgt: int8[2, 1, 3, 3, 4, 4] in wgt",
        "alloc bias.acc: int32[2, 1, 4] in acc",
    ):
        assert line in text
    assert "if" not in text.replace("shifted", "")
    assert Buffer("conv", (1, 2, 2, 3, 1, 4), "int32", Scope.ACC) in {
        region.buffer for call in calls(s) for region in call.operands
    }
