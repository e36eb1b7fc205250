# %% [markdown]
# # Vector add, from the VTA report
#
# Listing 1 of the VTA technical report adds two vectors with calls of the runtime, without a
# compiler. Here it is with the same calls, down to the instructions that come of it and the
# cycles they take.
#
#     python examples/vector_add.py

# %%
import matplotlib.pyplot as plt
import numpy as np

import vta
from vta_isa import AluOp, Buffer, Stage, format_stream
from vta_runtime import Runtime, SimulatorDevice

machine = vta.load_machine("default")
runtime = Runtime(SimulatorDevice(machine), keep_streams=True)

# %% [markdown]
# ## Data
#
# The tensor ALU works on accumulators, so A and B are 32-bit numbers. An entry of the
# accumulator memory of this machine has 1 x 16 of them; 64 entries are 1024 sums. The result is
# stored in 8 bits.

# %%
ENTRIES = 64
shape = (ENTRIES, *machine.entry_shape(Buffer.ACC))
rng = np.random.default_rng(1)
a, b = rng.integers(-64, 64, (2, *shape), dtype=np.int32)

a_dram, b_dram = runtime.upload(a), runtime.upload(b)
c_dram = runtime.buffer_alloc(ENTRIES * machine.entry_bytes(Buffer.OUT))
print(shape, "accumulators,", machine.entry_bytes(Buffer.ACC), "bytes per entry in DRAM")

# %% [markdown]
# ## Loads
#
# One row of 64 entries each, no padding: A goes to entries 0 to 63 of the accumulator memory, B
# to the 64 behind them. The calls only write instructions; nothing runs yet.

# %%
for source, first_entry in ((a_dram, 0), (b_dram, ENTRIES)):
    offset, x_size, y_size, x_stride = 0, ENTRIES, 1, ENTRIES
    padding = 0, 0, 0, 0
    runtime.load_buffer_2d(
        source, offset, x_size, y_size, x_stride, *padding, first_entry, Buffer.ACC
    )

# %% [markdown]
# ## The sum
#
# The ALU takes a *micro-op*, a destination and a source entry, through a loop. A kernel records
# both: 64 times, destination and source each one entry further. The runtime keeps the micro-op
# and puts a load of it before the instruction that needs it.


# %%
def add_kernel(recorder: Runtime) -> None:
    """``ACC[i] += ACC[i + ENTRIES]`` for every i < ENTRIES."""
    recorder.uop_loop_begin(ENTRIES, 1, 1, 0)  # iterations; steps of dst, src and wgt
    alu, no_reset, dst, src, wgt, no_immediate = 1, 0, 0, ENTRIES, 0, 0
    recorder.uop_push(alu, no_reset, dst, src, wgt, AluOp.ADD, no_immediate, 0)
    recorder.uop_loop_end()


runtime.push_alu_op("add", add_kernel)

# %% [markdown]
# ## The store
#
# Stages run at the same time. A token from compute to store makes the store wait for the sum; it
# is all that orders them.

# %%
runtime.dep_push(Stage.COMPUTE, Stage.STORE)
runtime.dep_pop(Stage.COMPUTE, Stage.STORE)
runtime.store_buffer_2d(0, Buffer.OUT, c_dram, 0, ENTRIES, 1, ENTRIES)

# %% [markdown]
# ## Launch
#
# `synchronize` ends the stream with a FINISH that waits for the store, runs it, and returns when
# it is done.

# %%
launch = runtime.synchronize()
c = runtime.download(c_dram, shape, np.int8)
np.testing.assert_array_equal(c, (a + b).astype(np.int8))
print(f"{c.size} sums are right, {launch.cycles} cycles")

# %% [markdown]
# These are the instructions. The runtime has put the tokens on those around them, and the
# micro-op's load before the ALU instruction; the last lines are the handshake that makes FINISH
# wait for the store.

# %%
print(format_stream(runtime.streams[0].words, machine))

# %% [markdown]
# ## When
#
# The timeline says when each instruction was where. Compute loads A and B one after the other,
# then the micro-op; the sum takes two cycles per entry, since both operands are read from the
# same memory; then the store begins.

# %%
timeline = launch.timeline
figure, axes = plt.subplots(figsize=(9, 2.2), layout="constrained")
axes.barh([stage.name.lower() for stage in Stage], 0)  # the order of the rows
for number, (stage, start, end) in enumerate(
    zip(timeline.stage, timeline.start, timeline.end, strict=True)
):
    bar = axes.barh(Stage(stage).name.lower(), end - start + 1, left=start, edgecolor="white")
    if end - start > 20:
        axes.bar_label(bar, [str(number)], label_type="center", color="white")
axes.set(xlabel="cycle (instructions by their number in the stream)", xlim=(0, None))
axes.invert_yaxis()
plt.show()
