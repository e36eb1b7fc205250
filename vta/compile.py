"""Where `vta` meets the compiler: a layer of a workload becomes a program that runs."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from vta_isa.assembly import format_stream
from vta_isa.enums import Buffer
from vta_isa.errors import CompileError
from vta_isa.launch import Launch
from vta_isa.machine import Machine, load_machine
from vta_isa.suggest import did_you_mean
from vta_runtime import Device, ReferenceDevice, Runtime, SimulatorDevice, Stream
from vta_runtime.devices.rtl import RtlDevice, WavesWanted

from .checked_device import checked
from .workload_data import make_arrays
from .workloads import (
    Add,
    Clip,
    Conv2d,
    Dense,
    Layer,
    Relu,
    Shift,
    Workload,
    about_layer,
    load_workload,
)

if TYPE_CHECKING:
    from compiler import ops
    from compiler.module import Module
    from compiler.ops import ElementwiseTile, Epilogue, Operator, Tile

    Tiling = Tile | ElementwiseTile

Ints = NDArray[np.integer]

# What executes a layer: the simulator; its slow judge; the RTL, compiled by Verilator.
DEVICES = ("simulator", "reference", "rtl")

# What `lower` shows, in the order in which the compiler makes it.
EMITS = ("te", "schedule", "loops", "calls", "llvm", "stream")


class CompiledLayer(Protocol):
    """A layer compiled for one machine."""

    def run(
        self,
        arrays: Mapping[str, Ints],
        device: str,
        *,
        waves: WavesWanted | None = None,
        streams: list[Stream] | None = None,
    ) -> tuple[Ints, list[Launch]]:
        """Output and launches of one execution on a fresh device, one of ``DEVICES``.

        ``waves``: a file for the signals of ``rtl``, the first cycle, and the one behind the last.
        A list given as ``streams`` is filled with what each launch ran, and their timelines hold
        every DRAM burst.

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
        with about_layer(loaded, layer):
            text = lower_layer(layer, target, emit, vthreads)
        yield f"{loaded.name}: {layer.name}", text


def compile_layer(layer: Layer, machine: Machine, vthreads: bool) -> "CompiledOperator":
    """The program of ``layer``; with ``vthreads`` its loads, products and stores overlap.

    Raises ``WorkloadError`` where no tile of the layer fits the machine.
    """
    return compile_operator(operator(layer, machine, vthreads), machine)


def compile_operator(mapped: "Operator", machine: Machine) -> "CompiledOperator":
    """The program of an operator that ``operator`` has mapped onto ``machine``."""
    from compiler.module import build

    return CompiledOperator(mapped, build(mapped.schedule, machine))


def lower_layer(layer: Layer, machine: Machine, emit: str, vthreads: bool) -> str:
    """The program of ``layer`` in the form ``emit``, one of ``EMITS``."""
    from compiler.module import build
    from compiler.te.text import to_text

    mapped = operator(layer, machine, vthreads)
    match emit:
        case "te":
            return to_text(mapped.result)
        case "schedule":
            return f"# {mapped.plan}\n{mapped.schedule.trace()}\n\n{mapped.schedule}"
        case "stream":
            return _streams(compile_operator(mapped, machine), layer)
    return build(mapped.schedule, machine).text(emit)


def launched_streams(layer: Layer, machine: Machine, vthreads: bool) -> list[Stream]:
    """What ``layer`` launches on its own data: each stream, and the DRAM it begins with."""
    compiled = compile_layer(layer, machine, vthreads)
    # A later launch may depend on what an earlier one computed, so function stays on.
    runtime = Runtime(SimulatorDevice(machine, timing=False), keep_memory=True)
    compiled.run_on(runtime, make_arrays(layer, machine))
    return runtime.streams


@dataclass(frozen=True)
class CompiledOperator:
    """An operator and its native code: the ``CompiledLayer`` there is."""

    operator: "Operator"
    module: "Module"

    def run(
        self,
        arrays: Mapping[str, Ints],
        device: str,
        *,
        waves: WavesWanted | None = None,
        streams: list[Stream] | None = None,
    ) -> tuple[Ints, list[Launch]]:
        recorded = streams is not None
        with _device(device, self.module.machine, waves, record_bursts=recorded) as fresh:
            runtime = Runtime(checked(fresh), keep_streams=recorded)
            output = self.run_on(runtime, arrays)
        if streams is not None:
            streams.extend(runtime.streams)
        return output, runtime.launches

    def run_on(self, runtime: Runtime, arrays: Mapping[str, Ints]) -> Ints:
        """The output, plain; the runtime keeps launches and, where asked to, streams."""
        # The operator names its arguments; the program's parameters give their order.
        packed = self.operator.pack(arrays)
        output = np.zeros(self.operator.output_shape, self.operator.output_dtype)
        params = self.module.program.params
        self.module.run([packed.get(param.name, output) for param in params], runtime)
        return cast(Ints, self.operator.unpack(output))


@contextmanager
def _device(
    name: str, machine: Machine, waves: WavesWanted | None, *, record_bursts: bool
) -> Iterator[Device]:
    match name:
        case "rtl":
            with closing(RtlDevice(machine, waves=waves, record_bursts=record_bursts)) as device:
                yield device
        case "reference":
            yield ReferenceDevice(machine, record_bursts=record_bursts)
        case _:
            yield SimulatorDevice(machine, record_bursts=record_bursts)


def _streams(program: CompiledOperator, layer: Layer) -> str:
    """The assembly of every launch, from a run that neither computes nor keeps time."""
    machine = program.module.machine
    device = SimulatorDevice(machine, timing=False, function=False)
    runtime = Runtime(device, keep_streams=True)
    program.run_on(runtime, make_arrays(layer, machine))
    return "".join(format_stream(stream.words, machine) for stream in runtime.streams)


def operator(
    layer: Layer, machine: Machine, vthreads: bool, tile: "Tiling | None" = None
) -> "Operator":
    """The scheduled operator that computes ``layer``, cut as ``tile`` says, else as ``tiling``."""
    from compiler import ops

    what = _described(layer, machine)
    chosen: Any = tile
    match what:
        case ops.Conv2d():
            return ops.conv2d(what, machine, vthreads=vthreads, tile=chosen)
        case ops.Dense():
            return ops.dense(what, machine, vthreads=vthreads, tile=chosen)
        case ops.Elementwise():
            return ops.elementwise(what, machine, vthreads=vthreads, tile=chosen)


def tiling(
    layer: Layer, machine: Machine, vthreads: bool, candidates: int | None = None
) -> "Tiling":
    """How ``layer`` is cut: the one choice that depends on the timing of the machine's memory.

    ``candidates`` bounds how many tiles of a product or convolution are looked at closely.
    """
    from compiler import ops

    what = _described(layer, machine)
    match what:
        case ops.Conv2d():
            return ops.tile_conv2d(what, machine, vthreads=vthreads, candidates=candidates)
        case ops.Dense():
            return ops.tile_dense(what, machine, vthreads=vthreads, candidates=candidates)
        case ops.Elementwise():
            return ops.tile_elementwise(what, machine, vthreads=vthreads)


def _described(layer: Layer, machine: Machine) -> "ops.Conv2d | ops.Dense | ops.Elementwise":
    """``layer`` in the words of the compiler."""
    from compiler import ops

    def epilogue(concrete: Conv2d | Dense) -> "Epilogue":
        numbers = concrete.concrete_epilogue(machine)
        return ops.Epilogue(numbers.bias, numbers.shift or None, numbers.clip)

    match layer:
        case Conv2d():
            return ops.Conv2d(
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
        case Dense():
            return ops.Dense(m=layer.m, n=layer.n, k=layer.k, epilogue=epilogue(layer))
        case Add():
            add, after = True, ops.Epilogue()
        case Relu():
            add, after = False, ops.Epilogue(clip=(0, None))
        case Shift():
            # As in an epilogue: a right shift beyond the width leaves copies of the sign.
            amount = min(layer.amount, machine.bits(Buffer.ACC) - 1)
            add, after = False, ops.Epilogue(shift=amount)
        case Clip():
            add, after = False, ops.Epilogue(clip=(layer.low, layer.high))
    return ops.Elementwise(layer.length, add, after)
