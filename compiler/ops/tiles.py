"""Choosing the tile of a matrix product or convolution: fits on chip, then costs the least.

Every tile size is tried that is the smallest for its tile count (an extent of 13 may be
cut into two tiles of 7; the padding is computed and thrown away). A candidate must fit the
scratchpads, ``threads`` times over; of those that fit, the one with the smallest makespan of
``pipeline_cost`` wins. Nothing is looked up in a table of known layers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from itertools import product as combinations
from math import prod

import numpy as np
from numpy.typing import NDArray

from vta_isa import Buffer, Machine, WorkloadError
from vta_isa.sections import Memory

from .epilogue import Epilogue
from .pipeline_cost import Costs, Reads, TileWork, ceil_div


@dataclass(frozen=True)
class Axis:
    """An output axis in blocks (channels) or points (rows, columns).

    ``exact``: tiles must divide the extent, because reading beyond it is not possible.
    """

    name: str
    extent: int
    exact: bool = False

    def tiles(self) -> list[int]:
        sizes = {ceil_div(self.extent, count) for count in range(1, self.extent + 1)}
        return sorted(t for t in sizes if not self.exact or self.extent % t == 0)


@dataclass(frozen=True)
class Product:
    """A tiled product in units of entries.

    ``out``: output axes, ``co`` (output channel blocks) first; ``ci``: input channel blocks;
    ``taps``: kernel positions per input channel block. ``inp_box(sizes)`` gives, for tile sizes of
    the output axes after ``co``, the (rows, columns) of one input channel block a tile reads.
    ``load_per_channel``: each input channel block is a LOAD of its own (a plane of a convolution);
    otherwise one LOAD brings rows of ``ci`` entries (a matrix).
    """

    name: str
    out: tuple[Axis, ...]
    ci: int
    taps: int
    inp_box: Callable[[tuple[int, ...]], tuple[int, int]]
    load_per_channel: bool


@dataclass(frozen=True)
class Tile:
    """Sizes of one on-chip tile, in entries per axis, and how tiles go to virtual threads.

    ``out`` maps output axes to tile sizes, ``ci`` is the reduction step. ``threads`` tiles are in
    flight; consecutive halves of axis ``thread_axis`` go to different threads.
    """

    out: dict[str, int]
    ci: int
    threads: int
    thread_axis: str | None
    bias_stays: bool
    """The whole bias is on chip for the whole run; otherwise each tile brings its own part."""
    cycles: int = 0
    """What ``pipeline_cost`` expects."""

    def describe(self) -> str:
        """``co 4, oh 7, ow 28, ci 2; 2 virtual threads over oh``"""
        sizes = ", ".join(f"{name} {size}" for name, size in self.out.items())
        over = f"; {self.threads} virtual threads over {self.thread_axis}"
        return f"{sizes}, ci {self.ci}{over if self.thread_axis else ''}"

    def padded(self, axis: Axis) -> int:
        """The extent of ``axis`` rounded up to whole tiles."""
        return ceil_div(axis.extent, self.out[axis.name]) * self.out[axis.name]


def choose_tile(
    product: Product,
    epilogue: Epilogue,
    machine: Machine,
    *,
    threads: int,
    candidates: int | None = None,
) -> Tile:
    """The cheapest tile that fits, over at most ``threads`` virtual threads.

    ``candidates`` bounds how many tiles have their makespan worked out, those with the least lower
    bounds; by default all that could win. Raises ``WorkloadError`` with the smallest tile's needs
    where none fits.
    """
    space = _space(product, epilogue, machine, threads)
    bounds = space.lower_bounds(machine.memory)
    order = np.argsort(bounds, kind="stable")[:candidates]
    best: Tile | None = None
    for number, bound in zip(order.tolist(), bounds[order].tolist(), strict=True):
        if best is not None and bound >= best.cycles:
            break  # sorted: nothing after this one can win
        cycles = space.work(number).at(machine.memory).makespan()
        if best is None or cycles < best.cycles:
            best = replace(space.tile(number), cycles=cycles)
    if best is None:
        raise WorkloadError(_why_nothing_fits(product, epilogue, machine))
    return best


class _Space:
    """Every tile that fits, as columns of numbers: machines whose memories differ in latency share
    them, and a bound is worked out for all of them at a time."""

    def __init__(self, product: Product, rows: list[_Candidate]):
        self._product = product
        self._columns = np.array(rows, np.int64).reshape(len(rows), _COLUMNS).T

    def lower_bounds(self, memory: Memory) -> NDArray[np.int64]:
        """``TileWork.lower_bound`` of each tile, (n,)."""
        work = dict(zip(_WORK_FIELDS, self._columns, strict=False))
        reads = Reads(*self._columns[len(_WORK_FIELDS) : len(_WORK_FIELDS) + len(Reads._fields)])
        for name in Reads._fields:
            work[name] = work[name] + memory.read_latency * getattr(reads, name)
        store = work["store"] + memory.write_latency
        tiles = work["rounds"] * work["threads"]
        each = work["steps"] * work["product"] + work["reset"] + work["epilogue"]
        compute = tiles * each + work["threads"] * work["kernels"]
        load = tiles * work["steps"] * work["load"]
        first = np.maximum(work["load"], work["setup"])
        bounds: NDArray[np.int64] = store + np.maximum(first + compute, load + work["product"])
        return bounds

    def work(self, number: int) -> TileWork:
        """What a tile costs, latency not counted."""
        row = self._columns[:, number].tolist()
        end = len(_WORK_FIELDS) + len(Reads._fields)
        reads = Reads(*row[len(_WORK_FIELDS) : end])
        return TileWork(**dict(zip(_WORK_FIELDS, row, strict=False)), reads=reads)

    def tile(self, number: int) -> Tile:
        """The tile itself."""
        row = self._columns[:, number].tolist()
        ci, axis, stays, *sizes = row[len(_WORK_FIELDS) + len(Reads._fields) :]
        names = [each.name for each in self._product.out]
        return Tile(
            out=dict(zip(names, sizes, strict=False)),
            ci=ci,
            threads=row[_WORK_FIELDS.index("threads")],
            thread_axis=names[axis] if axis >= 0 else None,
            bias_stays=bool(stays),
        )


_WORK_FIELDS = tuple(field.name for field in fields(TileWork) if field.name != "reads")
_MOST_AXES = 3
# The work, its reads, ci, thread axis (-1: none), whether the bias stays, sizes.
_COLUMNS = len(_WORK_FIELDS) + len(Reads._fields) + 3 + _MOST_AXES
_Candidate = tuple[int, ...]

_MOST_SPACES = 64  # kept; one of ResNet-18 takes up to a megabyte
_SPACES: dict[tuple[Product, Epilogue, str, int], _Space] = {}


def _space(product: Product, epilogue: Epilogue, machine: Machine, threads: int) -> _Space:
    """The candidates, from memory where the same were asked for before."""
    key = (product, epilogue, machine.hash, threads)
    space = _SPACES.pop(key, None)
    if space is None:
        space = _Space(
            product, [_row(*each) for each in _candidates(product, epilogue, machine, threads)]
        )
        if len(_SPACES) >= _MOST_SPACES:
            del _SPACES[next(iter(_SPACES))]
    _SPACES[key] = space  # now the youngest
    return space


def _row(work: TileWork, tile: Tile) -> _Candidate:
    names = list(tile.out)
    axis = names.index(tile.thread_axis) if tile.thread_axis is not None else -1
    sizes = [*tile.out.values(), 0, 0][:_MOST_AXES]
    fixed = [getattr(work, name) for name in _WORK_FIELDS]
    return (*fixed, *work.reads, tile.ci, axis, int(tile.bias_stays), *sizes)


def _candidates(
    product: Product, epilogue: Epilogue, machine: Machine, threads: int
) -> Iterator[tuple[TileWork, Tile]]:
    """Every tile that fits, with what it costs where memory answers at once."""
    co, *spatial = product.out
    costs = Costs(machine, latency=False)
    fused = epilogue.fused(machine, added=epilogue.bias) is not None
    # Each thread has a token of its own on the way between two stages: without room for all of
    # them, the stages wait for each other.
    for count in sorted({1, min(threads, machine.queues.token)}):
        for sizes in combinations(*(axis.tiles() for axis in spatial)):
            rows, columns = product.inp_box(sizes)
            points = prod(sizes)
            for ci in _reduction_steps(product.ci):
                if count * rows * columns * ci > costs.depth[Buffer.INP]:
                    continue
                for co_tile in co.tiles():
                    out = {co.name: co_tile} | {
                        axis.name: size for axis, size in zip(spatial, sizes, strict=True)
                    }
                    tile_counts = {
                        axis.name: ceil_div(axis.extent, out[axis.name]) for axis in product.out
                    }
                    axis_name = _thread_axis(tile_counts, count)
                    if count > 1 and axis_name is None:
                        continue
                    channels = tile_counts[co.name] * co_tile
                    for bias_stays in (True, False) if epilogue.bias else (True,):
                        bias = channels if bias_stays else count * co_tile
                        acc = count * co_tile * points + (bias if epilogue.bias else 0)
                        if not _fits(product, costs, count, co_tile * ci, acc):
                            continue
                        tile = Tile(out, ci, count, axis_name, bias_stays)
                        tiles = prod(tile_counts.values())
                        work = _work(product, epilogue, fused, costs, tile, tiles, rows, columns)
                        yield work, tile


def _reduction_steps(extent: int) -> list[int]:
    return [step for step in range(1, extent + 1) if extent % step == 0]


def _thread_axis(tile_counts: dict[str, int], threads: int) -> str | None:
    """The axis whose tiles go round the threads: one that divides evenly, channels last.

    Rows before channels: threads on neighbouring rows read the same weights.
    """
    for name in reversed(list(tile_counts)):
        if threads > 1 and tile_counts[name] % threads == 0:
            return name
    return None


def _fits(product: Product, costs: Costs, threads: int, blocks: int, acc: int) -> bool:
    """Whether ``blocks`` pairs of output and input channel blocks per thread fit, and ``acc``."""
    kernel = blocks * product.taps
    # GEMM, reset, bias and element-wise kernels of every thread at the same time; the GEMM twice
    # where the first one, less what overwrites, is another
    uops = threads * (kernel * (1 + costs.overwrites) + 3)
    return (
        threads * kernel <= costs.depth[Buffer.WGT]
        and acc <= costs.depth[Buffer.ACC]
        and uops <= costs.depth[Buffer.UOP]
    )


def _work(
    product: Product,
    epilogue: Epilogue,
    fused: bool,
    costs: Costs,
    tile: Tile,
    tiles: int,
    rows: int,
    columns: int,
) -> TileWork:
    """What ``tiles`` tiles that each read boxes of ``rows x columns`` entries cost.

    ``fused``: the epilogue is one operation.
    """
    co, ci = tile.out[product.out[0].name], tile.ci
    entries = prod(tile.out.values())
    if product.load_per_channel:
        load = ci * costs.load(Buffer.INP, columns, rows)
    else:
        load = costs.load(Buffer.INP, ci, rows * columns)
    alu = costs.requantize(entries, biases=co * epilogue.bias) if fused else 0
    if not fused:
        alu = epilogue.immediates * costs.alu(entries, use_imm=True)
        alu += epilogue.bias * costs.alu(entries, use_imm=False)
    setup = epilogue_reads = setup_reads = 0
    # Micro-op kernels of a thread: reset, product, the epilogue's immediates (which share one),
    # and the bias of each block of output channels it meets. A first product that overwrites needs
    # no reset, but is two kernels.
    uops = [1, _folded_uops([*tile.out.values(), ci, product.taps])]
    reset = costs.gemm(entries)
    if costs.overwrites:
        uops.insert(1, uops[1])
        reset = costs.gemm(0) if ci * product.taps > 1 else 0
    uops += [1] * min(1, epilogue.immediates + (fused and not epilogue.bias))
    if epilogue.bias:
        blocks = ceil_div(product.out[0].extent, co)
        shared = tile.thread_axis == product.out[0].name
        uops += [1] * (blocks // tile.threads if shared else blocks)
        bias = costs.load(Buffer.ACC, product.out[0].extent if tile.bias_stays else co)
        setup, alu = (bias, alu) if tile.bias_stays else (0, alu + bias)
        setup_reads, epilogue_reads = (1, 0) if tile.bias_stays else (0, 1)
    return TileWork(
        load=load + costs.load(Buffer.WGT, co * ci * product.taps),
        product=costs.gemm(entries * ci * product.taps),
        reset=reset,
        epilogue=alu,
        store=costs.store(entries),
        steps=ceil_div(product.ci, ci),
        rounds=tiles // tile.threads,
        threads=tile.threads,
        setup=setup,
        kernels=sum(costs.load(Buffer.UOP, count) for count in uops),
        reads=Reads(
            load=(ci if product.load_per_channel else 1) + 1,
            epilogue=epilogue_reads,
            setup=setup_reads,
            kernels=len(uops),
        ),
    )


def _folded_uops(extents: list[int]) -> int:
    """Micro-ops of a loop nest whose two longest loops are the hardware's."""
    return prod(sorted(extents)[:-2])


def _why_nothing_fits(product: Product, epilogue: Epilogue, machine: Machine) -> str:
    rows, columns = product.inp_box(tuple(1 for _ in product.out[1:]))
    need = {
        Buffer.INP: rows * columns,
        Buffer.WGT: product.taps,
        Buffer.ACC: 1 + epilogue.bias,
        Buffer.UOP: product.taps + 3,
    }
    short = [
        f"{buffer.name} needs {entries} entries and has {machine.depth(buffer)}"
        for buffer, entries in need.items()
        if entries > machine.depth(buffer)
    ]
    return (
        f"{product.name}: no tile fits machine {machine.name!r}; even the smallest (one block "
        "of input and output channels, one output point) does not: "
        f"{'; '.join(short)}; "
        "enlarge that scratchpad in the machine description or shrink the kernel"
    )
