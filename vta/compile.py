"""Where `vta` meets the compiler: a layer of a workload becomes a program that runs."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from vta_isa.errors import CompileError
from vta_isa.launch import Launch
from vta_isa.machine import Machine, load_machine
from vta_isa.suggest import did_you_mean

from .workloads import Add, Clip, Conv2d, Dense, Layer, Relu, Shift, Workload, load_workload

if TYPE_CHECKING:
    from compiler.ops import Epilogue, Operator

Ints = NDArray[np.integer]

# What `lower` shows, in the order in which the compiler makes it.
EMITS = ("te", "schedule", "loops", "calls", "llvm", "stream")


class CompiledLayer(Protocol):
    """A layer compiled for one machine."""

    def run(self, arrays: Mapping[str, Ints], device: str) -> tuple[Ints, list[Launch]]:
        """Output and launches of one execution on a fresh device (``simulator``, ``reference``).

        ``arrays`` are the operands as ``vta.workload_data.make_arrays`` gives them: plain tensors
        in the shapes the layer's class states. The output has the shape stated there too, and the
        machine's output type; blocks and padding to blocks are the program's own business.
        """
        ...


CompileLayer = Callable[[Layer, Machine, bool], CompiledLayer]


def lower(
    workload: str | Path | Mapping[str, object] | Workload,
    machine: str | Path | Mapping[str, object] | Machine = "default",
    *,
    emit: str,
    vthreads: bool = True,
) -> Iterator[tuple[str, str]]:
    """``(name, text)`` of each layer's program in the form ``emit``, one of ``EMITS``."""
    if emit not in EMITS:
        raise CompileError(f"there is no form {emit!r}{did_you_mean(emit, EMITS)}")
    loaded, target = load_workload(workload), load_machine(machine)
    for layer in loaded.layers:
        yield f"{loaded.name}: {layer.name}", lower_layer(layer, target, emit, vthreads)


def compile_layer(layer: Layer, machine: Machine, vthreads: bool) -> CompiledLayer:
    """The program of ``layer``; with ``vthreads`` its loads, products and stores overlap.

    Raises ``WorkloadError`` where no tile of the layer fits the machine.
    """
    raise NotImplementedError


def lower_layer(layer: Layer, machine: Machine, emit: str, vthreads: bool) -> str:
    """The program of ``layer`` in the form ``emit``, one of ``EMITS``."""
    raise NotImplementedError


def operator(layer: Layer, machine: Machine, vthreads: bool) -> "Operator":
    """The scheduled operator that computes ``layer``."""
    from compiler import ops

    def epilogue(concrete: Conv2d | Dense) -> "Epilogue":
        numbers = concrete.concrete_epilogue(machine)
        return ops.Epilogue(numbers.bias, numbers.shift or None, numbers.clip)

    match layer:
        case Conv2d():
            convolution = ops.Conv2d(
                batch=layer.batch,
                height=layer.height,
                width=layer.width,
                in_channels=layer.in_channels,
                out_channels=layer.out_channels,
                kernel=(layer.kernel, layer.kernel),
                stride=(layer.stride, layer.stride),
                padding=(layer.padding, layer.padding),
                epilogue=epilogue(layer),
            )
            return ops.conv2d(convolution, machine, vthreads=vthreads)
        case Dense():
            product = ops.Dense(m=layer.m, n=layer.n, k=layer.k, epilogue=epilogue(layer))
            return ops.dense(product, machine, vthreads=vthreads)
        case Add():
            add, after = True, ops.Epilogue()
        case Relu():
            add, after = False, ops.Epilogue(clip=(0, None))
        case Shift():
            add, after = False, ops.Epilogue(shift=layer.amount)
        case Clip():
            add, after = False, ops.Epilogue(clip=(layer.low, layer.high))
    return ops.elementwise(ops.Elementwise(layer.length, add, after), machine, vthreads=vthreads)
