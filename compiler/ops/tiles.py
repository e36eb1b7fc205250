"""Choosing the tile of a matrix product or convolution: fits on chip, then costs the least.

Every tile size is tried that is the smallest for its tile count (an extent of 13 may be
cut into two tiles of 7; the padding is computed and thrown away). A candidate must fit the
scratchpads, ``threads`` times over; of those that fit, the one with the smallest makespan of
``pipeline_cost`` wins. Nothing is looked up in a table of known layers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from vta_isa import Buffer, Machine, WorkloadError

from .epilogue import Epilogue
from .pipeline_cost import TileWork, alu_cycles, gemm_cycles, load_cycles, store_cycles


def ceil_div(a: int, b: int) -> int:
    return -(-a // b)


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
    cycles: int
    """What ``pipeline_cost`` expects."""

    def describe(self) -> str:
        """``co 4, oh 7, ow 28, ci 2; 2 virtual threads over oh``"""
        sizes = ", ".join(f"{name} {size}" for name, size in self.out.items())
        over = f"; {self.threads} virtual threads over {self.thread_axis}"
        return f"{sizes}, ci {self.ci}{over if self.thread_axis else ''}"

    def padded(self, axis: Axis) -> int:
        """The extent of ``axis`` rounded up to whole tiles."""
        return ceil_div(axis.extent, self.out[axis.name]) * self.out[axis.name]


def entry_beats(machine: Machine, buffer: Buffer, entries: int) -> int:
    return ceil_div(entries * machine.entry_bytes(buffer), machine.bus_bytes)


def choose_tile(product: Product, epilogue: Epilogue, machine: Machine, *, threads: int) -> Tile:
    """The cheapest tile that fits, over at most ``threads`` virtual threads.

    Raises ``WorkloadError`` with the smallest tile's needs where none fits.
    """
    candidates = sorted(
        (
            (work.lower_bound, number, work, tile)
            for number, (work, tile) in enumerate(_candidates(product, epilogue, machine, threads))
        ),
        key=lambda c: c[:2],
    )
    best: Tile | None = None
    for bound, _, work, tile in candidates:
        if best is not None and bound >= best.cycles:
            break  # sorted: nothing after this one can win
        cycles = work.makespan()
        if best is None or cycles < best.cycles:
            best = Tile(tile.out, tile.ci, tile.threads, tile.thread_axis, cycles)
    if best is None:
        raise WorkloadError(_why_nothing_fits(product, machine))
    return best


def _candidates(
    product: Product, epilogue: Epilogue, machine: Machine, threads: int
) -> Iterator[tuple[TileWork, Tile]]:
    co, *spatial = product.out
    bias_entries = co.extent if epilogue.bias else 0
    for count in {1, threads}:
        for sizes in _products([axis.tiles() for axis in spatial]):
            rows, columns = product.inp_box(sizes)
            points = 1
            for size in sizes:
                points *= size
            for ci in _reduction_steps(product.ci):
                if count * rows * columns * ci > machine.depth(Buffer.INP):
                    continue
                for co_tile in co.tiles():
                    out = {co.name: co_tile} | {
                        axis.name: size for axis, size in zip(spatial, sizes, strict=True)
                    }
                    if not _fits(product, machine, count, co_tile, points, ci, bias_entries):
                        continue
                    tile_counts = {
                        axis.name: ceil_div(axis.extent, out[axis.name]) for axis in product.out
                    }
                    axis_name = _thread_axis(tile_counts, count)
                    if count > 1 and axis_name is None:
                        continue
                    tiles = 1
                    for number in tile_counts.values():
                        tiles *= number
                    work = _work(
                        product, epilogue, machine, count, tiles, co_tile, points, ci, rows, columns
                    )
                    yield work, Tile(out, ci, count, axis_name, 0)


def _products(choices: list[list[int]]) -> Iterator[tuple[int, ...]]:
    if not choices:
        yield ()
        return
    for rest in _products(choices[:-1]):
        for last in choices[-1]:
            yield (*rest, last)


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


def _fits(
    product: Product,
    machine: Machine,
    threads: int,
    co: int,
    points: int,
    ci: int,
    bias_entries: int,
) -> bool:
    kernel = co * ci * product.taps
    # GEMM, reset, bias and element-wise kernels of every thread at the same time
    uops = threads * (kernel + 3)
    return (
        threads * kernel <= machine.depth(Buffer.WGT)
        and threads * co * points + bias_entries <= machine.depth(Buffer.ACC)
        and uops <= machine.depth(Buffer.UOP)
    )


def _work(
    product: Product,
    epilogue: Epilogue,
    machine: Machine,
    threads: int,
    tiles: int,
    co: int,
    points: int,
    ci: int,
    rows: int,
    columns: int,
) -> TileWork:
    entries = co * points
    inp_row = entry_beats(machine, Buffer.INP, columns if product.load_per_channel else ci)
    inp_rows = rows if product.load_per_channel else rows * columns
    inp_loads = ci if product.load_per_channel else 1
    wgt = entry_beats(machine, Buffer.WGT, co * ci * product.taps)
    load = inp_loads * load_cycles(machine, inp_rows * inp_row)
    load += load_cycles(machine, wgt)
    kernels = [co * ci * product.taps, 1, 1, 1]
    low, high = epilogue.clip or (None, None)
    immediates = (epilogue.shift is not None) + (low is not None) + (high is not None)
    alu = immediates * alu_cycles(machine, entries, use_imm=True)
    if epilogue.bias:
        alu += alu_cycles(machine, entries, use_imm=False)
    return TileWork(
        load=load,
        product=gemm_cycles(machine, entries * ci * product.taps),
        reset=gemm_cycles(machine, entries),
        epilogue=alu,
        store=store_cycles(machine, entry_beats(machine, Buffer.OUT, entries)),
        steps=ceil_div(product.ci, ci),
        rounds=tiles // threads,
        threads=threads,
        setup=load_cycles(machine, entry_beats(machine, Buffer.ACC, product.out[0].extent))
        if epilogue.bias
        else 0,
        kernels=sum(load_cycles(machine, entry_beats(machine, Buffer.UOP, n)) for n in kernels),
    )


def _why_nothing_fits(product: Product, machine: Machine) -> str:
    rows, columns = product.inp_box(tuple(1 for _ in product.out[1:]))
    need = {
        Buffer.INP: rows * columns,
        Buffer.WGT: product.taps,
        Buffer.ACC: 1,
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
        f"{'; '.join(short) or 'the bias of all channels fills ACC memory'}; "
        "enlarge that scratchpad in the machine description or shrink the kernel"
    )
