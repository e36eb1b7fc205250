"""The matrix product of every cycle against NumPy."""

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge
from small_machines import machine_of
from support import drive, parameters, random_of, start

from simulator.reference import wrap
from vta_isa.enums import Buffer
from vta_isa.tensors import pack_entries, unpack_entries

MACHINE = machine_of(parameters()["machine"])
LATENCY = parameters()["latency"]


def operand(rng: np.random.Generator, buffer: Buffer):
    """An entry: anything, or its extremes, where sums are largest."""
    low, high = -(1 << MACHINE.bits(buffer) - 1), (1 << MACHINE.bits(buffer) - 1) - 1
    shape = MACHINE.entry_shape(buffer)
    kind = rng.integers(4)
    if kind == 0:
        return np.full(shape, rng.choice([low, high]))
    if kind == 1:
        return rng.choice([low, high, 0, -1], shape)
    return rng.integers(low, high, shape, endpoint=True)


def number(entry, buffer: Buffer) -> int:
    packed = pack_entries(entry[None].astype(MACHINE.dtype(buffer)), buffer, MACHINE)
    return int.from_bytes(packed.tobytes(), "little")


@cocotb.test()
async def multiplies_a_pair_in_every_cycle(dut):
    rng = np.random.default_rng(random_of("gemm").getrandbits(32))
    await start(dut, inp=0, wgt=0)
    wanted = []
    for cycle in range(400):
        inp, wgt = operand(rng, Buffer.INP), operand(rng, Buffer.WGT)
        drive(dut, inp=number(inp, Buffer.INP), wgt=number(wgt, Buffer.WGT))
        wanted.append(wrap(inp.astype(np.int64) @ wgt.astype(np.int64).T, MACHINE.bits(Buffer.ACC)))
        await RisingEdge(dut.clk)
        if cycle >= LATENCY:
            size = MACHINE.entry_bytes(Buffer.ACC)
            raw = int(dut.sums.value).to_bytes(size, "little")
            got = unpack_entries(np.frombuffer(raw, dtype=np.uint8), Buffer.ACC, MACHINE)[0]
            np.testing.assert_array_equal(got, wanted[cycle - LATENCY], err_msg=f"{cycle=}")
