"""Vector add in runtime calls: listing 1 of the VTA report, and what it becomes.

    python examples/vector_add.py

64 accumulator entries of A and B are loaded, added by the tensor ALU, narrowed to int8 and stored.
"""

import numpy as np

import vta
from vta_isa import AluOp, Buffer, Stage
from vta_isa.assembly import format_stream
from vta_runtime import Runtime, SimulatorDevice

ENTRIES = 64


def main() -> None:
    machine = vta.load_machine("default")
    runtime = Runtime(SimulatorDevice(machine), keep_streams=True)
    rng = np.random.default_rng(1)
    shape = (ENTRIES, *machine.entry_shape(Buffer.ACC))
    a, b = rng.integers(-64, 64, (2, *shape), dtype=np.int32)

    a_dram, b_dram = runtime.upload(a), runtime.upload(b)
    c_dram = runtime.buffer_alloc(ENTRIES * machine.entry_bytes(Buffer.OUT))

    # One row of 64 entries each, no padding, to entries 0 and 64 of the accumulator memory.
    runtime.load_buffer_2d(a_dram, 0, ENTRIES, 1, ENTRIES, 0, 0, 0, 0, 0, Buffer.ACC)
    runtime.load_buffer_2d(b_dram, 0, ENTRIES, 1, ENTRIES, 0, 0, 0, 0, ENTRIES, Buffer.ACC)

    def add_kernel(recorder: Runtime) -> None:
        recorder.uop_loop_begin(ENTRIES, 1, 1, 0)  # 64 times: destination + 1, source + 1
        recorder.uop_push(1, 0, 0, ENTRIES, 0, AluOp.ADD, 0, 0)
        recorder.uop_loop_end()

    runtime.push_alu_op("add", add_kernel)
    runtime.dep_push(Stage.COMPUTE, Stage.STORE)  # the store waits for the sum
    runtime.dep_pop(Stage.COMPUTE, Stage.STORE)
    runtime.store_buffer_2d(0, Buffer.OUT, c_dram, 0, ENTRIES, 1, ENTRIES)
    launch = runtime.synchronize()

    c = runtime.download(c_dram, shape, np.int8)
    np.testing.assert_array_equal(c, (a + b).astype(np.int8))
    print(format_stream(runtime.streams[0].words, machine))
    print(f"{c.size} sums are right, {launch.cycles} cycles")


if __name__ == "__main__":
    main()
