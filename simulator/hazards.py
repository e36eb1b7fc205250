"""Races a stream can have on some memory timing: conflicting accesses that no token orders.

Two accesses conflict when they touch the same SRAM entry or DRAM byte from different stages and at
least one of them writes. They are ordered when a chain of program order within a stage and tokens
between stages leads from one to the other. A stream without findings computes the same on any
timing, so program order may be used to compute its results.

The fetch of the stream itself, and what the host does before and after, are not looked at.

This is the plain statement of it, entry by entry; ``simulator.checker`` finds the same, and more,
some thousand times faster.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from vta_isa.encoding import decode_uops
from vta_isa.enums import Buffer, Opcode, Stage
from vta_isa.errors import StreamError
from vta_isa.machine import Machine

from .checks import check_program, check_uops, executes, is_requantize
from .order import NO_TOKENS, execution_order, happens_before

DRAM = "DRAM"


class HazardKind(StrEnum):
    """What the second access does to data the first one used."""

    RAW = "read after write"
    WAR = "write after read"
    WAW = "write after write"


@dataclass(frozen=True)
class Hazard:
    """Two instructions on different stages that touch the same data in no certain order.

    ``first`` comes before ``second`` in the order the reference runs them. ``memory`` is ``INP``,
    ``WGT``, ``ACC`` (with OUT, its mirror) or ``DRAM``; ``low`` and ``high`` are the lowest and
    highest entry, or byte of DRAM, that both touch.
    """

    kind: HazardKind
    first: int
    second: int
    memory: str
    low: int
    high: int

    def __str__(self) -> str:
        unit = "bytes" if self.memory == DRAM else "entries"
        return (
            f"insn {self.second}: {self.kind} of {self.memory} {unit} {self.low}..{self.high} "
            f"races with insn {self.first}; order them by a token"
        )


def find_hazards(
    table: NDArray[np.void],
    machine: Machine,
    dram: NDArray[np.uint8],
    *,
    uops: NDArray[np.uint32] | None = None,
    tokens: Sequence[int] = NO_TOKENS,
) -> list[Hazard]:
    """Every instruction's races with those before it; an empty list means there is none.

    ``dram`` is the image before the launch; micro-ops are taken from it, so a stream that loads
    micro-ops it stored itself is refused. ``uops (depth,)`` is the micro-op memory and ``tokens``
    the queues that earlier launches left behind. Of all races of an instruction over one entry
    with one other stage, the last is reported. Raises ``StreamError`` where the stream cannot run.
    """
    check_program(table, machine, len(dram))
    order = execution_order(table, machine, tokens)
    before = happens_before(table, order, tokens)
    number_at = {stage: np.flatnonzero(before.stage == stage) for stage in Stage}
    footprint = _Footprint(table, machine, dram, uops)
    history = {memory: _History(size) for memory, size in footprint.sizes.items()}
    found: list[Hazard] = []
    for second in order.tolist():
        own = Stage(int(before.stage[second]))
        touches = footprint.of(second, history[DRAM])
        for touch in touches:
            for other in (stage for stage in Stage if stage != own):
                known = int(before.known[second, other - 1])
                for kind, place, where in history[touch.memory].races(touch, other, known):
                    low, high = footprint.span(touch.memory, where)
                    first = int(number_at[other][place - 1])
                    found.append(Hazard(kind, first, second, touch.memory, low, high))
        for touch in touches:
            history[touch.memory].note(touch, own, int(before.place[second]))
    return found


@dataclass(frozen=True)
class _Touch:
    """Entries of one SRAM, or cells of DRAM, that an instruction reads or writes."""

    memory: str
    where: NDArray[np.intp]
    writes: bool


class _History:
    """Who touched each place of a memory last: per stage, the place of the instruction in it."""

    def __init__(self, size: int):
        self.read = {stage: np.zeros(size, dtype=np.int64) for stage in Stage}
        self.written = {stage: np.zeros(size, dtype=np.int64) for stage in Stage}

    def races(
        self, touch: _Touch, other: Stage, known: int
    ) -> Iterator[tuple[HazardKind, int, NDArray[np.intp]]]:
        """Conflicting accesses by ``other`` past its ``known`` first: kind, which one, where."""
        pasts = [(HazardKind.WAW if touch.writes else HazardKind.RAW, self.written[other])]
        if touch.writes:
            pasts.append((HazardKind.WAR, self.read[other]))
        for kind, past in pasts:
            last = past[touch.where]
            late = last > known
            for place in np.unique(last[late]).tolist():
                yield kind, place, touch.where[last == place]

    def note(self, touch: _Touch, own: Stage, place: int) -> None:
        (self.written if touch.writes else self.read)[own][touch.where] = place


class _Footprint:
    """What each instruction touches. Must be asked in the order of execution: micro-ops change."""

    def __init__(
        self,
        table: NDArray[np.void],
        machine: Machine,
        dram: NDArray[np.uint8],
        uops: NDArray[np.uint32] | None,
    ):
        self.table = table
        self.machine = machine
        self.dram = dram
        depth = machine.depth(Buffer.UOP)
        self.uops = np.zeros(depth, dtype=np.uint32) if uops is None else uops.copy()
        self.edges = _cell_edges(table, machine)
        self.sizes = {b.name: machine.depth(b) for b in (Buffer.INP, Buffer.WGT, Buffer.ACC)}
        self.sizes[DRAM] = max(len(self.edges) - 1, 0)

    def of(self, number: int, stored: _History) -> list[_Touch]:
        """The accesses of one instruction; ``stored`` is the history of DRAM so far."""
        record = self.table[number]
        opcode = int(record["opcode"])
        if opcode == Opcode.LOAD and record["x_size"]:
            cells = self._cells(record)
            if int(record["buffer"]) == Buffer.UOP:
                self._load_uops(record, number, cells, stored)
                return []  # only compute touches micro-ops, and nobody stored these
            return [_Touch(DRAM, cells, False), _Touch(_sram(record), _dense(record), True)]
        if opcode == Opcode.STORE and record["x_size"]:
            cells = self._cells(record)
            return [_Touch(DRAM, cells, True), _Touch(_sram(record), _dense(record), False)]
        if opcode in (Opcode.GEMM, Opcode.ALU) and executes(record):
            return self._operands(record, number)
        return []

    def span(self, memory: str, where: NDArray[np.intp]) -> tuple[int, int]:
        """The lowest and highest entry, or byte of DRAM."""
        low, high = int(where.min()), int(where.max())
        if memory == DRAM:
            return int(self.edges[low]), int(self.edges[high + 1]) - 1
        return low, high

    def _cells(self, record: np.void) -> NDArray[np.intp]:
        starts, ends = _dram_rows(record, self.machine)
        return _ranges(*_covered(self.edges, starts, ends))

    def _operands(self, record: np.void, number: int) -> list[_Touch]:
        words = self.uops[int(record["uop_begin"]) : int(record["uop_end"])]
        uops = decode_uops(words, self.machine)
        check_uops(record, number, uops, self.machine)
        touches = [_Touch("ACC", _reached(record, "dst", uops[:, 0]), True)]
        if record["opcode"] == Opcode.ALU:
            if not record["use_imm"]:
                src = uops[:1, 1] if is_requantize(record) else uops[:, 1]
                touches.append(_Touch("ACC", _reached(record, "src", src), False))
        elif not record["reset"]:
            touches.append(_Touch("INP", _reached(record, "src", uops[:, 1]), False))
            touches.append(_Touch("WGT", _reached(record, "wgt", uops[:, 2]), False))
        return touches

    def _load_uops(
        self, record: np.void, number: int, cells: NDArray[np.intp], stored: _History
    ) -> None:
        if stored.written[Stage.STORE][cells].any():
            raise StreamError(
                f"insn {number} (LOAD UOP): loads micro-ops that the stream itself stores; the "
                "hazard check knows only those of the image before the launch; store them in an "
                "earlier launch",
                insn=number,
            )
        self.uops[_dense(record)] = 0
        starts, ends = _dram_rows(record, self.machine)
        left = int(record["x_pad_before"])
        pitch = left + int(record["x_size"]) + int(record["x_pad_after"])
        for row, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
            words = self.dram[start:end].copy().view("<u4")
            entry = int(record["sram_base"]) + (int(record["y_pad_before"]) + row) * pitch + left
            self.uops[entry : entry + len(words)] = words


def _sram(record: np.void) -> str:
    buffer = Buffer(int(record["buffer"]))
    return Buffer.ACC.name if buffer in (Buffer.OUT, Buffer.ACC_8BIT) else buffer.name


def _dense(record: np.void) -> NDArray[np.intp]:
    """The SRAM entries of a LOAD or STORE, padding included."""
    rows = int(record["y_pad_before"]) + int(record["y_size"]) + int(record["y_pad_after"])
    columns = int(record["x_pad_before"]) + int(record["x_size"]) + int(record["x_pad_after"])
    return int(record["sram_base"]) + np.arange(rows * columns, dtype=np.intp)


def _reached(record: np.void, operand: str, indices: NDArray[np.int32]) -> NDArray[np.intp]:
    """The entries that an operand of a GEMM or ALU reaches, each once."""
    outer, inner = (
        np.arange(int(record[f"iter_{level}"])) * int(record[f"{operand}_factor_{level}"])
        for level in ("out", "in")
    )
    starts = np.unique(indices).astype(np.intp)
    reached = np.unique(outer)[:, None, None] + np.unique(inner)[:, None] + starts
    entries: NDArray[np.intp] = np.unique(reached)
    return entries


def _dram_rows(record: np.void, machine: Machine) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First byte of each DRAM row of a LOAD or STORE, and the byte behind its last."""
    unit = machine.entry_bytes(Buffer(int(record["buffer"])))
    rows = np.arange(int(record["y_size"]), dtype=np.int64)
    starts = (int(record["dram_base"]) + rows * int(record["x_stride"])) * unit
    return starts, starts + int(record["x_size"]) * unit


def _cell_edges(table: NDArray[np.void], machine: Machine) -> NDArray[np.int64]:
    """Sorted byte addresses that cut the stored part of DRAM into cells.

    Every access covers a cell wholly or not at all. What no instruction stores never changes, so
    loads elsewhere make no cells.
    """
    nothing = np.zeros(0, dtype=np.int64)
    rows = {Opcode.LOAD: [(nothing, nothing)], Opcode.STORE: [(nothing, nothing)]}
    for number in np.flatnonzero(np.isin(table["opcode"], list(rows)) & (table["x_size"] > 0)):
        record = table[number]
        rows[Opcode(int(record["opcode"]))].append(_dram_rows(record, machine))
    (load_starts, load_ends), (store_starts, store_ends) = (
        tuple(np.concatenate(sides) for sides in zip(*rows[op], strict=True))
        for op in (Opcode.LOAD, Opcode.STORE)
    )
    edges = np.unique(np.concatenate([store_starts, store_ends]))
    opened = np.searchsorted(np.sort(store_starts), edges, side="right")
    closed = np.searchsorted(np.sort(store_ends), edges, side="right")
    stored_before = np.concatenate([[0], np.cumsum(opened > closed)])  # cells stored, up to here
    first, behind = _covered(edges, load_starts, load_ends)
    shared = stored_before[behind] > stored_before[first]
    return np.unique(np.concatenate([edges, load_starts[shared], load_ends[shared]]))


def _covered(
    edges: NDArray[np.int64], starts: NDArray[np.int64], ends: NDArray[np.int64]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """For each byte range: the first cell it shares bytes with, and the cell behind the last."""
    cells = max(len(edges) - 1, 0)
    first = np.clip(np.searchsorted(edges, starts, side="right") - 1, 0, cells)
    behind = np.clip(np.searchsorted(edges, ends, side="left"), 0, cells)
    return first, np.maximum(behind, first)


def _ranges(first: NDArray[np.intp], behind: NDArray[np.intp]) -> NDArray[np.intp]:
    """All the numbers of the ranges ``first..behind - 1``, one range after the other."""
    sizes = behind - first
    skipped = np.cumsum(sizes) - sizes
    numbers: NDArray[np.intp] = np.arange(sizes.sum()) + np.repeat(first - skipped, sizes)
    return numbers
