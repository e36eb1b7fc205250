"""The DRAM layout of tensors, against one scalar at a time."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from isa_strategies import machines

from vta_isa import Buffer, EncodingError, Machine, load_machine, pack_entries, unpack_entries

DEFAULT = load_machine("default")


def pack_one_by_one(entries: np.ndarray, bits: int) -> bytes:
    """Every entry as one little-endian integer, scalar 0 lowest."""
    packed = b""
    for entry in entries:
        number = sum((int(v) % (1 << bits)) << (bits * i) for i, v in enumerate(entry.flat))
        packed += number.to_bytes(entry.size * bits // 8, "little")
    return packed


@settings(deadline=None)
@given(machines(), st.sampled_from(list(Buffer)), st.integers(0, 3), st.integers(0, 2**32))
def test_packing_agrees_with_one_scalar_at_a_time(
    machine: Machine, buffer: Buffer, count: int, seed: int
) -> None:
    low, high = machine.scalar_range(buffer)
    shape = (count, *machine.entry_shape(buffer))
    entries = np.random.default_rng(seed).integers(low, high, size=shape, endpoint=True)
    packed = pack_entries(entries, buffer, machine)
    assert packed.dtype == np.uint8
    assert packed.tobytes() == pack_one_by_one(entries, machine.bits(buffer))
    back = unpack_entries(packed, buffer, machine)
    assert back.dtype == machine.dtype(buffer)
    np.testing.assert_array_equal(back, entries)
    np.testing.assert_array_equal(unpack_entries(packed.tobytes(), buffer, machine), entries)


def test_leading_axes_are_entries_in_order() -> None:
    tensor = np.arange(2 * 3 * 1 * 16, dtype=np.int32).reshape(2, 3, 1, 16)
    entries = unpack_entries(pack_entries(tensor, Buffer.ACC, DEFAULT), Buffer.ACC, DEFAULT)
    np.testing.assert_array_equal(entries, tensor.reshape(6, 1, 16))


def test_nibbles_are_packed_low_first_and_sign_extended() -> None:
    machine = load_machine("tiny").replace(types={"inp": "int4"})
    packed = pack_entries(np.array([[1, -1, -8, 7]]), Buffer.INP, machine)
    assert packed.tobytes() == bytes([0xF1, 0x78])
    assert unpack_entries(packed, Buffer.INP, machine).tolist() == [[[1, -1, -8, 7]]]


def test_packing_does_not_alias_its_argument() -> None:
    entries = np.zeros((2, 1, 16), dtype=np.int8)
    packed = pack_entries(entries, Buffer.INP, DEFAULT)
    packed[:] = 1
    assert not entries.any()


def test_views_with_strides_pack_and_unpack() -> None:
    entries = np.arange(64, dtype=np.int8).reshape(4, 1, 16)
    packed = pack_entries(entries[::2], Buffer.INP, DEFAULT)
    assert packed.tobytes() == entries[::2].tobytes()
    np.testing.assert_array_equal(
        unpack_entries(np.repeat(packed, 2)[::2], Buffer.INP, DEFAULT), entries[::2]
    )


@pytest.mark.parametrize("value", [-129, 128])
def test_scalars_that_do_not_fit_are_refused(value: int) -> None:
    with pytest.raises(EncodingError, match=rf"INP scalar {value} does not fit 8 bits \(-128..127"):
        pack_entries(np.full((1, 16), value), Buffer.INP, DEFAULT)


def test_shapes_that_are_no_entries_are_refused() -> None:
    with pytest.raises(EncodingError, match=r"WGT entries are \(..., 16, 16\) scalars, not \(4, 8"):
        pack_entries(np.zeros((4, 8, 16), dtype=np.int8), Buffer.WGT, DEFAULT)


def test_floats_are_refused() -> None:
    with pytest.raises(EncodingError, match="INP scalars are integers, not float64"):
        pack_entries(np.zeros((1, 16)), Buffer.INP, DEFAULT)


def test_bytes_that_are_no_whole_entries_are_refused() -> None:
    with pytest.raises(EncodingError, match=r"17 bytes are not whole INP entries of 16 .* 1 are"):
        unpack_entries(bytes(17), Buffer.INP, DEFAULT)
