"""What each layer of a workload computes, in plain NumPy: the judge of every run.

Written from the definition of the layers alone, in scalars and whole tensors: no blocks, no tiles,
no instructions, and no code shared with the compiler or the simulator.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from vta_isa.enums import Buffer
from vta_isa.errors import WorkloadError
from vta_isa.machine import Machine

from .workloads import Add, Clip, ConcreteEpilogue, Conv2d, Dense, Layer, Relu, Shift

Ints = NDArray[np.integer]
Arrays = Mapping[str, Ints]


def reference(layer: Layer, arrays: Arrays, machine: Machine) -> Ints:
    """The output of ``layer``: the shape its class states, the output type of ``machine``."""
    match layer:
        case Conv2d():
            sums = conv2d(arrays["data"], arrays["weights"], layer.stride, layer.padding)
            bias = arrays["bias"][:, None, None] if "bias" in arrays else None
            acc = finish(sums, bias, layer.concrete_epilogue(machine), machine)
        case Dense():
            sums = dense(arrays["data"], arrays["weights"])
            acc = finish(sums, arrays.get("bias"), layer.concrete_epilogue(machine), machine)
        case Add():
            acc = _wrap(_wide(arrays["a"]) + _wide(arrays["b"]), machine.bits(Buffer.ACC))
        case Relu():
            acc = np.maximum(_wide(arrays["a"]), 0)
        case Shift():
            wide = _wide(arrays["a"])
            shifted = wide >> layer.amount if layer.amount >= 0 else wide << -layer.amount
            acc = _wrap(shifted, machine.bits(Buffer.ACC))
        case Clip():
            acc = np.clip(_wide(arrays["a"]), layer.low, layer.high)
        case _:
            raise WorkloadError(f"{layer.name}: no reference for kind {layer.kind!r}")
    return _wrap(acc, machine.bits(Buffer.OUT)).astype(machine.dtype(Buffer.OUT))


def conv2d(data: Ints, weights: Ints, stride: int, padding: int) -> NDArray[np.int64]:
    """Sums of products (batch, out_channels, out_height, out_width), exact.

    ``data`` (batch, in_channels, height, width); ``weights`` (out_channels, in_channels, kernel,
    kernel). Every window becomes a row (im2col), then it is one matrix product.
    """
    kernel = weights.shape[2]
    padded = np.pad(data, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (kernel, kernel), axis=(2, 3))
    windows = windows[:, :, ::stride, ::stride]  # (batch, in_channels, out_h, out_w, ky, kx)
    batch, _, out_height, out_width = windows.shape[:4]
    rows = windows.transpose(0, 2, 3, 1, 4, 5).reshape(batch * out_height * out_width, -1)
    sums = dense(rows, weights.reshape(weights.shape[0], -1))
    return sums.reshape(batch, out_height, out_width, -1).transpose(0, 3, 1, 2)


def dense(data: Ints, weights: Ints) -> NDArray[np.int64]:
    """Sums of products (m, n), exact: ``data`` (m, k) times the transpose of ``weights`` (n, k)."""
    largest = float(_magnitude(data)) * float(_magnitude(weights)) * data.shape[1]
    if largest < 2.0**53:
        # Every partial sum is an integer a double holds exactly, in whatever order BLAS adds.
        product = data.astype(np.float64) @ weights.astype(np.float64).T
        return product.astype(np.int64)
    return _wide(data) @ _wide(weights).T


def finish(
    sums: NDArray[np.int64], bias: Ints | None, epilogue: ConcreteEpilogue, machine: Machine
) -> NDArray[np.int64]:
    """Accumulator after bias, shift and clip; sums wrap to the accumulator's width first."""
    acc = sums if bias is None else sums + _wide(bias)
    acc = _wrap(acc, machine.bits(Buffer.ACC)) >> epilogue.shift
    return acc if epilogue.clip is None else np.clip(acc, *epilogue.clip)


def _wrap(values: NDArray[np.int64], bits: int) -> NDArray[np.int64]:
    """The low ``bits`` of every value, read as two's complement."""
    unused = 64 - bits
    return values << unused >> unused


def _wide(values: Ints) -> NDArray[np.int64]:
    return values.astype(np.int64)


def _magnitude(values: Ints) -> int:
    return max(abs(int(values.min())), abs(int(values.max())))
