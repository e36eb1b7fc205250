"""How long a tiled program takes: the makespan of load, compute and store working on tiles.

The tile chooser asks this for every candidate. The model is the machine's own structure, told in
three numbers: each stage is a server that works in order; a load waits until the thread's previous
tile has been multiplied (its buffers are free), a product waits for its load, the first product of
an output tile waits until the thread's previous output has been stored, a store waits for the last
ALU operation. Durations are the closed forms of ``vta_isa.microarch``. What the model leaves out
(contention for the read port by micro-op loads, instruction fetch) costs every candidate alike.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from vta_isa import AluOp, Buffer, Machine, microarch
from vta_isa.sections import Memory


def ceil_div(a: int, b: int) -> int:
    return -(-a // b)


class Costs:
    """Closed forms of one machine, its numbers looked up once: a chooser asks very often.

    Without ``latency`` memory answers at once: ``TileWork.at`` adds what it takes.
    """

    def __init__(self, machine: Machine, *, latency: bool = True):
        self.depth = {buffer: machine.depth(buffer) for buffer in Buffer}
        self._bus_bytes = machine.bus_bytes
        self._entry_bytes = {buffer: machine.entry_bytes(buffer) for buffer in Buffer}
        memory = machine.memory
        before = microarch.LOAD_REQUEST + microarch.GRANT_TO_ADDRESS
        self._load = before + microarch.LOAD_WRITE + (memory.read_latency if latency else 0)
        tail = microarch.STORE_RESPONSE + (memory.write_latency if latency else 0)
        self._store = microarch.STORE_DATA + tail
        self._gemm = microarch.gemm_depth(machine)
        self.overwrites = machine.extensions.gemm_overwrite
        self._alu = microarch.alu_depth()
        self._requantize = microarch.requantize_depth()
        self._interval = {
            use_imm: microarch.alu_interval(machine, AluOp.ADD, use_imm=use_imm)
            for use_imm in (True, False)
        }

    def beats(self, buffer: Buffer, entries: int) -> int:
        """Bus beats of a row of ``entries``."""
        return ceil_div(entries * self._entry_bytes[buffer], self._bus_bytes)

    def load(self, buffer: Buffer, entries: int, rows: int = 1) -> int:
        """Cycles of a LOAD with the read port to itself, start to start."""
        return self._load + rows * self.beats(buffer, entries)

    def store(self, entries: int) -> int:
        """Cycles of a STORE of one row, start to start."""
        return self._store + self.beats(Buffer.OUT, entries)

    def gemm(self, iterations: int) -> int:
        """Cycles of a GEMM, resetting or not, start to start."""
        return iterations + self._gemm

    def alu(self, iterations: int, *, use_imm: bool) -> int:
        """Cycles of an ALU instruction other than MUL, start to start."""
        return iterations * self._interval[use_imm] + self._alu

    def requantize(self, iterations: int, *, biases: int) -> int:
        """Cycles of a REQUANTIZE that reads so many entries of bias, start to start."""
        return iterations + biases + self._requantize


class Reads(NamedTuple):
    """LOADs, one after the other, in the parts of a ``TileWork`` of the same names."""

    load: int = 0
    epilogue: int = 0
    setup: int = 0
    kernels: int = 0


_NO_READS = Reads()


@dataclass(frozen=True)
class TileWork:
    """Cycles of the pieces of one program, all tiles alike.

    ``load``: one step of the reduction brought on chip; ``product``: its GEMM; ``reset``: what the
    first one takes longer, zeroing the output tile before; ``epilogue``: its ALU operations;
    ``store``: its way to DRAM. ``steps``: reduction steps per output tile; ``rounds``: output tiles
    per thread; ``setup``: cycles before the first tile (bias); ``kernels``: micro-op loads per
    thread.
    """

    load: int
    product: int
    reset: int
    epilogue: int
    store: int
    steps: int
    rounds: int
    threads: int
    setup: int
    kernels: int
    reads: Reads = _NO_READS

    def at(self, memory: Memory) -> TileWork:
        """The same work, reckoned without latency, with a memory that has this one."""
        read, reads = memory.read_latency, self.reads
        return replace(
            self,
            load=self.load + read * reads.load,
            epilogue=self.epilogue + read * reads.epilogue,
            store=self.store + memory.write_latency,
            setup=self.setup + read * reads.setup,
            kernels=self.kernels + read * reads.kernels,
        )

    @property
    def lower_bound(self) -> int:
        """No schedule of this work is faster: the busiest stage, plus filling and draining."""
        tiles = self.rounds * self.threads
        compute = tiles * (self.steps * self.product + self.reset + self.epilogue)
        compute += self.threads * self.kernels
        load = tiles * self.steps * self.load
        first = max(self.load, self.setup)  # the bias comes while the first tile does
        return max(first + compute + self.store, load + self.product + self.store)

    def makespan(self) -> int:
        """Cycles from the first load to the last store."""
        load_free = store_free = 0
        compute_free = self.setup
        buffers_free = [0] * self.threads
        stored = [0] * self.threads
        loaded = [0] * self.threads
        for round_ in range(self.rounds):
            for step in range(self.steps):
                for t in range(self.threads):
                    load_free = max(load_free, buffers_free[t]) + self.load
                    loaded[t] = load_free
                for t in range(self.threads):
                    start = max(compute_free, loaded[t])
                    if step == 0:
                        start = max(start, stored[t]) + self.reset
                        if round_ == 0:
                            start += self.kernels
                    buffers_free[t] = compute_free = start + self.product
                    if step == self.steps - 1:
                        compute_free += self.epilogue
                        stored[t] = store_free = max(store_free, compute_free) + self.store
        return max(compute_free, store_free)
