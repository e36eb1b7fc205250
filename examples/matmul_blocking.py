# %% [markdown]
# # Matrix product, blocked step by step
#
# The product of two matrices on the machine `default`, from loops that touch one scalar at a
# time to a schedule that keeps the matrix unit busy. Every step is a rewrite of the program;
# every program computes the same, which is checked each time.
#
#     python examples/matmul_blocking.py

# %%
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np

import vta
from compiler import te
from compiler.intrinsics import gemm, gemm_reset
from compiler.ir.nodes import Scope
from compiler.module import build
from compiler.schedule import Schedule, create_schedule
from vta_isa import Buffer, Launch
from vta_runtime import Runtime, SimulatorDevice

machine = vta.load_machine("default")

# %% [markdown]
# ## What is computed
#
# 128 rows times 128 columns, summed over 128. The matrix unit multiplies an entry of 1 x 16
# activations by one of 16 x 16 weights in a cycle, so the matrices are cut into such entries:
# `data` has 128 x 8 of them, `weights` 8 x 8.

# %%
ROWS, OUT_BLOCKS, IN_BLOCKS = 128, 8, 8
batch, block_in = machine.entry_shape(Buffer.INP)
block_out, _ = machine.entry_shape(Buffer.WGT)
SHAPE = (ROWS, OUT_BLOCKS, batch, block_out)


def expression() -> te.Tensor:
    """Rows of entries times blocks of weights, summed in 32 bits, narrowed to 8."""
    data = te.placeholder((ROWS, IN_BLOCKS, batch, block_in), "int8", "data")
    weights = te.placeholder((OUT_BLOCKS, IN_BLOCKS, block_out, block_in), "int8", "weights")
    ki, k = te.reduce_axis(IN_BLOCKS, "ki"), te.reduce_axis(block_in, "k")
    product = te.compute(
        SHAPE,
        lambda m, n, b, o: te.sum(
            data[m, ki, b, k].astype("int32") * weights[n, ki, o, k].astype("int32"), axis=[ki, k]
        ),
        name="product",
    )
    return te.compute(SHAPE, lambda *i: product[i].astype("int8"), name="out", axes="mnbo")


print(te.to_text(expression()))

# %% [markdown]
# The first schedule is the definition as loops, everything in DRAM. It runs on the host.

# %%
print(create_schedule(expression()))

# %% [markdown]
# ## What a schedule is judged by
#
# Build it, run it, compare with NumPy, and look at the counters of the launch.

# %%
rng = np.random.default_rng(1)
arrays = {
    "data": rng.integers(-8, 8, (ROWS, IN_BLOCKS, batch, block_in), np.int8),
    "weights": rng.integers(-8, 8, (OUT_BLOCKS, IN_BLOCKS, block_out, block_in), np.int8),
}
expected = np.einsum("mibk,niok->mnbo", arrays["data"].astype(int), arrays["weights"].astype(int))
PRODUCTS = ROWS * OUT_BLOCKS * IN_BLOCKS  # cycles of the matrix unit, at the least


def launch(schedule: Schedule) -> Launch:
    """The one launch of a schedule whose result is right."""
    module = build(schedule, machine)
    out = np.zeros(SHAPE, np.int8)
    runtime = Runtime(SimulatorDevice(machine))
    module.run([arrays.get(param.name, out) for param in module.program.params], runtime)
    np.testing.assert_array_equal(out, expected.astype(np.int8))
    (only,) = runtime.launches
    return only


# %% [markdown]
# ## From loops to instructions
#
# Five decisions make a program for the accelerator out of the loops:
#
# - **tiles**: `out` is cut into tiles of `m` rows and `n` blocks of columns;
# - **place**: the product is computed where the tile is, in the accumulator memory;
# - **reduction**: `ki` blocks of the sum are done at a time, and their operands are read into
#   the INP and WGT memory then;
# - **instructions**: the innermost loops are what GEMM does;
# - **threads**: so many tiles are under way at once, each with memory of its own.


# %%
@dataclass(frozen=True)
class Blocking:
    """Rows and blocks of columns of a tile, blocks of the reduction, virtual threads."""

    m: int
    n: int
    ki: int
    threads: int = 1


def blocked(how: Blocking) -> Schedule:
    """The schedule of the product with these blocks."""
    s = create_schedule(expression())
    # tiles
    m_o, m_i = s.split("out", "m", factor=how.m)
    n_o, n_i = s.split("out", "n", factor=how.n)
    s.reorder("out", n_o, m_o, m_i, n_i)
    # place
    s.set_scope("product", Scope.ACC)
    s.compute_at("product", "out", m_o)
    # reduction
    inp = s.cache_read("data", Scope.INP, ["product"])
    wgt = s.cache_read("weights", Scope.WGT, ["product"])
    k_o, k_i = s.split("product", "ki", factor=how.ki)
    s.reorder("product", k_o, "m", "n", k_i, "b", "o", "k")
    s.compute_at(inp, "product", k_o)
    s.compute_at(wgt, "product", k_o)
    # threads
    if how.threads > 1:
        thread, _ = s.split("out", n_o, nparts=how.threads)
        s.vthread("out", thread)
    # instructions
    s.tensorize("product.init", "b", gemm_reset(machine))
    s.tensorize("product", "b", gemm(machine))
    return s


# %% [markdown]
# This is the program for the smallest tile: one row, one block of columns, one block of the sum.
# An entry of each operand is loaded for every single product.

# %%
print(blocked(Blocking(m=1, n=1, ki=1)))

# %% [markdown]
# ## Larger and larger blocks
#
# A tile of *m* x *n* needs *m* + *n* operands for *m* · *n* products, so larger tiles read less.
# Longer reductions make fewer, longer loads. And threads let the loads of one tile run while
# another one is multiplied; but the memories are shared out among the threads, and smaller tiles
# than these lose again what they gain.

# %%
STEPS = {
    "one product at a time": Blocking(m=1, n=1, ki=1),
    "16 rows share weights": Blocking(m=16, n=1, ki=1),
    "4 blocks share rows": Blocking(m=16, n=4, ki=1),
    "64 rows": Blocking(m=64, n=4, ki=1),
    "4 blocks of the sum": Blocking(m=64, n=4, ki=4),
    "2 virtual threads": Blocking(m=64, n=4, ki=4, threads=2),
    "smaller tiles again": Blocking(m=32, n=4, ki=4, threads=2),
}
launches = {name: launch(blocked(how)) for name, how in STEPS.items()}

print(f"{'':24} {'cycles':>8} {'matrix unit':>12} {'bytes read':>11} {'instructions':>13}")
for name, done in launches.items():
    counters = done.counters
    instructions = sum(counters[f"{stage}_instructions"] for stage in ("load", "compute", "store"))
    print(
        f"{name:24} {done.cycles:8,} {PRODUCTS / done.cycles:12.1%} "
        f"{counters['dram_read_bytes']:11,} {instructions:13,}"
    )

# %% [markdown]
# The same as a picture: what the compute stage does in its cycles. At first it mostly waits for
# loads; the more a tile reuses, the more of its time is left for GEMM. (A GEMM also fills and
# drains its pipeline, so short ones take more than their products.)

# %%
KINDS = {
    "GEMM": ("compute_busy_gemm",),
    "waits for load": ("compute_wait_load",),
    "loads micro-ops": ("compute_busy_load", "compute_wait_dram"),
    "waits for store": ("compute_wait_store",),
    "waits for instructions": ("compute_idle",),
}
figure, axes = plt.subplots(figsize=(9, 3.2), layout="constrained")
labels = [f"{name}: {done.cycles:,} cycles" for name, done in launches.items()]
left = np.zeros(len(launches))
for kind, names in KINDS.items():
    share = np.array(
        [sum(done.counters[n] for n in names) / done.cycles for done in launches.values()]
    )
    axes.barh(labels, 100 * share, left=left, label=kind)
    left += 100 * share
axes.set(xlabel="% of the cycles of the compute stage", xlim=(0, 100))
axes.invert_yaxis()
axes.legend(fontsize="small", ncols=5, loc="upper center", bbox_to_anchor=(0.3, -0.2))
plt.show()

# %% [markdown]
# The steps that lead to the best of them, in the order in which they were taken:

# %%
print(blocked(STEPS["2 virtual threads"]).trace())
