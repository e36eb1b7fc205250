"""Matrix product ``out[m, n] = sum_k data[m, k] * weight[n, k]``, the fully connected layer."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from vta_isa import Buffer, Machine

from .. import te
from .epilogue import Epilogue, apply_epilogue
from .operator import Arrays, Operator
from .packing import pack_activation, pack_bias, pack_weight, unpack_activation
from .pipeline_cost import ceil_div
from .tiled_product import schedule_tiled_product
from .tiles import Axis, Product, Tile, choose_tile


@dataclass(frozen=True)
class Dense:
    """``m`` rows of ``k`` inputs times ``n`` rows of ``k`` weights."""

    m: int
    n: int
    k: int
    epilogue: Epilogue = field(default_factory=Epilogue)


def dense(
    layer: Dense, machine: Machine, *, vthreads: bool = True, tile: Tile | None = None
) -> Operator:
    """The operator for ``layer``; arguments ``data`` (m, k), ``weights`` (n, k) and, with a bias,
    ``bias`` (n,); the result is (m, n). ``tile`` is that of ``tile_dense`` unless given.

    Raises ``WorkloadError`` where no tile fits.
    """
    if tile is None:
        tile = tile_dense(layer, machine, vthreads=vthreads)
    return _build(layer, machine, _product(layer, machine), tile)


def tile_dense(
    layer: Dense, machine: Machine, *, vthreads: bool = True, candidates: int | None = None
) -> Tile:
    """How ``layer`` is cut on ``machine``; ``candidates`` and errors as in ``choose_tile``."""
    threads = 2 if vthreads else 1
    product = _product(layer, machine)
    return choose_tile(product, layer.epilogue, machine, threads=threads, candidates=candidates)


def _product(layer: Dense, machine: Machine) -> Product:
    return Product(
        name="dense",
        out=(
            Axis("co", ceil_div(layer.n, machine.gemm.block_out)),
            Axis("m", ceil_div(layer.m, machine.gemm.batch)),
        ),
        ci=ceil_div(layer.k, machine.gemm.block_in),
        taps=1,
        inp_box=_input_rows,
        load_per_channel=False,
    )


def _input_rows(sizes: tuple[int, ...]) -> tuple[int, int]:
    return sizes[0], 1


def _build(layer: Dense, machine: Machine, product: Product, tile: Tile) -> Operator:
    types = {b: machine.dtype(b).name for b in (Buffer.INP, Buffer.WGT, Buffer.ACC, Buffer.OUT)}
    bo, bi, batch = machine.gemm.block_out, machine.gemm.block_in, machine.gemm.batch
    co, m = (tile.padded(axis) for axis in product.out)
    acc = types[Buffer.ACC]

    data = te.placeholder((m, product.ci, batch, bi), types[Buffer.INP], "data")
    weights = te.placeholder((co, product.ci, bo, bi), types[Buffer.WGT], "weights")
    bias = te.placeholder((co, batch, bo), acc, "bias") if layer.epilogue.bias else None
    ci, k = te.reduce_axis(product.ci, "ci"), te.reduce_axis(bi, "k")
    axes = ("m", "co", "b", "o")
    shape = (m, co, batch, bo)
    result = te.compute(
        shape,
        lambda m, co, b, o: te.sum(
            data[m, ci, b, k].astype(acc) * weights[co, ci, o, k].astype(acc), axis=[ci, k]
        ),
        name="dense",
        axes=axes,
    )
    last, stages = apply_epilogue(result, bias, layer.epilogue, axes, machine)
    out = te.compute(shape, lambda *i: last[i].astype(types[Buffer.OUT]), name="out", axes=axes)
    schedule = schedule_tiled_product(
        out,
        product,
        tile,
        machine,
        stages=stages,
        taps=(),
        fetch=None,
        data="data",
        weights="weights",
        bias="bias" if bias is not None else None,
    )

    def pack(arrays: Arrays) -> dict[str, NDArray[np.generic]]:
        rows = pack_activation(arrays["data"], batch, bi, product.ci)
        missing = m - rows.shape[0]
        packed = {
            "data": np.pad(rows, [(0, missing), (0, 0), (0, 0), (0, 0)]),
            "weights": pack_weight(arrays["weights"], machine, co, product.ci),
        }
        if bias is not None:
            packed["bias"] = pack_bias(arrays["bias"], machine, co)
        return packed

    def unpack(packed: NDArray[np.generic]) -> NDArray[np.generic]:
        return unpack_activation(packed, layer.m, layer.n, ())

    return Operator("dense", schedule, out, pack, unpack, shape, types[Buffer.OUT], tile.describe())
