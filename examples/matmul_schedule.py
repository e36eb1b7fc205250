"""Matrix product, scheduled by hand: from the naive loops to GEMM instructions, step by step.

    python examples/matmul_schedule.py

Each step rewrites the program; print the schedule after any of them to see what it did.
"""

import numpy as np

import vta
from compiler import te
from compiler.intrinsics import gemm, gemm_reset
from compiler.ir.nodes import Scope
from compiler.module import build
from compiler.schedule import create_schedule
from vta_isa import Buffer
from vta_runtime import Runtime, SimulatorDevice

ROWS, OUT_BLOCKS, IN_BLOCKS = 128, 8, 8


def main() -> None:
    machine = vta.load_machine("default")
    batch, block_in = machine.entry_shape(Buffer.INP)
    block_out, _ = machine.entry_shape(Buffer.WGT)

    # What: rows of entries times blocks of weights, summed in 32 bits, narrowed to 8.
    data = te.placeholder((ROWS, IN_BLOCKS, batch, block_in), "int8", "data")
    weights = te.placeholder((OUT_BLOCKS, IN_BLOCKS, block_out, block_in), "int8", "weights")
    ki, k = te.reduce_axis(IN_BLOCKS, "ki"), te.reduce_axis(block_in, "k")
    shape = (ROWS, OUT_BLOCKS, batch, block_out)
    product = te.compute(
        shape,
        lambda m, n, b, o: te.sum(
            data[m, ki, b, k].astype("int32") * weights[n, ki, o, k].astype("int32"), axis=[ki, k]
        ),
        name="product",
    )
    out = te.compute(shape, lambda *i: product[i].astype("int8"), name="out", axes="mnbo")

    # How: tiles of 64 rows and 4 blocks, two virtual threads over the blocks of output channels.
    s = create_schedule(out)
    s.set_scope("product", Scope.ACC)
    inp = s.cache_read("data", Scope.INP, ["product"])
    wgt = s.cache_read("weights", Scope.WGT, ["product"])
    m_o, m_i = s.split("out", "m", factor=64)
    n_o, n_i = s.split("out", "n", factor=4)
    s.reorder("out", n_o, m_o, m_i, n_i)
    s.vthread("out", n_o)  # two tiles in flight: one is loaded while the other is multiplied
    s.compute_at("product", "out", m_o)
    k_o, k_i = s.split("product", "ki", factor=4)
    s.reorder("product", k_o, "m", "n", k_i, "b", "o", "k")
    s.compute_at(inp, "product", k_o)
    s.compute_at(wgt, "product", k_o)
    s.tensorize("product.init", "b", gemm_reset(machine))
    s.tensorize("product", "b", gemm(machine))
    print(s.trace())

    module = build(s, machine)
    rng = np.random.default_rng(1)
    arrays = {
        "data": rng.integers(-8, 8, data.shape, np.int8),
        "weights": rng.integers(-8, 8, weights.shape, np.int8),
        "out": np.zeros(shape, np.int8),
    }
    runtime = Runtime(SimulatorDevice(machine))
    module.run([arrays[param.name] for param in module.program.params], runtime)

    expected = np.einsum(
        "mibk,niok->mnbo",
        arrays["data"].astype(np.int32),
        arrays["weights"].astype(np.int32),
    )
    np.testing.assert_array_equal(arrays["out"], expected.astype(np.int8))
    (launch,) = runtime.launches
    products = ROWS * OUT_BLOCKS * IN_BLOCKS
    print(f"{launch.cycles} cycles for {products} products of {batch} x {block_in} x {block_out}")


if __name__ == "__main__":
    main()
