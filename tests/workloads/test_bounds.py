"""The bound of a layer, by hand for small ones and by counting for others."""

import pytest

from vta.bounds import Bound, bound
from vta.workloads import load_workload
from vta_isa import load_machine


def of(description: dict[str, object], machine: str | dict[str, object] = "default") -> Bound:
    (layer,) = load_workload({"layers": [{"name": "x"} | description]}).layers
    return bound(layer, load_machine(machine))


def test_one_entry_of_a_product() -> None:
    # 2 blocks of input: 2 GEMM + 1 reset + 2 bias + 1 shift + 2 clip. Reads: 32 bytes of input,
    # 2 weight entries of 256 bytes, a bias entry of 64 bytes; writes: 16 bytes; 8 bytes a beat.
    assert of({"kind": "dense", "m": 1, "k": 17, "n": 16}) == Bound(8, 4 + 64 + 8, 2)


def test_an_epilogue_left_out_costs_nothing() -> None:
    bare = {"bias": False, "shift": 0, "clip": False}
    assert of({"kind": "dense", "m": 1, "k": 17, "n": 16, "epilogue": bare}) == Bound(3, 68, 2)


def test_a_batch_fills_the_rows_of_an_entry() -> None:
    machine = {"gemm": {"batch": 2, "block_in": 16, "block_out": 16}}
    shape = {"kind": "dense", "k": 16, "n": 16}
    assert of(shape | {"m": 1}, machine) == of(shape | {"m": 2}, machine)
    assert of(shape | {"m": 3}, machine).compute == 2 * of(shape | {"m": 2}, machine).compute


def test_convolution_moves_the_picture_without_its_border_once() -> None:
    shape = {"kind": "conv2d", "height": 4, "width": 6, "in_channels": 3, "out_channels": 20}
    got = of(shape | {"kernel": 3, "padding": 1})
    assert got.compute == 24 * 2 * (9 + 6)
    assert got.read == (24 * 16 + 9 * 2 * 256 + 2 * 64) // 8
    assert got.write == 24 * 2 * 16 // 8


def test_extensions_take_the_reset_and_all_but_one_cycle_of_the_epilogue() -> None:
    machine = {"extensions": {"gemm_overwrite": True, "alu_requantize": True}}
    assert of({"kind": "dense", "m": 1, "k": 17, "n": 16}, machine) == Bound(3, 4 + 64 + 8, 2)
    bare = {"bias": False, "shift": 0, "clip": False}
    layer = {"kind": "dense", "m": 1, "k": 17, "n": 16, "epilogue": bare}
    assert of(layer, machine).compute == 2
    for low, cycles in ((0, 1), (-7, 1), (-8, 1), (-6, 2), (1, 2)):
        assert of({"kind": "clip", "length": 16, "low": low, "high": 7}, machine).compute == cycles


@pytest.mark.parametrize("interval", [1, 2])
def test_tensor_operations_take_the_machines_interval(interval: int) -> None:
    got = of({"kind": "add", "length": 33}, {"alu": {"tensor_interval": interval}})
    assert got == Bound(3 * interval, 2 * 3 * 64 // 8, 3 * 16 // 8)


@pytest.mark.parametrize(
    ("description", "cycles"),
    [
        ({"kind": "relu"}, 1),
        ({"kind": "shift", "amount": 1}, 1),
        ({"kind": "clip", "low": 0, "high": 1}, 2),
    ],
)
def test_immediate_operations_take_a_cycle_each(
    description: dict[str, object], cycles: int
) -> None:
    assert of({"length": 16} | description).compute == cycles


def test_the_largest_of_the_three_decides() -> None:
    assert (Bound(3, 2, 1).cycles, Bound(3, 2, 1).limit) == (3, "compute")
    assert (Bound(1, 3, 2).cycles, Bound(1, 3, 2).limit) == (3, "read")
    assert (Bound(1, 2, 3).cycles, Bound(1, 2, 3).limit) == (3, "write")


def test_every_layer_of_resnet18_is_bound_by_compute_on_the_default_machine() -> None:
    machine = load_machine("default")
    for layer in load_workload("resnet18").layers:
        limits = bound(layer, machine)
        assert limits.limit == "compute", layer.name
        assert limits.compute * machine.macs_per_cycle > layer.macs, layer.name
