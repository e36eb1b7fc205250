"""The index generator: order, indices and cycles."""

import itertools

import machines
import numpy as np
import pytest
from bench import bench

from vta_hw.iterations import Iterations
from vta_isa import microarch
from vta_isa.encoding import encode_stream, encode_uops
from vta_isa.enums import AluOp, LowKind
from vta_isa.insn import alu, gemm, records, requantize


def word(insn, machine):
    low, high = encode_stream(records([insn]), machine)[0].tolist()
    return low | high << 64


def indices(uops, iters, factors):
    """dst, src, wgt of every iteration."""
    for i, j in itertools.product(*(range(n) for n in iters)):
        for uop in uops:
            yield tuple(
                index + i * outer + j * inner
                for index, (outer, inner) in zip(uop, factors, strict=True)
            )


LOOPS = [((0, 1), (1, 1)), ((3, 8), (2, 3)), ((0, 2), (1, 4)), ((60, 64), (3, 1))]


@pytest.mark.parametrize(("uops", "iters"), LOOPS)
@pytest.mark.parametrize("kind", ["gemm", "immediate", "tensor", "multiply"])
def test_iterations_are_issued_without_bubbles(kind, uops, iters):
    machine = machines.machine("tiny")
    # An iteration is issued in the last cycle of its interval, MUL in the second.
    interval, issued_in = {
        "tensor": (machine.alu.tensor_interval, machine.alu.tensor_interval - 1),
        "multiply": (microarch.mul_interval(machine), 1),
    }.get(kind, (1, 0))
    table = np.random.default_rng(1).integers(0, 8, (64, 3))
    words = encode_uops(table, machine).tolist()
    factors = {"dst": (5, 2), "src": (3, 1)}
    if kind == "gemm":
        factors["wgt"] = (2, 4)
        insn = gemm(uops=uops, iters=iters, **factors)
    else:
        imm = 3 if kind == "immediate" else None
        op = AluOp.MUL if kind == "multiply" else AluOp.ADD
        insn = alu(op, uops=uops, iters=iters, imm=imm, **factors)
    pairs = [*factors.values(), (0, 0)][:3]
    expected = list(indices(table[slice(*uops)].tolist(), iters, pairs))
    dut = Iterations(machine)

    async def testbench(ctx):
        ctx.set(dut.insn, word(insn, machine))
        ctx.set(dut.start, 1)
        assert ctx.get(dut.any)
        await ctx.tick()
        ctx.set(dut.start, 0)
        seen = []
        for cycle in range(1, 3 + len(expected) * interval):
            read = ctx.get(dut.uop_index)
            item = ctx.get(dut.item)
            if item.valid:
                assert (cycle - 3) % interval == issued_in
                seen.append((item.dst, item.src, item.wgt))
                assert item.last == (len(seen) == len(expected))
            await ctx.tick()
            ctx.set(dut.uop, words[read])
        count = 3 if kind == "gemm" else 2
        assert [item[:count] for item in seen] == [item[:count] for item in expected]

    bench(dut, testbench)


@pytest.mark.parametrize(
    ("uops", "iters"), [((1, 1), (1, 1)), ((2, 1), (1, 1)), ((0, 1), (0, 5)), ((0, 1), (5, 0))]
)
def test_empty_loops_have_no_iterations(uops, iters):
    machine = machines.machine("tiny")
    dut = Iterations(machine)

    async def testbench(ctx):
        ctx.set(dut.insn, word(gemm(uops=uops, iters=iters), machine))
        assert not ctx.get(dut.any)

    bench(dut, testbench)


@pytest.mark.parametrize(("uops", "iters"), LOOPS)
@pytest.mark.parametrize("biased", [False, True])
def test_a_bias_comes_before_every_outer_iteration(biased, uops, iters):
    machine = machines.machine("tiny").replace(extensions={"alu_requantize": True})
    table = np.random.default_rng(2).integers(0, 8, (64, 3))
    words = encode_uops(table, machine).tolist()
    insn = requantize(
        **{"uops": uops, "iters": iters, "dst": (5, 2), "bias": 3 if biased else None},
        **{"shift": 31, "low": LowKind.COMPLEMENT, "high": 0x7FFF},
    )
    expected = []
    for i in range(iters[0]):
        if biased:
            expected.append((1, table[uops[0]][1] + 3 * i))
        for j in range(iters[1]):
            expected += [(0, uop[0] + 5 * i + 2 * j) for uop in table[slice(*uops)]]
    dut = Iterations(machine)

    async def testbench(ctx):
        ctx.set(dut.insn, word(insn, machine))
        ctx.set(dut.start, 1)
        await ctx.tick()
        ctx.set(dut.start, 0)
        for cycle in range(1, 6 + len(expected)):
            read = ctx.get(dut.uop_index)
            item = ctx.get(dut.item)
            assert item.valid == (0 <= cycle - 3 < len(expected)), cycle
            if item.valid:
                assert (item.bias, item.src if item.bias else item.dst) == expected[cycle - 3]
                assert item.last == (cycle - 3 == len(expected) - 1)
            await ctx.tick()
            ctx.set(dut.uop, words[read])

    bench(dut, testbench)
