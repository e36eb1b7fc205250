"""Layers nobody trains and machines nobody builds, through ``vta.run``: right, or refused."""

import numpy as np
import pytest

import vta
from compiler import ops
from compiler.module import build
from vta_isa import Buffer
from vta_runtime import Runtime, SimulatorDevice

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
EXTENDED = {**BATCH_2, "extensions": {"gemm_overwrite": True, "alu_requantize": True}}
MACHINES = {
    "default": DEFAULT,
    "tiny": TINY,
    "batch2": BATCH_2,
    "nibbles": NIBBLES,
    "extended": EXTENDED,
}


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


ONE_TOKEN = {
    "gemm": {"block_in": 2, "block_out": 8},
    "sram": SMALL,
    "queues": {"command": 2, "token": 1},
}


@pytest.mark.parametrize(
    "layer",
    [
        conv(height=14, width=23, kernel=1, stride=3, padding=2, out_channels=32),
        conv(height=14, width=11, kernel=2, padding=2, in_channels=40),
        {"kind": "dense", "m": 9, "k": 65, "n": 33},
        {"kind": "add", "length": 5000},
    ],
)
@pytest.mark.parametrize("command", [1, 2, 512])
def test_token_queues_of_one_deadlock_no_threads(layer: dict[str, object], command: int) -> None:
    machine = {**ONE_TOKEN, "queues": {"command": command, "token": 1}}
    assert vta.run({"layers": [{"name": "odd", **layer}]}, machine).layers


OBLONG = [
    # kernel, stride, padding, each (rows, columns)
    ((7, 1), (1, 1), (3, 0)),
    ((1, 7), (1, 1), (0, 3)),
    ((1, 1), (3, 1), (0, 0)),
    ((1, 1), (1, 3), (0, 0)),
    ((1, 3), (2, 3), (0, 1)),
    ((2, 5), (3, 1), (1, 4)),
    ((3, 1), (1, 2), (0, 2)),
    ((1, 1), (2, 2), (3, 0)),
]


@pytest.mark.parametrize("vthreads", [False, True])
@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(("kernel", "stride", "padding"), OBLONG)
def test_oblong_kernels(
    kernel: tuple[int, int],
    stride: tuple[int, int],
    padding: tuple[int, int],
    machine: str,
    vthreads: bool,
) -> None:
    target = vta.load_machine(MACHINES[machine])
    layer = ops.Conv2d(2, 11, 8, 5, 6, kernel, stride, padding)
    op = ops.conv2d(layer, target, vthreads=vthreads)
    rng = np.random.default_rng(7)
    low, high = target.scalar_range(Buffer.INP)
    data = rng.integers(low, high, (2, 5, 11, 8), target.dtype(Buffer.INP), endpoint=True)
    low, high = target.scalar_range(Buffer.WGT)
    weights = rng.integers(low, high, (6, 5, *kernel), target.dtype(Buffer.WGT), endpoint=True)
    packed = op.pack({"data": data, "weights": weights})
    output = np.zeros(op.output_shape, op.output_dtype)
    module = build(op.schedule, target)
    module.run(
        [packed.get(param.name, output) for param in module.program.params],
        Runtime(SimulatorDevice(target)),
    )

    (ph, pw), (sh, sw) = padding, stride
    padded = np.pad(data.astype(np.int64), ((0, 0), (0, 0), (ph, ph), (pw, pw)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, kernel, axis=(2, 3))
    sums = np.einsum("ncyxij,ocij->noyx", windows[:, :, ::sh, ::sw], weights.astype(np.int64))
    unused = 64 - target.bits(Buffer.OUT)
    np.testing.assert_array_equal(op.unpack(output), sums << unused >> unused)
