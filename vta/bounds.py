"""Cycles below which no stream of a machine's instruction set computes a layer.

The compute stage does one thing at a time, and the two DRAM channels move one beat a cycle, so a
layer takes at least as long as the busiest of the three:

- compute: an output entry (``batch x block_out`` accumulators) needs one GEMM cycle for each
  ``block_in`` input channels of each kernel position, one cycle to be reset before, and for the
  epilogue ``alu.tensor_interval`` cycles for the bias (tensor plus tensor), one for the shift (an
  immediate), two for the clip (MIN and MAX). An element-wise layer needs its operation once per
  entry. With extensions there is no reset (GEMM overwrites), and bias, shift and clip together are
  one cycle (REQUANTIZE).
- read: every operand crosses the bus once, as the accelerator's layout stores it: channels,
  rows and vectors padded to whole entries, pictures without their border of zeros and without the
  rows and columns that no window covers, a bias as accumulator entries. That no operand is fetched
  twice needs an SRAM that holds what is reused, so this is a bound, and not always one that can be
  met.
- write: every output crosses the bus once.

Instructions and micro-operations, latencies, and filling and draining the pipelines are left out.
Kernel positions over the zero border count as work: a stream that leaves them out has to treat the
edges of the picture apart.
"""

from dataclasses import dataclass

from vta_isa.enums import Buffer
from vta_isa.machine import Machine

from .workloads import Add, Clip, Conv2d, Dense, Layer, Relu, Shift
from .workloads.layers import ConcreteEpilogue


@dataclass(frozen=True)
class Bound:
    """Cycles each of the three resources is busy at least."""

    compute: int
    read: int
    write: int

    @property
    def cycles(self) -> int:
        return max(self.compute, self.read, self.write)

    @property
    def limit(self) -> str:
        """The resource that decides."""
        names = {"compute": self.compute, "read": self.read, "write": self.write}
        return max(names, key=names.__getitem__)


def bound(layer: Layer, machine: Machine) -> Bound:
    """The bound of one run of ``layer``."""
    gemm = machine.gemm
    match layer:
        case Conv2d():
            rows = _blocks(layer.batch, gemm.batch)
            covered = [
                _covered(size, layer.kernel, layer.stride, layer.padding)
                for size in (layer.height, layer.width)
            ]
            pixels = rows * covered[0] * covered[1]
            out_pixels = rows * layer.out_height * layer.out_width
            in_blocks = _blocks(layer.in_channels, gemm.block_in)
            out_blocks = _blocks(layer.out_channels, gemm.block_out)
            taps = layer.kernel**2
        case Dense():
            pixels = out_pixels = _blocks(layer.m, gemm.batch)
            in_blocks = _blocks(layer.k, gemm.block_in)
            out_blocks = _blocks(layer.n, gemm.block_out)
            taps = 1
        case Add() | Relu() | Shift() | Clip():
            return _element_wise(layer, machine)
    epilogue = layer.concrete_epilogue(machine)
    entry_cycles = in_blocks * taps + (not machine.extensions.gemm_overwrite)  # GEMM and reset
    entry_cycles += _epilogue(epilogue, machine)
    return Bound(
        compute=out_pixels * out_blocks * entry_cycles,
        read=_beats(machine, Buffer.INP, pixels * in_blocks)
        + _beats(machine, Buffer.WGT, in_blocks * out_blocks * taps)
        + _beats(machine, Buffer.ACC, out_blocks * epilogue.bias),
        write=_beats(machine, Buffer.OUT, out_pixels * out_blocks),
    )


def _epilogue(epilogue: ConcreteEpilogue, machine: Machine) -> int:
    """ALU cycles per output entry; a bias serves many entries, so its own cycle is left out."""
    steps = (epilogue.shift > 0) + 2 * (epilogue.clip is not None)
    if _in_one_pass(machine, epilogue.bias, epilogue.shift, epilogue.clip):
        return 1
    return machine.alu.tensor_interval * epilogue.bias + steps


def _in_one_pass(machine: Machine, bias: bool, shift: int, clip: tuple[int, int] | None) -> bool:
    """Whether one REQUANTIZE does it all, and takes the place of several operations."""
    from compiler.ops import Epilogue  # late: most of `vta` does without the compiler

    return Epilogue(bias, shift or None, clip).fused(machine, added=bias) is not None


def _element_wise(layer: Add | Relu | Shift | Clip, machine: Machine) -> Bound:
    entries = _blocks(layer.length, machine.gemm.batch * machine.gemm.block_out)
    match layer:
        case Add():
            entry_cycles = machine.alu.tensor_interval
        case Clip():
            entry_cycles = 1 if _in_one_pass(machine, False, 0, (layer.low, layer.high)) else 2
        case Relu() | Shift():
            entry_cycles = 1
    return Bound(
        compute=entries * entry_cycles,
        read=len(layer.operands) * _beats(machine, Buffer.ACC, entries),
        write=_beats(machine, Buffer.OUT, entries),
    )


def _covered(size: int, kernel: int, stride: int, padding: int) -> int:
    """How many of the ``size`` positions along one axis of a picture lie in a window."""
    last = size + padding - kernel  # where a window may begin at most; the first is at -padding
    starts = range(-padding, last + 1, stride)
    if stride <= kernel:  # no gaps between the windows
        return min(size, max(0, starts[-1] + kernel))
    return sum(max(0, min(start + kernel, size) - max(start, 0)) for start in starts)


def _beats(machine: Machine, buffer: Buffer, entries: int) -> int:
    """Bus beats of a contiguous tensor of ``entries`` entries of ``buffer``."""
    return _blocks(entries * machine.entry_bytes(buffer), machine.bus_bytes)


def _blocks(size: int, block: int) -> int:
    return -(-size // block)
