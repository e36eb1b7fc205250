"""Two-dimensional convolution: what it computes, how it is cut, how its tensors are laid out."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from vta_isa import Buffer, Machine, WorkloadError

from .. import te
from .epilogue import Epilogue, apply_epilogue
from .operator import Arrays, Operator
from .packing import pack_activation, pack_bias, pack_weight, unpack_activation
from .pipeline_cost import ceil_div
from .tiled_product import schedule_tiled_product
from .tiles import Axis, Product, Tile, choose_tile


@dataclass(frozen=True)
class Conv2d:
    """A convolution of ``(batch, in_channels, height, width)`` with square or oblong kernels.

    ``kernel``, ``stride`` and ``padding`` are ``(rows, columns)``; padding is symmetric zeros,
    dilation is 1.
    """

    batch: int
    height: int
    width: int
    in_channels: int
    out_channels: int
    kernel: tuple[int, int]
    stride: tuple[int, int] = (1, 1)
    padding: tuple[int, int] = (0, 0)
    epilogue: Epilogue = field(default_factory=Epilogue)

    @property
    def out_size(self) -> tuple[int, int]:
        """``(rows, columns)`` of the output."""
        rows, columns = (
            (size + 2 * pad - kernel) // stride + 1
            for size, kernel, stride, pad in zip(
                (self.height, self.width), self.kernel, self.stride, self.padding, strict=True
            )
        )
        return rows, columns


def conv2d(
    conv: Conv2d, machine: Machine, *, vthreads: bool = True, tile: Tile | None = None
) -> Operator:
    """The operator for ``conv``; arguments ``data``, ``weights`` and, with a bias, ``bias``.

    ``data`` (batch, in_channels, height, width), ``weights`` (out_channels, in_channels, kernel
    rows, kernel columns) and the result (batch, out_channels, rows, columns) hold the machine's
    inp, wgt and out type, ``bias`` (out_channels,) its acc type. ``tile`` is that of
    ``tile_conv2d`` unless given.

    Raises ``WorkloadError`` where no output point remains or no tile fits.
    """
    if tile is None:
        tile = tile_conv2d(conv, machine, vthreads=vthreads)
    return _build(conv, machine, _product(conv, machine), tile)


def tile_conv2d(
    conv: Conv2d, machine: Machine, *, vthreads: bool = True, candidates: int | None = None
) -> Tile:
    """How ``conv`` is cut on ``machine``; ``candidates`` and errors as in ``choose_tile``."""
    rows, columns = conv.out_size
    if rows < 1 or columns < 1:
        raise WorkloadError(
            f"conv2d: kernel {conv.kernel} is larger than the padded input "
            f"({conv.height + 2 * conv.padding[0]}, {conv.width + 2 * conv.padding[1]})"
        )
    threads = 2 if vthreads else 1
    product = _product(conv, machine)
    return choose_tile(product, conv.epilogue, machine, threads=threads, candidates=candidates)


def _gathers_rows(conv: Conv2d) -> bool:
    """A kernel of one row with a stride skips input rows: they need not be loaded."""
    return conv.kernel[0] == 1 and conv.stride[0] > 1 and conv.padding == (0, 0)


@dataclass(frozen=True)
class _InputBox:
    """(rows, columns) of the input under a tile of the output; equal for equal convolutions."""

    kernel: tuple[int, int]
    stride: tuple[int, int]
    gathers: bool

    def __call__(self, sizes: tuple[int, ...]) -> tuple[int, int]:
        rows, columns = (
            (size - 1) * stride + kernel
            for size, stride, kernel in zip(sizes, self.stride, self.kernel, strict=True)
        )
        return (sizes[0] if self.gathers else rows), columns


def _product(conv: Conv2d, machine: Machine) -> Product:
    gathers = _gathers_rows(conv)

    rows, columns = conv.out_size
    return Product(
        name="conv",
        out=(
            Axis("co", ceil_div(conv.out_channels, machine.gemm.block_out)),
            Axis("oh", rows, exact=gathers),
            Axis("ow", columns, exact=gathers),
        ),
        ci=ceil_div(conv.in_channels, machine.gemm.block_in),
        taps=conv.kernel[0] * conv.kernel[1],
        inp_box=_InputBox(conv.kernel, conv.stride, gathers),
        load_per_channel=True,
    )


def _build(conv: Conv2d, machine: Machine, product: Product, tile: Tile) -> Operator:
    types = {b: machine.dtype(b).name for b in (Buffer.INP, Buffer.WGT, Buffer.ACC, Buffer.OUT)}
    bo, bi, batch = machine.gemm.block_out, machine.gemm.block_in, machine.gemm.batch
    groups = ceil_div(conv.batch, batch)
    co, oh, ow = (tile.padded(axis) for axis in product.out)
    (kh, kw), (sh, sw), (ph, pw) = conv.kernel, conv.stride, conv.padding
    h, w = conv.height, conv.width
    acc = types[Buffer.ACC]

    data = te.placeholder((groups, product.ci, h, w, batch, bi), types[Buffer.INP], "data")
    weights = te.placeholder((co, product.ci, kh, kw, bo, bi), types[Buffer.WGT], "weights")
    bias = te.placeholder((co, batch, bo), acc, "bias") if conv.epilogue.bias else None

    need_h, need_w = (oh - 1) * sh + kh, (ow - 1) * sw + kw
    source, row_step, fetch = data, sh, None
    if _gathers_rows(conv):
        fetch, row_step = "gathered", 1
        source = te.compute(
            (groups, product.ci, oh, w, batch, bi),
            lambda n, ci, y, x, b, k: data[n, ci, y * sh, x, b, k],
            name=fetch,
        )
    elif (ph, pw) != (0, 0) or need_h > h or need_w > w:
        fetch = "padded"
        source = te.compute(
            (groups, product.ci, need_h, need_w, batch, bi),
            lambda n, ci, y, x, b, k: te.select(
                (y >= ph) & (y < h + ph) & (x >= pw) & (x < w + pw),
                data[n, ci, y - ph, x - pw, b, k],
                te.const(0, types[Buffer.INP]),
            ),
            name=fetch,
        )

    ci = te.reduce_axis(product.ci, "ci")
    dy, dx = te.reduce_axis(kh, "dy"), te.reduce_axis(kw, "dx")
    k = te.reduce_axis(bi, "k")
    axes = ("n", "co", "oh", "ow", "b", "o")
    shape = (groups, co, oh, ow, batch, bo)
    result = te.compute(
        shape,
        lambda n, co, oh, ow, b, o: te.sum(
            source[n, ci, oh * row_step + dy, ow * sw + dx, b, k].astype(acc)
            * weights[co, ci, dy, dx, o, k].astype(acc),
            axis=[ci, dy, dx, k],
        ),
        name="conv",
        axes=axes,
    )
    last, stages = apply_epilogue(result, bias, conv.epilogue, axes, machine)
    out = te.compute(shape, lambda *i: last[i].astype(types[Buffer.OUT]), name="out", axes=axes)

    schedule = schedule_tiled_product(
        out,
        product,
        tile,
        machine,
        stages=stages,
        taps=("dy", "dx"),
        fetch=fetch,
        data="data",
        weights="weights",
        bias="bias" if bias is not None else None,
    )

    def pack(arrays: Arrays) -> dict[str, NDArray[np.generic]]:
        packed = {
            "data": pack_activation(arrays["data"], batch, bi, product.ci),
            "weights": pack_weight(arrays["weights"], machine, co, product.ci),
        }
        if bias is not None:
            packed["bias"] = pack_bias(arrays["bias"], machine, co)
        return packed

    def unpack(packed: NDArray[np.generic]) -> NDArray[np.generic]:
        return unpack_activation(packed, conv.batch, conv.out_channels, conv.out_size)

    return Operator(
        "conv2d", schedule, out, pack, unpack, shape, types[Buffer.OUT], tile.describe()
    )
