"""Functional speed of every simulator engine this host can run, next to plain NumPy einsum.

    python benchmarks/functional_speed.py [-c MACHINE] [--repeat N] [--json]

The stream is the 3x3 convolutions of ResNet-18 with stride 1, as often as they occur, tiled for
the machine's SRAM: padded loads of inputs, loads of weights, a reset, GEMMs over kernel taps, bias
add, shift and clip, stores, and the tokens between them. The rate counts multiply-accumulates of
GEMM over the time of the whole stream, checks included. Times are thread CPU time, best of several;
the einsum row multiplies the same tiles by ``np.einsum`` on int32, one micro-op at a time, and
does nothing else. BLAS gets one thread.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simulator.kernels import Kernels
from simulator.kernels.tiers import runnable_tiers
from vta_isa.encoding import encode_uops
from vta_isa.enums import AluOp, Buffer, Stage
from vta_isa.insn import Insn, alu, finish, gemm, load, noop, records, store
from vta_isa.machine import Machine, load_machine
from vta_isa.tensors import unpack_entries

# Rows and columns, channels in and out, how many of this shape the network has.
LAYERS = ((56, 64, 4), (28, 128, 3), (14, 256, 3), (7, 512, 3))
KERNEL = 3
BLAS_THREADS = "OPENBLAS_NUM_THREADS"
SHIFT = 8


@dataclass(frozen=True)
class Tile:
    """What one pass over the machine computes: a part of one layer."""

    rows: int  # of the output
    columns: int
    blocks_in: int  # channel blocks summed per GEMM
    blocks_out: int

    @property
    def inp_entries(self) -> int:
        return (self.rows + KERNEL - 1) * (self.columns + KERNEL - 1) * self.blocks_in

    @property
    def acc_entries(self) -> int:
        return self.rows * self.columns * self.blocks_out

    @property
    def uops(self) -> NDArray[np.intp]:
        """``(n, 3)``: for every kernel tap and channel block, where its first product lies."""
        width = self.columns + KERNEL - 1
        height = self.rows + KERNEL - 1
        taps = np.indices((self.blocks_out, self.blocks_in, KERNEL, KERNEL)).reshape(4, -1)
        out, inp, y, x = taps
        dst = out * self.rows * self.columns
        src = (inp * height + y) * width + x
        return np.stack([dst, src, np.arange(len(out))], axis=1)


@dataclass(frozen=True)
class Workload:
    """A stream, the DRAM image it starts from, and its GEMMs as index arrays for einsum."""

    table: NDArray[np.void]
    dram: NDArray[np.uint8]
    macs: int
    products: list[tuple[Tile, int]]  # tile and how many GEMMs of it
    machine: Machine


def build(machine: Machine, seed: int = 0) -> Workload:
    """All layers, one after the other, in one stream."""
    author = _Author(machine)
    for size, channels, times in LAYERS:
        for _ in range(times):
            author.layer(size, channels)
    author.insns += [noop(Stage.COMPUTE, pop_next=True), finish()]
    rng = np.random.default_rng(seed)
    dram = rng.integers(0, 256, author.end, dtype=np.uint8)
    for start, words in author.uop_words.items():
        dram[start : start + words.nbytes] = words.view(np.uint8)
    return Workload(records(author.insns), dram, author.macs, author.products, machine)


class _Author:
    """Writes the stream; addresses grow, every tensor gets its own."""

    def __init__(self, machine: Machine):
        self.machine = machine
        self.insns: list[Insn] = []
        self.end = 4096
        self.macs = 0
        self.uop_words: dict[int, NDArray[np.uint32]] = {}
        self.products: list[tuple[Tile, int]] = []
        self.stored = False  # a STORE before this one has given compute a token

    def layer(self, size: int, channels: int) -> None:
        machine, gemm_shape = self.machine, self.machine.gemm
        blocks_in = -(-channels // gemm_shape.block_in)
        blocks_out = -(-channels // gemm_shape.block_out)
        tile = self._largest_tile(size, blocks_in, blocks_out)
        inp = self._reserve(Buffer.INP, size * size * blocks_in)
        wgt = self._reserve(Buffer.WGT, blocks_in * blocks_out * KERNEL**2)
        bias = self._reserve(Buffer.ACC, blocks_out)
        out = self._reserve(Buffer.OUT, size * size * blocks_out)
        uops = self._uops(tile)
        gemms = 0
        for row in range(0, size, tile.rows):
            for block in range(0, blocks_out, tile.blocks_out):
                gemms += self._tile(tile, uops, size, row, block, blocks_in, (inp, wgt, bias, out))
        self.products.append((tile, gemms))
        per_gemm = len(tile.uops) * tile.rows * tile.columns * machine.macs_per_cycle
        self.macs += gemms * per_gemm

    def _largest_tile(self, size: int, blocks_in: int, blocks_out: int) -> Tile:
        """The most work per GEMM that fits; bias and results share the accumulators."""
        machine = self.machine
        choices = [
            Tile(rows, size, inputs, outputs)
            for rows in _divisors(size)
            for inputs in _divisors(blocks_in)
            for outputs in _divisors(blocks_out)
        ]
        fitting = [
            tile
            for tile in choices
            if tile.inp_entries <= machine.depth(Buffer.INP)
            and len(tile.uops) <= min(machine.depth(Buffer.WGT), machine.depth(Buffer.UOP) - 64)
            and tile.acc_entries + tile.blocks_out <= machine.depth(Buffer.ACC)
        ]
        if not fitting:
            sys.exit(
                f"no tile of {size} columns fits the SRAM of {machine.name}; take a larger one"
            )
        return max(fitting, key=lambda tile: tile.acc_entries * tile.blocks_in)

    def _uops(self, tile: Tile) -> int:
        """DRAM entry of the tile's micro-ops: GEMM, then (dst, bias) per output block."""
        plane = tile.rows * tile.columns
        per_block = [(b * plane, tile.acc_entries + b, 0) for b in range(tile.blocks_out)]
        words = encode_uops(np.concatenate([tile.uops, np.array(per_block)]), self.machine)
        start = self._reserve(Buffer.UOP, len(words))
        self.uop_words[start * 4] = words
        return start

    def _tile(
        self,
        tile: Tile,
        uops: int,
        size: int,
        row: int,
        block: int,
        blocks_in: int,
        bases: tuple[int, int, int, int],
    ) -> int:
        """Instructions of one tile; returns its GEMMs."""
        inp, wgt, bias, out = bases
        plane, width = tile.rows * size, size + KERNEL - 1
        taps = len(tile.uops)
        per_block = (taps, taps + tile.blocks_out)
        add = self.insns.append
        add(
            load(Buffer.UOP, sram_base=0, dram_base=uops, x_size=per_block[1], pop_next=self.stored)
        )
        add(load(Buffer.ACC, sram_base=tile.acc_entries, dram_base=bias + block,
                 x_size=tile.blocks_out))  # fmt: skip
        planes = {"uops": per_block, "iters": (tile.rows, size), "dst": (size, 1)}
        add(gemm(**planes, reset=True, push_prev=True))
        steps = range(0, blocks_in, tile.blocks_in)
        for first in steps:
            above, below = int(row == 0), int(row + tile.rows == size)
            for b in range(tile.blocks_in):
                add(load(
                    Buffer.INP,
                    sram_base=b * (tile.rows + KERNEL - 1) * width,
                    dram_base=inp + ((first + b) * size + row - 1 + above) * size,
                    x_size=size,
                    y_size=tile.rows + KERNEL - 1 - above - below,
                    y_pad=(above, below),
                    x_pad=(1, 1),
                    pop_next=b == 0,
                ))  # fmt: skip
            add(load(
                Buffer.WGT,
                sram_base=0,
                dram_base=wgt + block * blocks_in * KERNEL**2 + first * tile.blocks_out * KERNEL**2,
                x_size=taps,
                push_next=True,
            ))  # fmt: skip
            add(gemm(
                uops=(0, taps),
                iters=(tile.rows, size),
                dst=(size, 1),
                src=(width, 1),
                wgt=(0, 0),
                pop_prev=True,
                push_prev=first != steps[-1],
            ))  # fmt: skip
        add(alu(AluOp.ADD, **planes, src=(0, 0)))
        add(alu(AluOp.SHR, **planes, src=(0, 0), imm=SHIFT))
        add(alu(AluOp.MAX, **planes, src=(0, 0), imm=0))
        add(alu(AluOp.MIN, **planes, src=(0, 0), imm=127, push_next=True))
        for b in range(tile.blocks_out):
            add(store(
                sram_base=b * plane,
                dram_base=out + ((block + b) * size + row) * size,
                x_size=plane,
                pop_prev=b == 0,
                push_prev=b == tile.blocks_out - 1,
            ))  # fmt: skip
        self.stored = True
        return len(steps)

    def _reserve(self, buffer: Buffer, entries: int) -> int:
        """Room for a tensor on pages of its own; returns its ``dram_base``."""
        page, unit = 4096, self.machine.entry_bytes(buffer)
        start = self.end
        self.end = -(-(start + entries * unit) // page) * page
        return start // unit


def _divisors(number: int) -> list[int]:
    return [divisor for divisor in range(1, number + 1) if number % divisor == 0]


def einsum_rate(workload: Workload, seconds: float) -> float:
    """GMAC/s of gathering the inputs of each micro-op and multiplying them by ``np.einsum``.

    One GEMM of each layer's tile, repeated for about ``seconds`` in all.
    """
    machine = workload.machine
    rng = np.random.default_rng(0)

    def image(buffer: Buffer) -> NDArray[np.int32]:
        size = machine.depth(buffer) * machine.entry_bytes(buffer)
        raw = rng.integers(0, 256, size, dtype=np.uint8)
        return unpack_entries(raw, buffer, machine).astype(np.int32)

    inp, wgt, acc = image(Buffer.INP), image(Buffer.WGT), image(Buffer.ACC)

    def multiply(tile: Tile) -> int:
        y, x = (a.reshape(-1) for a in np.indices((tile.rows, tile.columns)))
        uops = tile.uops
        for dst, src, tap in uops:
            rows = inp[src + y * (tile.columns + KERNEL - 1) + x]
            acc[dst + y * tile.columns + x] += np.einsum("nbk,ok->nbo", rows, wgt[tap])
        return len(uops) * len(y) * machine.macs_per_cycle

    rates = []
    for tile, _ in workload.products:
        best = np.inf
        spent = 0.0
        while spent < seconds / len(workload.products):
            begin = time.thread_time()
            macs = multiply(tile)
            took = time.thread_time() - begin
            best, spent = min(best, took), spent + took
        rates.append((macs, best))
    return sum(macs for macs, _ in rates) / sum(took for _, took in rates) / 1e9


def best_seconds(run: Callable[[], object], repeat: int) -> float:
    def once() -> Iterator[float]:
        for _ in range(repeat):
            begin = time.thread_time()
            run()
            yield time.thread_time() - begin

    return min(once())


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("-c", dest="machine", default="default", help="preset or YAML file")
    parser.add_argument("--repeat", type=int, default=40, help="runs of each engine")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    arguments = parser.parse_args()

    if os.environ.get(BLAS_THREADS) != "1":  # read when NumPy is imported, so start again
        os.environ[BLAS_THREADS] = "1"
        os.execv(sys.executable, [sys.executable, *sys.argv])
    machine = load_machine(arguments.machine)
    workload = build(machine)
    baseline = einsum_rate(workload, seconds=2.0)
    rows = [{"engine": "numpy einsum", "gmac_per_s": baseline, "ms": None, "ratio": 1.0}]
    expected: NDArray[np.uint8] | None = None
    for engine in ["numpy", *(tier.name for tier in runnable_tiers(machine))]:
        kernels, dram = Kernels(machine, engine), workload.dram.copy()
        repeat = 2 if engine == "numpy" else arguments.repeat
        kernels.run(workload.table, dram)
        expected = dram.copy() if expected is None else expected
        if not np.array_equal(dram, expected):
            sys.exit(f"{engine} and {rows[1]['engine']} disagree about the results")
        seconds = best_seconds(lambda k=kernels, d=dram: k.run(workload.table, d), repeat)
        rate = workload.macs / seconds / 1e9
        rows.append(
            {"engine": engine, "gmac_per_s": rate, "ms": seconds * 1e3, "ratio": rate / baseline}
        )
    if arguments.json:
        print(
            json.dumps({"machine": machine.name, "macs": workload.macs, "engines": rows}, indent=2)
        )
        return
    print(f"{machine.name}: {len(workload.table)} insns, {workload.macs / 1e6:.0f} M MACs")
    print(f"{'engine':14} {'GMAC/s':>8} {'ms':>8} {'x einsum':>9}")
    for row in rows:
        ms = "" if row["ms"] is None else f"{row['ms']:.2f}"
        print(f"{row['engine']:14} {row['gmac_per_s']:8.2f} {ms:>8} {row['ratio']:9.1f}")


if __name__ == "__main__":
    main()
