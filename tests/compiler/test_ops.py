"""Operators against plain NumPy, on every kind of machine; the checker finds nothing to say."""

import numpy as np
import pytest
from machines import NAMES, machine

from compiler.module import build
from simulator.checker import Checker
from vta.compile import operator
from vta.reference_ops import reference
from vta.workload_data import make_arrays
from vta.workloads import Add, Clip, Conv2d, Dense, Epilogue, Relu, Shift
from vta_isa import Buffer, FusedOp, Opcode, WorkloadError, decode_stream, load_machine
from vta_runtime import ReferenceDevice, Runtime, SimulatorDevice


def conv(name, size, channels, kernel, stride=1, padding=0, **options):
    height, width = size
    inp, out = channels
    return Conv2d(
        name=name,
        height=height,
        width=width,
        in_channels=inp,
        out_channels=out,
        kernel=kernel,
        stride=stride,
        padding=padding,
        **options,
    )


PLAIN = Epilogue(bias=False, shift=0, clip=False)
LAYERS = [
    conv("padded", (6, 6), (16, 16), 3, padding=1),
    conv("oblong-odd", (7, 5), (20, 9), 3, padding=1),
    conv("strided", (9, 9), (16, 24), 3, stride=2, padding=1),
    conv("pointwise", (5, 5), (32, 16), 1),
    conv("pointwise-strided", (8, 8), (16, 16), 1, stride=2),
    conv("even-kernel", (6, 6), (8, 8), 2, stride=2),
    conv("one-output", (3, 3), (5, 3), 3),
    conv("two-pictures", (4, 4), (16, 16), 3, padding=1, batch=3),
    conv("no-epilogue", (5, 5), (16, 16), 3, padding=1, epilogue=PLAIN),
    Dense(name="matrix", m=9, k=40, n=33),
    Dense(name="vector", m=1, k=64, n=64),
    Dense(name="scalar", m=1, k=1, n=1, epilogue=PLAIN),
    Add(name="add", length=1000),
    Relu(name="relu", length=77),
    Shift(name="shift-left", length=40, amount=-3),
    Clip(name="clip", length=300, low=-100, high=5),
]


def check(layer, target, vthreads, device):
    """Run ``layer`` and compare; the streams must be free of races and use up their tokens."""
    op = operator(layer, target, vthreads)
    runtime = Runtime(device(target, memory_bytes=16 << 20), keep_memory=True)
    arrays = make_arrays(layer, target)
    packed = op.pack(arrays)
    output = np.zeros(op.output_shape, op.output_dtype)
    module = build(op.schedule, target)
    module.run([packed.get(p.name, output) for p in module.program.params], runtime)
    np.testing.assert_array_equal(
        op.unpack(output), reference(layer, arrays, target), err_msg=f"{layer.name}: {op.plan}"
    )
    checker = Checker(target)
    for stream in runtime.streams:
        assert stream.dram is not None
        assert checker.check(stream.words, stream.dram, stream.insn_address) == []
    return runtime


@pytest.mark.parametrize("vthreads", [False, True], ids=["serial", "vthreads"])
@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.name)
def test_every_operator_on_the_tiny_machine(layer, vthreads):
    check(layer, load_machine("tiny"), vthreads, SimulatorDevice)


@pytest.mark.parametrize("vthreads", [False, True], ids=["serial", "vthreads"])
@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.name)
def test_extensions_leave_no_reset_and_one_operation_for_the_epilogue(layer, vthreads):
    target = load_machine("tiny").replace(
        extensions={"gemm_overwrite": True, "alu_requantize": True}
    )
    runtime = check(layer, target, vthreads, SimulatorDevice)
    whole = getattr(layer, "epilogue", None) not in (None, PLAIN)
    for stream in runtime.streams:
        table = decode_stream(stream.words, target)
        products, operations = (table[table["opcode"] == op] for op in (Opcode.GEMM, Opcode.ALU))
        assert not products["reset"].any()
        assert products["overwrite"].any() == bool(len(products))
        assert len(operations) or not whole
        assert not whole or (operations["alu_op"] == FusedOp.REQUANTIZE).all()


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("tiny", "smallest")])
@pytest.mark.parametrize("layer", LAYERS[:4] + LAYERS[9:10] + LAYERS[12:13], ids=lambda a: a.name)
def test_operators_on_every_kind_of_machine(layer, name):
    check(layer, machine(name), True, SimulatorDevice)


@pytest.mark.parametrize("layer", [LAYERS[0], LAYERS[9]], ids=lambda layer: layer.name)
def test_the_reference_device_agrees_to_the_bit_and_to_the_cycle(layer):
    target = load_machine("tiny")
    fast, slow = (check(layer, target, True, kind) for kind in (SimulatorDevice, ReferenceDevice))
    assert [launch.cycles for launch in fast.launches] == [
        launch.cycles for launch in slow.launches
    ]


def test_a_bias_too_large_to_stay_is_loaded_tile_by_tile():
    target = machine("block8")
    many = target.depth(Buffer.ACC) * 8
    layer = Dense(name="wide", m=2, k=8, n=many)
    assert operator(layer, target, True).plan
    check(layer, target, True, SimulatorDevice)


def test_a_layer_that_fits_no_tile_says_what_is_short():
    layer = conv("huge", (40, 40), (8, 8), 33)
    with pytest.raises(WorkloadError, match=r"no tile fits machine 'tiny'.*INP needs 1089 entries"):
        operator(layer, load_machine("tiny"), True)


@pytest.mark.parametrize("layer", ["C2", "C5", "C9", "C11"])
def test_virtual_threads_gain_on_resnet_layers(layer):
    import vta

    both = vta.compare(f"resnet18/{layer}", "default")
    without, threaded = (run.layers[0].figures.cycles for run in (both.without, both.threaded))
    assert threaded < without
