"""Tensors as they lie in DRAM: entry after entry, row-major, scalar 0 in the lowest bits."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .enums import Buffer
from .errors import EncodingError
from .machine import Machine


def pack_entries(scalars: ArrayLike, buffer: Buffer, machine: Machine) -> NDArray[np.uint8]:
    """The DRAM bytes, flat, of `scalars` (..., rows, cols): whole entries of `buffer`.

    Scalars narrower than a byte share one, the first in the lowest bits. Raises EncodingError for
    a shape that is not entries, or a value outside the scalar's type.
    """
    values = np.asarray(scalars)
    shape = machine.entry_shape(buffer)
    if values.shape[-2:] != shape:
        raise EncodingError(
            f"{buffer.name} entries are (..., {shape[0]}, {shape[1]}) scalars, not {values.shape}"
        )
    if values.dtype.kind not in "iub":
        raise EncodingError(f"{buffer.name} scalars are integers, not {values.dtype}")
    bits = machine.bits(buffer)
    low, high = machine.scalar_range(buffer)
    if values.size and (values.min() < low or values.max() > high):
        worst = values.min() if values.min() < low else values.max()
        raise EncodingError(
            f"{buffer.name} scalar {worst} does not fit {bits} bits ({low}..{high}); "
            "truncate or clip before packing"
        )
    little = machine.dtype(buffer).newbyteorder("<")
    flat = np.ascontiguousarray(values, dtype=little).reshape(-1)
    if bits >= 8:
        return flat.view(np.uint8).copy() if flat.base is not None else flat.view(np.uint8)
    lanes = flat.view(np.uint8).reshape(-1, 8 // bits) & np.uint8((1 << bits) - 1)
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    packed: NDArray[np.uint8] = np.bitwise_or.reduce(lanes << shifts, axis=1)
    return packed


def unpack_entries(
    data: bytes | NDArray[np.uint8], buffer: Buffer, machine: Machine
) -> NDArray[np.integer]:
    """(n, rows, cols) scalars of whole entries of `buffer`, sign-extended to ``machine.dtype``."""
    raw = np.frombuffer(data, np.uint8) if isinstance(data, bytes) else np.ascontiguousarray(data)
    raw = raw.reshape(-1).view(np.uint8)
    size = machine.entry_bytes(buffer)
    if raw.size % size:
        raise EncodingError(
            f"{raw.size} bytes are not whole {buffer.name} entries of {size} bytes; "
            f"{raw.size % size} are left over"
        )
    bits = machine.bits(buffer)
    if bits >= 8:
        scalars = raw.view(machine.dtype(buffer).newbyteorder("<")).astype(machine.dtype(buffer))
    else:
        shifts = np.arange(0, 8, bits, dtype=np.uint8)
        lanes = (raw[:, None] >> shifts) & np.uint8((1 << bits) - 1)
        sign = np.uint8(1 << (bits - 1))
        scalars = ((lanes ^ sign) - sign).view(np.int8)
    return scalars.reshape(-1, *machine.entry_shape(buffer))
