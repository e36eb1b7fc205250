"""Layers nobody trains and machines nobody builds, through ``vta.run``: right, or refused."""

import pytest

import vta

DEFAULT: dict[str, object] = {}
TINY = "tiny"
SMALL = {"uop": "256 B", "inp": "1 KiB", "wgt": "2 KiB", "acc": "4 KiB"}
BATCH_2 = {"gemm": {"batch": 2, "block_in": 4, "block_out": 8}, "sram": SMALL}
NIBBLES = {
    "gemm": {"block_in": 32, "block_out": 4},
    "sram": SMALL,
    "types": {"inp": "int4", "wgt": "int2", "out": "int4"},
    "axi": {"data_bits": 512},
    "queues": {"command": 1, "token": 2},
    "memory": {"jitter": 7},
}
MACHINES = {"default": DEFAULT, "tiny": TINY, "batch2": BATCH_2, "nibbles": NIBBLES}


def conv(**sizes: object) -> dict[str, object]:
    return {"kind": "conv2d", "in_channels": 1, "out_channels": 1, **sizes}


LAYERS = {
    "one output": conv(height=1, width=1, kernel=1, in_channels=7, out_channels=7),
    "one output of a large kernel": conv(height=5, width=5, kernel=5),
    "stride beyond the kernel": conv(height=11, width=13, kernel=2, stride=5),
    "stride beyond the picture": conv(height=3, width=4, kernel=3, stride=7),
    "padding as large as the kernel": conv(height=4, width=4, kernel=3, padding=3),
    "padded points": conv(height=3, width=7, kernel=1, padding=1, in_channels=17, out_channels=5),
    "padded points, strided": conv(height=5, width=7, kernel=1, padding=2, stride=3),
    "padding beyond a LOAD": conv(height=6, width=2, kernel=2, padding=17),
    "windows beyond the picture": conv(height=2, width=9, kernel=2, padding=11, in_channels=3),
    "nothing but padding": conv(height=1, width=13, kernel=1, padding=1, stride=3, in_channels=64),
    "prime sizes": conv(height=13, width=17, kernel=3, padding=1, in_channels=19, out_channels=23),
    "batch of 3": conv(batch=3, height=5, width=4, kernel=3, padding=1),
    "long vector": {"kind": "dense", "m": 1, "k": 4096, "n": 33},
    "outer product": {"kind": "dense", "m": 17, "k": 1, "n": 19},
    "one product": {"kind": "dense", "m": 1, "k": 1, "n": 1},
    "one sum": {"kind": "add", "length": 1},
    "a shift by all there is": {"kind": "shift", "length": 33, "amount": 31},
    "a shift out of the word": {"kind": "shift", "length": 33, "amount": -31},
    "clip to one number": {"kind": "clip", "length": 33, "low": -3, "high": -3},
}


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("layer", LAYERS)
def test_is_computed_right(layer: str, machine: str) -> None:
    workload = {"layers": [{"name": "odd", **LAYERS[layer]}]}
    report = vta.run(workload, MACHINES[machine])
    assert report.total.cycles >= report.total.bound_cycles


@pytest.mark.parametrize(
    "layer",
    [
        conv(height=14, width=2, kernel=1, stride=2, in_channels=40),
        conv(height=14, width=3, kernel=1, stride=5, in_channels=64),
        conv(height=9, width=9, kernel=2, stride=4, padding=1, in_channels=64),
    ],
)
def test_what_no_window_covers_is_not_in_the_bound(layer: dict[str, object]) -> None:
    fast_compute = {"types": {"inp": "int16"}, "sram": SMALL, "axi": {"data_bits": 32}}
    total = vta.run({"layers": [{"name": "odd", **layer}]}, fast_compute).total
    assert total.cycles >= total.bound_cycles


NARROW = {"types": {"inp": "int16", "wgt": "int16", "acc": "int16"}, "sram": SMALL}


@pytest.mark.parametrize(
    "layer",
    [
        {"kind": "dense", "m": 2, "k": 600, "n": 3},
        {"kind": "dense", "m": 2, "k": 3, "n": 3, "epilogue": {"shift": 31}},
        {"kind": "shift", "length": 33, "amount": 31},
    ],
)
def test_shifts_beyond_a_narrow_accumulator(layer: dict[str, object]) -> None:
    assert vta.run({"layers": [{"name": "odd", **layer}]}, NARROW).layers
