# %% [markdown]
# # Convolution with virtual threads
#
# A convolution of 7 x 7 pixels, 128 channels in and out, kernel 3 x 3: 147 kB of weights for
# little work, so loading takes nearly as long as multiplying. Whether the two happen one after
# the other or at the same time decides how long it takes. The machine can do both; the program
# must let it.
#
#     python examples/convolution_threads.py

# %%
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Patch

import vta
from compiler.module import build
from compiler.ops import Conv2d, Epilogue, Operator, conv2d
from vta_isa import Buffer, Launch, Opcode, Stage, decode_stream, format_stream
from vta_runtime import Runtime, SimulatorDevice

machine = vta.load_machine("default")
layer = Conv2d(
    batch=1,
    height=7,
    width=7,
    in_channels=128,
    out_channels=128,
    kernel=(3, 3),
    stride=(1, 1),
    padding=(1, 1),
    epilogue=Epilogue(bias=True, shift=8, clip=(-128, 127)),
)

# %% [markdown]
# The definition, to compare with: every output is the sum over a window, then bias, shift and
# clip.

# %%
rng = np.random.default_rng(1)
arrays = {
    "data": rng.integers(-128, 128, (1, 128, 7, 7), np.int8),
    "weights": rng.integers(-128, 128, (128, 128, 3, 3), np.int8),
    "bias": rng.integers(-(2**12), 2**12, 128, np.int32),
}
padded = np.pad(arrays["data"].astype(int), ((0, 0), (0, 0), (1, 1), (1, 1)))
windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
sums = np.einsum("ncyxij,ocij->noyx", windows, arrays["weights"].astype(int))
expected = np.clip((sums + arrays["bias"][:, None, None]) >> 8, -128, 127)

# %% [markdown]
# ## Two programs
#
# The operator's schedule cuts the output channels into tiles. With virtual threads it takes two
# tiles at a time, each with buffers of its own.


# %%
@dataclass(frozen=True)
class Run:
    """One launch and its instructions."""

    operator: Operator
    launch: Launch
    words: np.ndarray


def run(vthreads: bool) -> Run:
    """The convolution, compiled, executed, and compared with the definition."""
    operator = conv2d(layer, machine, vthreads=vthreads)
    module = build(operator.schedule, machine)
    packed = operator.pack(arrays)
    out = np.zeros(operator.output_shape, operator.output_dtype)
    runtime = Runtime(SimulatorDevice(machine), keep_streams=True)
    module.run([packed.get(param.name, out) for param in module.program.params], runtime)
    np.testing.assert_array_equal(operator.unpack(out), expected)
    (launch,), (stream,) = runtime.launches, runtime.streams
    return Run(operator, launch, stream.words)


runs = {"without virtual threads": run(False), "with virtual threads": run(True)}
for name, each in runs.items():
    print(f"{name}: {each.launch.cycles:,} cycles, {len(each.words)} instructions")
    print(f"    tile: {each.operator.plan}")

# %% [markdown]
# ## When things happen
#
# A bar is an instruction. In the first picture load and compute take turns: the load stage may
# not overwrite a tile that is still being read, and there is only one place for tiles. In the
# second picture the bars lie above each other: while the tile of one thread is multiplied, that
# of the other is loaded.

# %%
COLORS = {
    "LOAD of inputs, weights": "tab:blue",
    "GEMM": "tab:green",
    "ALU": "tab:olive",
    "LOAD of micro-ops, bias": "tab:cyan",
    "STORE": "tab:red",
}


def kind(insn: np.void) -> str:
    """What an instruction is drawn as."""
    match int(insn["opcode"]):
        case Opcode.GEMM:
            return "GEMM"
        case Opcode.ALU:
            return "ALU"
        case Opcode.STORE:
            return "STORE"
    if insn["buffer"] in (Buffer.INP, Buffer.WGT):
        return "LOAD of inputs, weights"
    return "LOAD of micro-ops, bias"


def draw(axes: Axes, name: str, each: Run) -> None:
    """Every instruction of a run as a bar from its first to its last cycle."""
    timeline = each.launch.timeline
    axes.barh([stage.name.lower() for stage in Stage], 0)  # the order of the rows
    for insn, stage, start, end in zip(
        decode_stream(each.words, machine),
        timeline.stage,
        timeline.start,
        timeline.end,
        strict=True,
    ):
        row = Stage(stage).name.lower()
        width = end - start + 1
        axes.barh(row, width, left=start, color=COLORS[kind(insn)], edgecolor="white", lw=0.3)
    axes.axvline(each.launch.cycles, color="black", linestyle=":")
    axes.set_title(f"{name}: {each.launch.cycles:,} cycles", loc="left", fontsize="medium")
    axes.invert_yaxis()


figure, rows = plt.subplots(2, 1, figsize=(10, 4.4), sharex=True, layout="constrained")
for axes, (name, each) in zip(rows, runs.items(), strict=True):
    draw(axes, name, each)
rows[1].set_xlabel("cycle")
figure.legend(
    handles=[Patch(color=color, label=name) for name, color in COLORS.items()],
    loc="outside lower center",
    ncols=len(COLORS),
    fontsize="small",
)
plt.show()

# %% [markdown]
# In numbers: the cycles in which a stage works, or waits for a neighbour's token.

# %%
WAITS = {
    "load works": "load_busy",
    "load waits for compute": "load_wait_compute",
    "compute multiplies": "compute_busy_gemm",
    "compute waits for load": "compute_wait_load",
}
print(f"{'':24}" + "".join(f"{name:>26}" for name in runs))
for label, counter in WAITS.items():
    values = (each.launch.counters[counter] for each in runs.values())
    print(f"{label:24}" + "".join(f"{value:26,}" for value in values))

# %% [markdown]
# ## How the threads get along
#
# The machine knows nothing of threads. The compiler copies every block of a tile's program for
# each thread, gives each copy its own range of every memory, and interleaves them: load 0, load
# 1, multiply 0, multiply 1, and so on. Here are the first instructions. What thread 1 loads lies
# behind what thread 0 loads, as `sram_base` shows.

# %%
print("\n".join(format_stream(runs["with virtual threads"].words[:20], machine).splitlines()))

# %% [markdown]
# Tokens order what must be ordered. A load that fills a buffer pops the token that the GEMM
# before has pushed when it was done with it (`pop_next` on the load, `push_prev` on the GEMM),
# and pushes one for the GEMM behind it. Within a thread that is the same handshake as without
# threads. Between threads there is none, and so the load of one overlaps with the GEMM of the
# other. Queues are first in first out, and both stages take the threads in the same order, so
# each token meets its own thread; the page on [tokens](../tokens.md) has the argument.
