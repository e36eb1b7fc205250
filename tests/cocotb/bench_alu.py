"""The ALU of accumulators with its forwarding, against the reference's arithmetic."""

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge
from packed import pack
from small_machines import machine_of
from support import drive, parameters, random_of, start

from simulator.reference import alu_result, wrap
from vta_hw.alu import FORWARDED, Function, step_layout
from vta_isa.enums import AluOp, Buffer
from vta_isa.tensors import pack_entries, unpack_entries

MACHINE = machine_of(parameters()["machine"])
LAYOUT = step_layout(MACHINE)
BITS = MACHINE.bits(Buffer.ACC)
SIZE = MACHINE.entry_bytes(Buffer.ACC)


def entry(rng: np.random.Generator):
    low, high = -(1 << BITS - 1), (1 << BITS - 1) - 1
    shape = MACHINE.entry_shape(Buffer.ACC)
    edges = [low, low + 1, high, 0, 1, -1, 31, -31, 32, -32, 33, -33]
    choices = rng.choice(edges, shape), rng.integers(-40, 40, shape)
    return (*choices, rng.integers(low, high, shape, endpoint=True))[rng.integers(3)]


def number(scalars) -> int:
    packed = pack_entries(scalars[None].astype(MACHINE.dtype(Buffer.ACC)), Buffer.ACC, MACHINE)
    return int.from_bytes(packed.tobytes(), "little")


def value(function: Function, x, y):
    if function == Function.ZERO:
        return np.zeros_like(x)
    return wrap(alu_result(AluOp(int(function)), x.astype(np.int64), y.astype(np.int64)), BITS)


@cocotb.test()
async def computes_and_forwards(dut):
    rng = np.random.default_rng(random_of("alu").getrandbits(32))
    await start(dut, step=0, function=0, x=0, y=0)
    results = []  # of the steps so far, latest first
    wanted = None
    for cycle in range(1200):
        function = Function(int(rng.choice(list(Function))))
        valid = int(rng.random() < 0.8)
        x, y = entry(rng), entry(rng)
        sources = [int(rng.integers(0, min(len(results), FORWARDED) + 1)) for _ in range(2)]
        place = int(rng.integers(MACHINE.depth(Buffer.ACC)))
        step = pack(LAYOUT, valid=valid, dst=place, dst_from=sources[0], src_from=sources[1])
        drive(dut, step=step, function=int(function), x=number(x), y=number(y))
        await RisingEdge(dut.clk)
        assert int(dut.written.value) == int(wanted is not None), f"{cycle=}"
        if wanted is not None:
            raw = int(dut.result.value).to_bytes(SIZE, "little")
            got = unpack_entries(np.frombuffer(raw, dtype=np.uint8), Buffer.ACC, MACHINE)[0]
            np.testing.assert_array_equal(got, wanted[1], err_msg=f"{cycle=} {wanted[2]}")
            assert int(dut.index.value) == wanted[0], f"{cycle=}"
        wanted = None
        if valid:
            operands = [
                results[source - 1] if source else given
                for source, given in zip(sources, (x, y), strict=True)
            ]
            result = value(function, *operands)
            wanted = place, result, f"{function.name} {operands}"
            results = [result, *results][:FORWARDED]
