"""Legal programs made at random, for any machine: the input of every engine-against-engine test.

A program uses every kind of instruction: two-dimensional loads of every memory with pads and
strides, resets, GEMMs and ALU operations with aliasing destinations, strided and overlapping
stores, no-ops, token-only instructions, empty loops, and what extensions the machine has. All
indices are in range, conflicts across stages are ordered by tokens (see ``tokens``), and every
token is claimed by the end. Only ``vta_isa`` is used: nothing here shares code with an engine.
"""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from slots import reads_too_early
from tokens import Accesses, Fields, Weaver

from vta_isa.encoding import decode_uops, encode_stream, encode_uops
from vta_isa.enums import AluOp, Buffer, LowKind, Opcode, Stage
from vta_isa.errors import StreamError
from vta_isa.insn import alu, gemm, load, noop, records, requantize, store
from vta_isa.machine import Machine

UOP_COUNT = 192  # micro-ops in DRAM
BLOCK_BYTES = 256  # DRAM data changes its character every so often
MAX_LOOP = (1 << 14) - 1


@dataclass(frozen=True)
class Program:
    """A launch: ``stream (n, 2) uint64``, the DRAM image it starts from, and its machine.

    ``table (n,) INSN_DTYPE`` is the stream decoded.
    """

    stream: NDArray[np.uint64]
    dram: NDArray[np.uint8]
    machine: Machine
    table: NDArray[np.void]


def random_program(
    rng: np.random.Generator,
    machine: Machine,
    *,
    size: int = 40,
    iterations: int = 64,
    data_bytes: int | None = None,
) -> Program:
    """A program of ``size`` instructions that do something, and the no-ops that tokens need.

    No GEMM or ALU has more than ``iterations`` iterations. ``data_bytes`` is the part of the DRAM
    image that loads and stores share; by default 64 of the machine's largest entries.
    """
    author = _Author(rng, machine, iterations, data_bytes)
    author.load_uops()
    for _ in range(size - 1):
        author.write_one()
    author.weaver.finish()
    table = records(author.weaver.insns)
    return Program(encode_stream(table, machine), author.dram, machine, table)


def shrink(program: Program, fails: Callable[[Program], bool]) -> Program:
    """A program that still ``fails``, with as few instructions that do something as we can find.

    The others keep their place and their tokens, but move and compute nothing. A candidate that is
    no longer legal, because its micro-ops are not loaded any more, does not count as failing.
    """
    for number in reversed(range(len(program.table))):
        idle = program.table.copy()
        idle[number]["x_size"] = 0
        idle[number]["iter_out"] = 0
        stream = encode_stream(idle, program.machine)
        candidate = Program(stream, program.dram, program.machine, idle)
        with contextlib.suppress(StreamError):
            if fails(candidate):
                program = candidate
    return program


@dataclass
class _Access:
    """What an instruction touches: entries of a memory, or bytes of DRAM."""

    memory: str
    entries: NDArray[np.intp]
    writes: bool


@dataclass
class _Tile:
    """The fields of a LOAD or STORE, and the bytes of DRAM it touches."""

    fields: Fields
    rows: int  # in SRAM, padding included
    columns: int
    touched: NDArray[np.intp] = field(repr=False)


class _Author:
    def __init__(
        self, rng: np.random.Generator, machine: Machine, iterations: int, data_bytes: int | None
    ):
        self.rng = rng
        self.machine = machine
        self.iterations = iterations
        largest = max(machine.entry_bytes(b) for b in Buffer)
        self.uop_start = 4 * int(rng.integers(0, 1024))
        self.data_start = self.uop_start + 4 * UOP_COUNT
        self.data_end = self.data_start + (data_bytes or max(64 * largest, 16384))
        self.dram = np.zeros(self.data_end, dtype=np.uint8)
        self.dram[self.data_start :] = self._data(self.data_end - self.data_start)
        self.uop_words = encode_uops(self._uops(UOP_COUNT), machine)
        self.dram[self.uop_start : self.data_start] = self.uop_words.astype("<u4").view(np.uint8)
        self.uop_sram = np.zeros((machine.depth(Buffer.UOP), 3), dtype=np.int32)
        self.loaded = np.zeros(machine.depth(Buffer.UOP), dtype=np.bool_)
        self.weaver = Weaver(rng, machine.queues.token)
        self.memories = {
            "INP": Accesses(machine.depth(Buffer.INP)),
            "WGT": Accesses(machine.depth(Buffer.WGT)),
            "ACC": Accesses(machine.depth(Buffer.ACC)),
            "UOP": Accesses(machine.depth(Buffer.UOP)),
            "DRAM": Accesses(self.data_end),
        }

    # -- one instruction ------------------------------------------------------------------------

    def write_one(self) -> None:
        writers, weights = zip(
            (self.load_inp, 3),
            (self.load_wgt, 2),
            (self.load_uops, 2),
            (self.load_acc, 2),
            (self.load_acc_8bit, 1),
            (self.gemm, 4),
            (self.alu, 5),
            (self.store, 3),
            (self.nothing, 1),
            *([(self.requantize, 3)] if self.machine.extensions.alu_requantize else []),
            strict=True,
        )
        writers[self.rng.choice(len(writers), p=np.array(weights) / sum(weights))]()

    def load_inp(self) -> None:
        self._load(Buffer.INP, Stage.LOAD)

    def load_wgt(self) -> None:
        self._load(Buffer.WGT, Stage.LOAD)

    def load_acc(self) -> None:
        self._load(Buffer.ACC, Stage.COMPUTE)

    def load_acc_8bit(self) -> None:
        self._load(Buffer.ACC_8BIT, Stage.COMPUTE)

    def load_uops(self) -> None:
        tile = self._tile(Buffer.UOP, self.uop_start, self.data_start, pads=self._chance(0.3))
        base = tile.fields["sram_base"]
        image = np.zeros((tile.rows, tile.columns, 3), dtype=np.int32)
        top, left = tile.fields["y_pad_before"], tile.fields["x_pad_before"]
        for row in range(tile.fields["y_size"]):
            start = tile.fields["dram_base"] - self.uop_start // 4 + row * tile.fields["x_stride"]
            words = self.uop_words[start : start + tile.fields["x_size"]]
            uops = decode_uops(words, self.machine)
            image[top + row, left : left + len(uops)] = uops
        entries = slice(base, base + tile.rows * tile.columns)
        self.uop_sram[entries] = image.reshape(-1, 3)
        self.loaded[entries] = True
        self._add_tile(tile, Buffer.UOP, Stage.COMPUTE, "UOP", to_sram=True)

    def _load(self, buffer: Buffer, stage: Stage) -> None:
        tile = self._tile(buffer, self.data_start, self.data_end, pads=self._chance(0.4))
        memory = "ACC" if buffer == Buffer.ACC_8BIT else buffer.name
        self._add_tile(tile, buffer, stage, memory, to_sram=True)

    def store(self) -> None:
        tile = self._tile(Buffer.OUT, self.data_start, self.data_end, pads=False)
        self._add_tile(tile, Buffer.OUT, Stage.STORE, "ACC", to_sram=False)

    def nothing(self) -> None:
        """A no-op of any stage, canonical or with fields that must not matter."""
        stage = Stage(int(self.rng.integers(1, 4)))
        if self._chance(0.5):
            self._add(noop(stage), stage, [])
            return
        buffers = {
            Stage.LOAD: (Buffer.INP, Buffer.WGT),
            Stage.COMPUTE: (Buffer.UOP, Buffer.ACC, Buffer.ACC_8BIT),
            Stage.STORE: (Buffer.UOP, Buffer.OUT),
        }[stage]
        insn = {
            "opcode": Opcode.STORE if stage == Stage.STORE else Opcode.LOAD,
            "buffer": int(self.rng.choice(buffers)),
            "sram_base": self._up_to(0xFFFF),
            "dram_base": self._up_to(0xFFFFFFFF),
            "y_size": self._up_to(0xFFFF),
            "x_stride": self._up_to(0xFFFF),
            "y_pad_before": self._up_to(15),
            "x_pad_after": self._up_to(15),
        }
        self._add(insn, stage, [])

    def gemm(self) -> None:
        begin, end, uops = self._uop_range()
        depths = [self.machine.depth(b) for b in (Buffer.ACC, Buffer.INP, Buffer.WGT)]
        reset = self._chance(0.3) or any((uops.max(axis=0, initial=0) >= depths).tolist())
        iters = self._iters(len(uops))
        used = (True, not reset, not reset)
        factors = [self._factors(uops[:, k], iters, depths[k], used[k]) for k in range(len(depths))]
        dst, src, wgt = factors
        overwrite = self.machine.extensions.gemm_overwrite and not reset and self._chance(0.5)
        operands = {"dst": dst, "src": src, "wgt": wgt}
        insn = gemm(uops=(begin, end), iters=iters, **operands, reset=reset, overwrite=overwrite)
        touched = [self._touched(uops[:, k], iters, factors[k]) for k in range(len(depths))]
        accesses = [_Access("ACC", touched[0], writes=True)]
        if not reset:
            accesses += [_Access("INP", touched[1], False), _Access("WGT", touched[2], False)]
        self._add(insn, Stage.COMPUTE, accesses)

    def alu(self) -> None:
        begin, end, uops = self._uop_range()
        depth = self.machine.depth(Buffer.ACC)
        op = AluOp(int(self.rng.integers(len(AluOp))))
        immediate = self._chance(0.5) or int(uops[:, 1].max(initial=0)) >= depth
        iters = self._iters(len(uops))
        dst = self._factors(uops[:, 0], iters, depth, used=True)
        src = self._factors(uops[:, 1], iters, depth, used=not immediate)
        imm = self._immediate() if immediate else None
        insn = alu(op, uops=(begin, end), iters=iters, dst=dst, src=src, imm=imm)
        accesses = [_Access("ACC", self._touched(uops[:, 0], iters, dst), writes=True)]
        if not immediate:
            accesses.append(_Access("ACC", self._touched(uops[:, 1], iters, src), writes=False))
        self._add(insn, Stage.COMPUTE, accesses)

    def requantize(self) -> None:
        begin, end, uops = self._uop_range()
        depth = self.machine.depth(Buffer.ACC)
        first = uops[:1, 1]
        biased = self._chance(0.7) and int(first.max(initial=0)) < depth
        iters = self._iters(len(uops))
        dst = self._factors(uops[:, 0], iters, depth, used=True)
        src = (self._factors(first, (iters[0], 1), depth, used=biased)[0], 0)
        insn = requantize(
            uops=(begin, end),
            iters=iters,
            dst=dst,
            bias=src[0] if biased else None,
            shift=self._up_to(31 if self._chance(0.3) else 12),
            low=LowKind(self._up_to(len(LowKind) - 1)),
            high=int(self.rng.choice([0, 1, 7, 127, 0x7FFF, self._up_to(0x7FFF)])),
        )
        if not biased:
            insn["src_factor_out"] = src[0]  # must not matter
        while reads_too_early(insn, uops):
            # Fewer iterations meet less often; one alone never does.
            shorter = end - begin > 1 and self._chance(0.5)
            end, iters = (
                (end - 1, iters) if shorter else (end, tuple(max(1, n // 2) for n in iters))
            )
            if iters == (1, 1):
                end = max(begin + 1, end - 1)
            uops = uops[: end - begin]
            insn |= {"uop_end": end, "iter_out": iters[0], "iter_in": iters[1]}
        accesses = [_Access("ACC", self._touched(uops[:, 0], iters, dst), writes=True)]
        if biased:
            accesses.append(_Access("ACC", self._touched(first, iters, src), writes=False))
        self._add(insn, Stage.COMPUTE, accesses)

    # -- what instructions touch, and in which order ---------------------------------------------

    def _add(self, insn: Fields, stage: Stage, accesses: list[_Access]) -> None:
        after = dict.fromkeys(Stage, 0)
        for access in accesses:
            memory = self.memories[access.memory]
            must = memory.before_write if access.writes else memory.before_read
            for other, place in must(access.entries).items():
                after[other] = max(after[other], place)
        place = self.weaver.add(insn, stage, after)
        for access in accesses:
            memory = self.memories[access.memory]
            (memory.written if access.writes else memory.read)[stage][access.entries] = place

    def _add_tile(
        self, tile: _Tile, buffer: Buffer, stage: Stage, memory: str, *, to_sram: bool
    ) -> None:
        entries = tile.fields["sram_base"] + np.arange(tile.rows * tile.columns)
        insn = (
            load(buffer, **_call(tile.fields, pads=True))
            if to_sram
            else store(**_call(tile.fields, pads=False))
        )
        accesses = [
            _Access(memory, entries, writes=to_sram),
            _Access("DRAM", tile.touched, writes=not to_sram),
        ]
        self._add(insn, stage, accesses)

    # -- random parts ----------------------------------------------------------------------------

    def _tile(self, buffer: Buffer, start: int, end: int, *, pads: bool) -> _Tile:
        """A two-dimensional access that fits the memory and ``dram[start:end]``."""
        unit, depth = self.machine.entry_bytes(buffer), self.machine.depth(buffer)
        lowest, highest = -(-start // unit), end // unit  # entries that lie inside
        room = highest - lowest
        y = 0 if self._chance(0.05) else 1 + self._up_to(3)
        x = 1 + self._up_to(min(room, depth) - 1 if self._chance(0.1) else 7)
        y_pads, x_pads = ((self._pad(), self._pad()) if pads else (0, 0) for _ in range(2))
        while (sum(y_pads) + y) * (sum(x_pads) + x) > depth or x > room:
            y_pads, x_pads = ((p // 2, q // 2) for p, q in (y_pads, x_pads))
            y, x = -(-y // 2), -(-x // 2)
        rows, columns = sum(y_pads) + y, sum(x_pads) + x
        stride = int(
            self.rng.choice([x, x, x + self._up_to(5), 0, self._up_to(x), self._up_to(64)])
        )
        if y > 1:
            stride = min(stride, (room - x) // (y - 1), 0xFFFF)
        extent = (y - 1) * stride + x if y else 0
        fields = {
            "sram_base": self._base(depth - rows * columns),
            "dram_base": lowest + self._base(room - extent),
            "y_size": y,
            "x_size": x,
            "x_stride": stride,
            "y_pad_before": y_pads[0],
            "y_pad_after": y_pads[1],
            "x_pad_before": x_pads[0],
            "x_pad_after": x_pads[1],
        }
        first = (fields["dram_base"] + stride * np.arange(y)) * unit
        touched = (first[:, None] + np.arange(x * unit)).reshape(-1)
        return _Tile(fields, rows, columns, touched)

    def _uop_range(self) -> tuple[int, int, NDArray[np.int32]]:
        """begin, end and the micro-ops between; mostly loaded ones, sometimes none at all."""
        depth = len(self.loaded)
        loaded = np.flatnonzero(self.loaded)
        begin = int(self.rng.choice(loaded)) if len(loaded) else 0
        if self._chance(0.05):
            end = self._up_to(begin)  # empty, and maybe backwards
        else:
            end = min(begin + 1 + self._up_to(3 if self._chance(0.7) else 20), depth)
        return begin, end, self.uop_sram[begin:end]

    def _iters(self, uops: int) -> tuple[int, int]:
        if self._chance(0.05):
            return [(0, self._up_to(MAX_LOOP)), (self._up_to(MAX_LOOP), 0)][self._up_to(1)]
        room = max(self.iterations // max(uops, 1), 1)
        if uops == 0:
            return self._up_to(MAX_LOOP), self._up_to(MAX_LOOP)
        inner = 1 + self._up_to(min(room, 16) - 1)
        outer = 1 + self._up_to(room // inner - 1)
        return [(outer, inner), (inner, outer), (1, inner)][self._up_to(2)]

    def _factors(
        self, indices: NDArray[np.int32], iters: tuple[int, int], depth: int, used: bool
    ) -> tuple[int, int]:
        """Outer and inner factor that keep every index below ``depth``; any at all where unused."""
        if not used or not len(indices) or 0 in iters:
            return self._up_to(depth - 1), self._up_to(depth - 1)
        room = depth - 1 - int(indices.max())
        factors = []
        for count, dense in zip(iters, (iters[1], 1), strict=True):
            most = min(room // (count - 1), depth - 1) if count > 1 else depth - 1
            options = [0, 1, dense, dense, self._up_to(most), self._up_to(min(most, 8))]
            factor = min(int(self.rng.choice(options)), most)
            room -= factor * (count - 1)
            factors.append(factor)
        return factors[0], factors[1]

    def _touched(
        self, indices: NDArray[np.int32], iters: tuple[int, int], factors: tuple[int, int]
    ) -> NDArray[np.intp]:
        if not len(indices) or 0 in iters:
            return np.zeros(0, dtype=np.intp)
        outer, inner = (np.arange(n) * f for n, f in zip(iters, factors, strict=True))
        return np.unique(outer[:, None, None] + inner[:, None] + indices).astype(np.intp)

    def _immediate(self) -> int:
        edges = [0, 1, -1, 31, -31, 32, -32, 0x7FFF, -0x8000]
        options = [*edges, *self.rng.integers(-40, 41, 8), *self.rng.integers(-0x8000, 0x8000, 4)]
        return int(self.rng.choice(options))

    def _uops(self, count: int) -> NDArray[np.int32]:
        """``(count, 3)`` indices, mostly low, few of them past what a GEMM may use."""
        acc, inp, wgt = (self.machine.depth(b) for b in (Buffer.ACC, Buffer.INP, Buffer.WGT))
        src = [max(acc, inp) if self._chance(0.02) else min(acc, inp) for _ in range(count)]
        columns = [
            [self._index(acc) for _ in range(count)],
            [self._index(depth) for depth in src],
            [self._index(wgt) for _ in range(count)],
        ]
        return np.array(columns, dtype=np.int32).T

    def _index(self, depth: int) -> int:
        if self._chance(0.6):
            return self._up_to(min(depth, 12) - 1)
        return depth - 1 if self._chance(0.1) else self._up_to(depth - 1)

    def _data(self, size: int) -> NDArray[np.uint8]:
        """Blocks of any bytes, of accumulators about to wrap, of small ones, and of zeros."""
        word = self.machine.dtype(Buffer.ACC)
        wall = 1 << (8 * word.itemsize - 1)
        blocks = []
        for _ in range(-(-size // BLOCK_BYTES)):
            near = self.rng.integers(-64, 64, BLOCK_BYTES // word.itemsize)
            kind = self._up_to(7)
            if kind < 4:
                blocks.append(self.rng.integers(0, 256, BLOCK_BYTES, dtype=np.uint8))
            else:
                centre = wall if kind < 6 else 0
                wrapped = (near + centre + wall) % (2 * wall) - wall
                values = np.zeros_like(near) if kind == 7 and self._chance(0.3) else wrapped
                blocks.append(values.astype(word).view(np.uint8))
        return np.concatenate(blocks)[:size]

    def _pad(self) -> int:
        return self._up_to(15) if self._chance(0.1) else self._up_to(3)

    def _base(self, most: int) -> int:
        """A start between 0 and ``most``: low ones and the highest more often than others."""
        if self._chance(0.1):
            return most
        return min(self._up_to(15), most) if self._chance(0.5) else self._up_to(most)

    def _up_to(self, most: int) -> int:
        return int(self.rng.integers(0, max(most, 0) + 1))

    def _chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)


def _call(fields: Fields, *, pads: bool) -> dict[str, object]:
    """Arguments of ``vta_isa.insn.load`` or ``store`` for a tile's fields."""
    plain = ("sram_base", "dram_base", "y_size", "x_size", "x_stride")
    arguments: dict[str, object] = {name: fields[name] for name in plain}
    if pads:
        for axis in "yx":
            arguments[f"{axis}_pad"] = tuple(fields[f"{axis}_pad_{e}"] for e in ("before", "after"))
    return arguments
