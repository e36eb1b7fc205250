"""Micro-op kernels: recorded, deduplicated, kept in DRAM once, cached in micro-op SRAM.

A kernel is a sequence of micro-ops and at most two loop levels; one GEMM or ALU instruction runs
it. ``KernelRecorder`` builds one from runtime calls, ``UopImage`` gives each a place in DRAM that
never changes while the runtime lives, ``UopCache`` decides which of them the SRAM holds.
"""

from bisect import insort
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from vta_isa.encoding import encode_uops
from vta_isa.enums import AluOp, Buffer, FusedOp, Opcode
from vta_isa.errors import RuntimeCallError
from vta_isa.insn import UOP_BYTES, alu_operations, layouts
from vta_isa.machine import Machine

from .buffers import Buffers, DeviceBuffer
from .device import Device
from .requantize import Requantize

CHUNK_BYTES = 64 * 1024  # the DRAM image grows by this much, or by one larger kernel
HAZARD_DISTANCE = 2  # published HLS machine: a dst may not come back within two micro-ops
_MAX_LOOPS = 2


class UopMode(IntEnum):
    """What a kernel's micro-ops drive."""

    GEMM = 0
    ALU = 1


class Before(IntEnum):
    """What becomes of the accumulators that a GEMM writes; the argument ``reset_out``."""

    ADD = 0
    RESET = 1
    OVERWRITE = 2  # an extension


@dataclass(frozen=True)
class LoopLevel:
    """One hardware loop: every iteration adds the factors to the micro-ops' indices."""

    extent: int
    dst_factor: int
    src_factor: int
    wgt_factor: int


_NO_LOOP = LoopLevel(1, 0, 0, 0)


@dataclass(frozen=True, eq=False)
class Kernel:
    """A recorded kernel; two with equal content are the same object within one runtime.

    ``number`` counts the distinct kernels of the runtime. ``uops`` are (dst, src, wgt), one row
    per micro-op; ``words`` their encoding.
    """

    number: int
    mode: UopMode
    before: Before
    loops: tuple[LoopLevel, ...]
    alu_op: AluOp | FusedOp
    use_imm: bool
    imm: int  # of a REQUANTIZE: its settings, packed
    uops: NDArray[np.int64]
    words: NDArray[np.uint32]

    def __len__(self) -> int:
        return len(self.words)

    @property
    def opcode(self) -> Opcode:
        """The instruction that runs the kernel."""
        return Opcode.GEMM if self.mode is UopMode.GEMM else Opcode.ALU

    @property
    def levels(self) -> tuple[LoopLevel, LoopLevel]:
        """The hardware's (outer, inner) loop.

        A single level is the outer loop of a GEMM but the inner loop of an ALU instruction, as
        published.
        """
        if len(self.loops) == _MAX_LOOPS:
            return self.loops[0], self.loops[1]
        if len(self.loops) == 1:
            level = self.loops[0]
            return (level, _NO_LOOP) if self.mode is UopMode.GEMM else (_NO_LOOP, level)
        return _NO_LOOP, _NO_LOOP

    def fields(self) -> dict[str, int]:
        """The instruction's fields, less its flags, with the micro-ops at SRAM entry 0."""
        outer, inner = self.levels
        fields = {
            "uop_end": len(self),
            "reset": int(self.before is Before.RESET),
            "iter_out": outer.extent,
            "iter_in": inner.extent,
            "dst_factor_out": outer.dst_factor,
            "dst_factor_in": inner.dst_factor,
            "src_factor_out": outer.src_factor,
            "src_factor_in": inner.src_factor,
        }
        if self.mode is UopMode.GEMM:
            fields |= {"wgt_factor_out": outer.wgt_factor, "wgt_factor_in": inner.wgt_factor}
            fields |= {"overwrite": int(self.before is Before.OVERWRITE)}
            return fields
        fields |= {"alu_op": self.alu_op, "use_imm": int(self.use_imm)}
        if self.alu_op is FusedOp.REQUANTIZE:
            how = Requantize.unpacked(self.imm)
            del fields["src_factor_in"]  # its bits are the shift's
            return fields | {"shift": how.shift, "low_kind": how.low, "high": how.high}
        return fields | {"imm": self.imm}


class Kernels:
    """Every distinct kernel of a runtime, found by content."""

    def __init__(self) -> None:
        self._by_content: dict[tuple[object, ...], Kernel] = {}
        self._all: list[Kernel] = []
        self._fields: dict[str, NDArray[np.int64]] = {}
        self._fields_of = 0  # the kernels that _fields covers

    def __len__(self) -> int:
        return len(self._all)

    def __getitem__(self, number: int) -> Kernel:
        return self._all[number]

    def fields(self) -> dict[str, NDArray[np.int64]]:
        """Instruction field -> its value for every kernel, indexed by the kernel's number."""
        if self._fields_of != len(self._all):
            rows = [kernel.fields() for kernel in self._all]
            names = sorted({name for row in rows for name in row})
            self._fields = {n: np.array([row.get(n, 0) for row in rows], np.int64) for n in names}
            self._fields_of = len(rows)
        return self._fields

    def intern(self, recorder: "KernelRecorder", machine: Machine) -> Kernel:
        """The kernel ``recorder`` recorded: an old one of the same content, or a new one."""
        recorder.check_complete()
        content = recorder.content()
        known = self._by_content.get(content)
        if known is not None:
            return known
        uops = np.array(recorder.uops, np.int64).reshape(-1, 3)
        kernel = Kernel(
            number=len(self._all),
            mode=recorder.mode,
            before=recorder.before,
            loops=tuple(recorder.loops),
            alu_op=recorder.alu_op,
            use_imm=recorder.use_imm,
            imm=recorder.imm,
            uops=uops,
            words=encode_uops(uops, machine),
        )
        _check_reach(kernel, machine)
        self._by_content[content] = kernel
        self._all.append(kernel)
        return kernel


class KernelRecorder:
    """Takes the calls a kernel's record function makes and holds them to the contract.

    ``call`` names the push in messages. With ``portable`` the published HLS machine's hazard is
    an error: a destination that one of the previous two micro-ops has. This kit's machines
    forward results, so they do not need the rule.
    """

    def __init__(self, call: str, machine: Machine, mode: UopMode, *, portable: bool = False):
        self._call = call
        self._portable = portable
        self._open_loops = 0
        self._capacity = machine.depth(Buffer.UOP)
        words = layouts(machine)
        self._extent_max = words.gemm.slots["iter_out"].field.high
        self._imm = words.alu.slots["imm"].field
        self._operations = {int(op): op for op in alu_operations(machine)}
        self._befores = [Before.ADD, Before.RESET]
        if machine.extensions.gemm_overwrite:
            self._befores.append(Before.OVERWRITE)
        acc, inp, wgt = (machine.depth(b) for b in (Buffer.ACC, Buffer.INP, Buffer.WGT))
        self._depths = {
            "dst": (Buffer.ACC, acc),
            "src": (Buffer.INP, inp) if mode is UopMode.GEMM else (Buffer.ACC, acc),
            "wgt": (Buffer.WGT, wgt),
        }
        self.mode = mode
        self.before = Before.ADD
        self.alu_op: AluOp | FusedOp = AluOp(0)
        self.use_imm = False
        self.imm = 0
        self.loops: list[LoopLevel] = []
        self.uops: list[tuple[int, int, int]] = []

    def content(self) -> tuple[object, ...]:
        """What two kernels must share to be one."""
        alu = (self.alu_op, self.use_imm, self.imm)
        return (self.mode, self.before, alu, tuple(self.loops), tuple(self.uops))

    def loop_begin(self, extent: int, dst_factor: int, src_factor: int, wgt_factor: int) -> None:
        """Open a loop level; before the first micro-op, and two at most."""
        if self.uops:
            raise RuntimeCallError(
                f"{self._call}: uop_loop_begin after {len(self.uops)} micro-ops; open loops before "
                f"the kernel's first uop_push"
            )
        if len(self.loops) == _MAX_LOOPS:
            raise RuntimeCallError(
                f"{self._call}: a third uop_loop_begin; an instruction has {_MAX_LOOPS} loop "
                f"levels, so unroll one into micro-ops"
            )
        if not 0 <= extent <= self._extent_max:
            raise RuntimeCallError(
                f"{self._call}: uop_loop_begin extent = {extent} is outside 0..{self._extent_max}; "
                f"split the loop"
            )
        level = LoopLevel(extent, dst_factor, src_factor, wgt_factor)
        self._check_indices("uop_loop_begin", "_factor", dst_factor, src_factor, wgt_factor)
        self.loops.append(level)
        self._open_loops += 1

    def loop_end(self) -> None:
        """Close the innermost open level."""
        if self._open_loops == 0:
            raise RuntimeCallError(
                f"{self._call}: uop_loop_end without an open loop; each closes one uop_loop_begin"
            )
        self._open_loops -= 1

    def push(
        self,
        mode: int,
        reset_out: int,
        dst_index: int,
        src_index: int,
        wgt_index: int,
        opcode: int,
        use_imm: int,
        imm_val: int,
    ) -> None:
        """Add one micro-op; everything but its indices must be as in the kernel's first."""
        if mode != self.mode:
            raise RuntimeCallError(
                f"{self._call}: uop_push mode = {mode} where this kernel needs mode "
                f"{int(self.mode)} ({self.mode.name}); GEMM kernels go through push_gemm_op, ALU "
                f"kernels through push_alu_op"
            )
        if self._open_loops != len(self.loops):
            raise RuntimeCallError(
                f"{self._call}: uop_push after uop_loop_end; the hardware repeats all micro-ops of "
                f"a kernel, so push them inside every loop"
            )
        self._check_indices("uop_push", "_index", dst_index, src_index, wgt_index)
        if self.mode is UopMode.ALU:
            if opcode not in self._operations:
                known = ", ".join(f"{op.name} {n}" for n, op in self._operations.items())
                raise RuntimeCallError(
                    f"{self._call}: uop_push opcode = {opcode} is no ALU operation ({known})"
                )
            fused = self._operations[opcode] is FusedOp.REQUANTIZE
            if fused:
                Requantize.unpacked(imm_val)
                self._check_bias(src_index)
            elif not self._imm.low <= imm_val <= self._imm.high:
                raise RuntimeCallError(
                    f"{self._call}: uop_push imm_val = {imm_val} does not fit {self._imm.width} "
                    f"bits ({self._imm.allowed}); {self._imm.hint}"
                )
            before = Before(bool(reset_out))  # without a meaning, but encoded as published
            settings = (before, self._operations[opcode], bool(use_imm), imm_val)
        else:
            if reset_out not in self._befores:
                known = ", ".join(f"{b.name} {int(b)}" for b in self._befores)
                raise RuntimeCallError(
                    f"{self._call}: uop_push reset_out = {reset_out} is unknown to this machine "
                    f"({known})"
                )
            settings = (Before(reset_out), AluOp(0), False, 0)
        if not self.uops:
            self.before, self.alu_op, self.use_imm, self.imm = settings
        elif settings != (self.before, self.alu_op, self.use_imm, self.imm):
            raise RuntimeCallError(
                f"{self._call}: micro-op {len(self.uops)} differs from the kernel's first: "
                f"(reset, opcode, use_imm, imm) = {_shown(settings)}, not "
                f"{_shown((self.before, self.alu_op, self.use_imm, self.imm))}; they are fields of "
                f"the instruction, so record two kernels"
            )
        if self._portable and any(dst_index == u[0] for u in self.uops[-HAZARD_DISTANCE:]):
            raise RuntimeCallError(
                f"{self._call}: micro-op {len(self.uops)} has dst_index = {dst_index} like one of "
                f"the {HAZARD_DISTANCE} before it, which the published machine computes wrongly; "
                f"reorder the micro-ops, or drop portable=True"
            )
        self.uops.append((dst_index, src_index, wgt_index))

    def _check_bias(self, src_index: int) -> None:
        """A REQUANTIZE has one entry of bias for each iteration of its outer loop."""
        if len(self.loops) == _MAX_LOOPS and self.loops[1].src_factor:
            raise RuntimeCallError(
                f"{self._call}: the inner loop of a REQUANTIZE has src_factor = "
                f"{self.loops[1].src_factor}, but its bias moves with the outer loop alone; "
                "exchange the loops"
            )
        if len(self.loops) == 1 and self.loops[0].src_factor:
            raise RuntimeCallError(
                f"{self._call}: the only loop of a REQUANTIZE has src_factor = "
                f"{self.loops[0].src_factor}, but an ALU kernel's only loop is the inner one; open "
                "a second loop of extent 1 inside"
            )
        if self.uops and src_index != self.uops[0][1]:
            raise RuntimeCallError(
                f"{self._call}: micro-op {len(self.uops)} of a REQUANTIZE has src_index = "
                f"{src_index}, the first one {self.uops[0][1]}; they share one bias, so record "
                "a kernel for each"
            )

    def check_complete(self) -> None:
        """The recording is over: there are micro-ops, they fit, every loop is closed."""
        if not self.uops:
            raise RuntimeCallError(
                f"{self._call}: the record function pushed no micro-op; call uop_push in it"
            )
        if self._open_loops:
            raise RuntimeCallError(
                f"{self._call}: {self._open_loops} loop level(s) still open at the end of the "
                f"recording; close each with uop_loop_end"
            )
        if len(self.uops) > self._capacity:
            raise RuntimeCallError(
                f"{self._call}: the kernel has {len(self.uops)} micro-ops, the micro-op memory "
                f"holds {self._capacity}; use loop levels or a smaller tile"
            )

    def _check_indices(self, what: str, suffix: str, dst: int, src: int, wgt: int) -> None:
        for name, value in (("dst", dst), ("src", src), ("wgt", wgt)):
            buffer, depth = self._depths[name]
            if not 0 <= value < depth:
                raise RuntimeCallError(
                    f"{self._call}: {what} {name}{suffix} = {value} is outside 0..{depth - 1}, the "
                    f"entries of {buffer.name}"
                )


def _shown(settings: tuple[Before, AluOp | FusedOp, bool, int]) -> str:
    before, op, use_imm, imm = settings
    return f"({int(before)}, {op.name}, {int(use_imm)}, {imm})"


def _check_reach(kernel: Kernel, machine: Machine) -> None:
    """Refuse a kernel whose loops run past the end of a memory, while its author is at hand."""
    if any(level.extent == 0 for level in kernel.loops):
        return  # executes nothing
    operands = [(Buffer.ACC, "dst", 0)]
    if kernel.mode is UopMode.ALU:
        operands += [] if kernel.use_imm else [(Buffer.ACC, "src", 1)]
    elif kernel.before is not Before.RESET:
        operands += [(Buffer.INP, "src", 1), (Buffer.WGT, "wgt", 2)]
    for buffer, name, column in operands:
        last = int(kernel.uops[:, column].max()) + sum(
            (level.extent - 1) * int(getattr(level, f"{name}_factor")) for level in kernel.loops
        )
        if last >= machine.depth(buffer):
            raise RuntimeCallError(
                f"kernel of {len(kernel)} micro-ops, loops "
                f"{' x '.join(str(level.extent) for level in kernel.loops) or 'none'}: {name} "
                f"reaches entry {last} of {buffer.name}, which has 0..{machine.depth(buffer) - 1}; "
                f"use a smaller tile"
            )


@dataclass(frozen=True)
class Placement:
    """Where the SRAM holds a kernel: entries ``begin`` .. ``end - 1``."""

    begin: int
    end: int


class UopCache:
    """Which kernels the micro-op SRAM holds, least recently used first to go.

    A kernel takes the lowest free range it fits, so that kernels lie one after the other from
    entry 0 as long as nothing is evicted, as in the published runtime. Where none fits, the kernel
    whose last use is the longest ago is evicted, then the next, until one does.
    """

    def __init__(self, capacity: int):
        self.capacity = capacity
        self._placed: OrderedDict[int, Placement] = OrderedDict()  # by last use, oldest first
        self._ranges: list[tuple[int, int]] = []  # (begin, end) of every kernel, sorted

    def __len__(self) -> int:
        return len(self._placed)

    def __contains__(self, number: int) -> bool:
        return number in self._placed

    def use(self, number: int, size: int) -> tuple[Placement, bool]:
        """Place kernel ``number`` of ``size`` micro-ops; the flag says that it must be loaded."""
        placement = self._placed.get(number)
        if placement is not None:
            self._placed.move_to_end(number)
            return placement, False
        begin = self._first_fit(size)
        while begin is None:
            _, evicted = self._placed.popitem(last=False)
            self._ranges.remove((evicted.begin, evicted.end))
            begin = self._first_fit(size)
        placement = Placement(begin, begin + size)
        insort(self._ranges, (placement.begin, placement.end))
        self._placed[number] = placement
        return placement, True

    def clear(self) -> None:
        """Forget everything, as the published runtime does after each launch."""
        self._placed.clear()
        self._ranges.clear()

    def _first_fit(self, size: int) -> int | None:
        begin = 0
        for taken_begin, taken_end in self._ranges:
            if begin + size <= taken_begin:
                return begin
            begin = taken_end
        return begin if begin + size <= self.capacity else None


class UopImage:
    """The DRAM copy of every kernel: written once, never moved, never overwritten.

    An instruction that loads a kernel therefore stays right whatever happens afterwards. Memory is
    taken in chunks; what is new travels to the device with ``flush``.
    """

    def __init__(self, device: Device, buffers: Buffers):
        self._device = device
        self._buffers = buffers
        self._chunks: list[DeviceBuffer] = []
        self._used = 0  # bytes used of the last chunk
        self._addresses: dict[int, int] = {}
        self._unwritten: list[tuple[int, NDArray[np.uint32]]] = []

    def address(self, kernel: Kernel) -> int:
        """The physical byte address of ``kernel``, which gets one at its first use."""
        known = self._addresses.get(kernel.number)
        if known is not None:
            return known
        size = len(kernel) * UOP_BYTES
        if not self._chunks or self._used + size > self._chunks[-1].size:
            self._chunks.append(self._buffers.alloc(max(CHUNK_BYTES, size)))
            self._used = 0
        address = self._chunks[-1].address + self._used
        self._used += size
        self._addresses[kernel.number] = address
        self._unwritten.append((address, kernel.words))
        return address

    def flush(self) -> None:
        """Write to the device what it does not have yet, neighbours in one piece."""
        for address, words in _joined(self._unwritten):
            self._device.write(address, words.astype("<u4").view(np.uint8))
        self._unwritten.clear()

    def release(self) -> None:
        """Give the memory back; every kernel gets a new place at its next use."""
        for chunk in self._chunks:
            self._buffers.free(chunk.handle)
        self._chunks.clear()
        self._addresses.clear()
        self._unwritten.clear()


def _joined(
    pieces: Sequence[tuple[int, NDArray[np.uint32]]],
) -> list[tuple[int, NDArray[np.uint32]]]:
    """Pieces that follow one another without a gap, concatenated."""
    runs: list[tuple[int, list[NDArray[np.uint32]]]] = []
    end = None
    for address, words in pieces:
        if address == end:
            runs[-1][1].append(words)
        else:
            runs.append((address, [words]))
        end = address + words.nbytes
    return [(address, np.concatenate(parts)) for address, parts in runs]
