"""Random operands for a layer: the same ones on every host, in every run."""

import zlib

import numpy as np
from numpy.typing import NDArray

from vta_isa.enums import Buffer
from vta_isa.machine import Machine

from .workloads import Add, Clip, Conv2d, Dense, Layer, Relu, Shift

SEED = 20180711  # any number; fixed, so that two runs can be compared


def make_arrays(layer: Layer, machine: Machine, seed: int = SEED) -> dict[str, NDArray[np.integer]]:
    """The operands of ``layer`` by name, in the shapes its class states.

    Inputs and weights take every value of their type. A bias is up to a quarter of the output's
    range after the shift, so that it matters and does not decide. Vectors span the accumulator
    for ``add``, and for the others four times what the output type holds. The numbers depend on
    the layer's name, so ``resnet18/C2`` alone sees what it sees in the whole network.
    """
    rng = np.random.default_rng([seed, zlib.crc32(layer.name.encode())])
    acc_bits, out_bits = machine.bits(Buffer.ACC), machine.bits(Buffer.OUT)

    def draw(buffer: Buffer, bits: int, *shape: int) -> NDArray[np.integer]:
        """Scalars of ``buffer``'s type that fit ``bits`` bits, both ends included."""
        low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
        return rng.integers(low, high, shape, machine.dtype(buffer), endpoint=True)

    match layer:
        case Conv2d() | Dense():
            data: tuple[int, ...]
            weights: tuple[int, ...]
            if isinstance(layer, Conv2d):
                data = (layer.batch, layer.in_channels, layer.height, layer.width)
                weights = (layer.out_channels, layer.in_channels, layer.kernel, layer.kernel)
            else:
                data, weights = (layer.m, layer.k), (layer.n, layer.k)
            arrays = {
                "data": draw(Buffer.INP, machine.bits(Buffer.INP), *data),
                "weights": draw(Buffer.WGT, machine.bits(Buffer.WGT), *weights),
            }
            epilogue = layer.concrete_epilogue(machine)
            if epilogue.bias:
                bits = min(acc_bits, out_bits - 1 + epilogue.shift)
                arrays["bias"] = draw(Buffer.ACC, bits, weights[0])
            return arrays
        case Add():
            names, bits = Add.operands, acc_bits
        case Shift():
            names, bits = Shift.operands, min(acc_bits, max(2, out_bits + 2 + layer.amount))
        case Relu() | Clip():
            names, bits = layer.operands, min(acc_bits, out_bits + 2)
    return {name: draw(Buffer.ACC, bits, layer.length) for name in names}
