"""Host-side layout: plain tensors to tensors of entries, and back.

Channels are cut into blocks of the machine's size and rows of the batch into groups; both are
padded with zeros (padding: published stack, graph packing). NumPy does it: data movement only.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vta_isa import Machine


def _pad_to(array: NDArray[np.generic], shape: tuple[int, ...]) -> NDArray[np.generic]:
    return np.pad(array, [(0, want - have) for have, want in zip(array.shape, shape, strict=True)])


def pack_activation(
    data: NDArray[np.generic], batch: int, block: int, blocks: int
) -> NDArray[np.generic]:
    """``(n, c, *spatial)`` to ``(n_blocks, blocks, *spatial, batch, block)``."""
    n, _, *spatial = data.shape
    groups = -(-n // batch)
    data = _pad_to(data, (groups * batch, blocks * block, *spatial))
    split = data.reshape(groups, batch, blocks, block, *spatial)
    inner = range(4, 4 + len(spatial))
    return np.ascontiguousarray(split.transpose(0, 2, *inner, 1, 3))


def unpack_activation(
    packed: NDArray[np.generic], n: int, channels: int, spatial: tuple[int, ...]
) -> NDArray[np.generic]:
    """``(n_blocks, blocks, *spatial, batch, block)`` to ``(n, channels, *spatial)``."""
    groups, blocks, *padded, batch, block = packed.shape
    rank = len(padded)
    order = (0, 2 + rank, 1, 3 + rank, *range(2, 2 + rank))
    plain = packed.transpose(order).reshape(groups * batch, blocks * block, *padded)
    return np.ascontiguousarray(
        plain[(slice(n), slice(channels), *(slice(extent) for extent in spatial))]
    )


def pack_weight(
    weight: NDArray[np.generic], machine: Machine, out_blocks: int, in_blocks: int
) -> NDArray[np.generic]:
    """``(o, i, *kernel)`` to ``(out_blocks, in_blocks, *kernel, block_out, block_in)``."""
    bo, bi = machine.gemm.block_out, machine.gemm.block_in
    _, _, *kernel = weight.shape
    weight = _pad_to(weight, (out_blocks * bo, in_blocks * bi, *kernel))
    split = weight.reshape(out_blocks, bo, in_blocks, bi, *kernel)
    return np.ascontiguousarray(split.transpose(0, 2, *range(4, 4 + len(kernel)), 1, 3))


def pack_bias(bias: NDArray[np.generic], machine: Machine, out_blocks: int) -> NDArray[np.generic]:
    """``(o,)`` to ``(out_blocks, batch, block_out)``, repeated for every row of the batch."""
    bo = machine.gemm.block_out
    blocks = _pad_to(bias, (out_blocks * bo,)).reshape(out_blocks, 1, bo)
    return np.ascontiguousarray(np.repeat(blocks, machine.gemm.batch, axis=1))
