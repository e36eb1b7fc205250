"""The NumPy reference against loops that spell the definition out."""

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from vta import reference_ops
from vta.workload_data import make_arrays
from vta.workloads import Conv2d, load_workload
from vta_isa import Buffer, Machine, load_machine

NARROW = {
    "types": {"inp": "int4", "wgt": "int2", "acc": "int32", "out": "int4"},
    "sram": {"wgt": "32 KiB"},
}
WIDE = {"types": {"inp": "int16", "wgt": "int8", "acc": "int32", "out": "int16"}}
MACHINES = {
    "default": load_machine("default"),
    "narrow": load_machine(NARROW),
    "wide": load_machine(WIDE),
}


def wrapped(value: int, bits: int) -> int:
    """Two's complement of ``bits`` bits, in plain Python integers."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


@pytest.fixture(params=MACHINES)
def machine(request: pytest.FixtureRequest) -> Machine:
    return MACHINES[request.param]


@pytest.mark.parametrize(
    ("kernel", "stride", "padding"),
    [(1, 1, 0), (1, 2, 0), (2, 1, 1), (3, 1, 1), (3, 2, 1), (3, 3, 2), (4, 1, 0)],
)
def test_convolution_is_the_sum_over_the_window(
    machine: Machine, kernel: int, stride: int, padding: int
) -> None:
    layer = Conv2d(
        name=f"k{kernel}s{stride}p{padding}",
        batch=2,
        height=5,
        width=4,
        in_channels=3,
        out_channels=2,
        kernel=kernel,
        stride=stride,
        padding=padding,
    )
    arrays = make_arrays(layer, machine)
    got = reference_ops.reference(layer, arrays, machine)
    epilogue = layer.concrete_epilogue(machine)
    assert epilogue.clip is not None
    assert got.shape == (2, 2, layer.out_height, layer.out_width)
    assert got.dtype == machine.dtype(Buffer.OUT)
    for b, o, y, x in np.ndindex(*got.shape):
        total = int(arrays["bias"][o])
        for i, ky, kx in itertools.product(range(3), range(kernel), range(kernel)):
            row, column = y * stride + ky - padding, x * stride + kx - padding
            if 0 <= row < 5 and 0 <= column < 4:
                total += int(arrays["data"][b, i, row, column]) * int(
                    arrays["weights"][o, i, ky, kx]
                )
        total = wrapped(total, 32) >> epilogue.shift
        low, high = epilogue.clip
        assert got[b, o, y, x] == min(max(total, low), high), (b, o, y, x)


@pytest.mark.parametrize(
    "epilogue",
    [
        {"bias": False, "shift": 0, "clip": False},
        {"bias": True, "shift": 3, "clip": [-5, 9]},
        {"bias": True, "shift": 31, "clip": False},
    ],
)
def test_dense_is_rows_times_rows(machine: Machine, epilogue: dict[str, object]) -> None:
    description = {"name": "d", "kind": "dense", "m": 3, "k": 7, "n": 4, "epilogue": epilogue}
    (layer,) = load_workload({"layers": [description]}).layers
    arrays = make_arrays(layer, machine)
    assert ("bias" in arrays) == epilogue["bias"]
    got = reference_ops.reference(layer, arrays, machine)
    for m, n in np.ndindex(3, 4):
        pairs = zip(arrays["data"][m], arrays["weights"][n], strict=True)
        total = sum(int(value) * int(weight) for value, weight in pairs)
        total += int(arrays["bias"][n]) if epilogue["bias"] else 0
        total = wrapped(total, 32) >> int(epilogue["shift"])
        if epilogue["clip"]:
            total = min(max(total, -5), 9)
        assert got[m, n] == wrapped(total, machine.bits(Buffer.OUT)), (m, n)


def test_sums_wrap_to_the_accumulator_before_the_shift() -> None:
    machine = MACHINES["default"]
    description = {"name": "d", "kind": "dense", "m": 1, "k": 1, "n": 1}
    description["epilogue"] = {"bias": True, "shift": 24, "clip": False}
    (layer,) = load_workload({"layers": [description]}).layers
    arrays = {
        "data": np.array([[-128]], np.int8),
        "weights": np.array([[-128]], np.int8),
        "bias": np.array([(1 << 31) - 1], np.int32),
    }
    assert reference_ops.reference(layer, arrays, machine) == -128


def test_products_too_large_for_doubles_are_still_exact() -> None:
    huge = np.array([[(1 << 31) - 1, 1]], np.int64)
    assert reference_ops.dense(huge, huge)[0, 0] == ((1 << 31) - 1) ** 2 + 1


@pytest.mark.parametrize(
    ("description", "expected"),
    [
        ({"kind": "add"}, lambda a, b: wrapped(a + b, 32)),
        ({"kind": "relu"}, lambda a: max(a, 0)),
        ({"kind": "shift", "amount": 3}, lambda a: a >> 3),
        ({"kind": "shift", "amount": -30}, lambda a: wrapped(a << 30, 32)),
        ({"kind": "shift", "amount": 31}, lambda a: a >> 31),
        ({"kind": "clip", "low": -3, "high": 4}, lambda a: min(max(a, -3), 4)),
    ],
)
def test_element_wise_layers(
    machine: Machine, description: dict[str, object], expected: Callable[..., int]
) -> None:
    (layer,) = load_workload({"layers": [{"name": "e", "length": 100} | description]}).layers
    arrays = make_arrays(layer, machine)
    got = reference_ops.reference(layer, arrays, machine)
    bits = machine.bits(Buffer.OUT)
    for number, operands in enumerate(zip(*arrays.values(), strict=True)):
        value = expected(*(int(operand) for operand in operands))
        assert got[number] == wrapped(value, bits), (number, operands)


def test_data_spans_its_type_and_is_the_same_in_every_run(machine: Machine) -> None:
    (layer,) = load_workload("resnet18/C12").layers
    arrays, again = make_arrays(layer, machine), make_arrays(layer, machine)
    for name, buffer in (("data", Buffer.INP), ("weights", Buffer.WGT)):
        low, high = machine.scalar_range(buffer)
        rare = (high - low) // 256  # of 16-bit values not every one is drawn
        assert low <= arrays[name].min() <= low + rare
        assert high - rare <= arrays[name].max() <= high
        assert arrays[name].dtype == machine.dtype(buffer)
        np.testing.assert_array_equal(arrays[name], again[name])


@pytest.mark.parametrize("name", [f"C{number}" for number in range(1, 13)])
def test_the_automatic_shift_spreads_outputs_and_clips_few(name: str) -> None:
    machine = MACHINES["default"]
    (layer,) = load_workload(f"resnet18/{name}").layers
    output = reference_ops.reference(layer, make_arrays(layer, machine), machine)
    clipped = np.isin(output, [-128, 127]).mean()
    assert 0 < clipped < 0.15
    assert len(np.unique(output)) == 256
