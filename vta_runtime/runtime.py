"""The runtime: calls in, instruction streams out, launches on a device."""

import itertools
import sys
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, TextIO
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import DTypeLike, NDArray

from vta_isa.assembly import format_stream
from vta_isa.encoding import encode_stream
from vta_isa.enums import Buffer
from vta_isa.errors import RuntimeCallError
from vta_isa.insn import INSN_BYTES, MEM, UOP_BYTES
from vta_isa.launch import Launch
from vta_isa.machine import Machine

from . import current
from .buffers import DEVICE_TO_HOST, HOST_TO_DEVICE, Buffers, DeviceBuffer, is_handle
from .debug import ALL_FLAGS, DebugFlag, format_kernels
from .device import Device
from .stream import InstructionQueue
from .uops import Kernel, KernelRecorder, Kernels, Placement, UopCache, UopImage, UopMode

MAX_TRANSFER_BYTES = 1 << 25
"""VTA_MAX_XFER: the longest stream the published runtime launches, in bytes."""
WAIT_CYCLES = 1 << 31
"""What compiled code passes to ``synchronize``."""
# Records that must still fit after a call returned, as published: the tail and one more call's.
_RESERVED_RECORDS = 6
_MIN_INSN_BYTES = 64 * 1024

_LOADABLE = (Buffer.WGT, Buffer.INP, Buffer.ACC, Buffer.ACC_8BIT)
_SHAPE_FIELDS = tuple(
    slot.field for slot in MEM.slots.values() if slot.start >= MEM.slots["sram_base"].start
)

_RUNTIME_NUMBERS = itertools.count(1)
_LAST_RUNTIME: "WeakKeyDictionary[Device, int]" = WeakKeyDictionary()


@dataclass(frozen=True)
class Stream:
    """One launched instruction stream.

    ``words`` is (n, 2) uint64, low half first; ``insn_address`` the physical byte address it ran
    from; ``dram`` the device's memory from address 0 up to the last allocated page just before
    the launch, where it was asked for.
    """

    words: NDArray[np.uint64]
    insn_address: int
    dram: NDArray[np.uint8] | None


class Runtime:
    """Turns runtime calls into instruction streams and launches them on ``device``.

    The methods named in ``vta_runtime.calls`` are the published contract. One runtime uses a
    device at a time: a newer one takes the device over. Calls are not thread-safe; compiled code
    reaches the runtime that is current on its thread, see ``activate``.

    ``machine``: what the code that makes the calls was compiled for, by default the device's;
    compared with the device's by hash before every launch.
    ``portable``: refuse what only this kit's machines compute right (micro-ops whose destination
    comes back within two, kernel keys from 100 on).
    ``keep_uop_cache``: kernels stay in micro-op SRAM from one launch to the next and are not loaded
    again. Off by default, since the published runtime forgets them, so that streams compare record
    for record; with it nobody else may launch on the device.
    ``max_transfer_bytes``: a queue about to grow longer is launched in the middle of the program.
    ``keep_streams``, ``keep_memory``: keep launched streams, and the DRAM before each, in
    ``streams``. ``dump_to``: where debug dumps go, by default standard error.
    """

    def __init__(
        self,
        device: Device,
        *,
        machine: Machine | None = None,
        portable: bool = False,
        keep_uop_cache: bool = False,
        max_transfer_bytes: int = MAX_TRANSFER_BYTES,
        keep_streams: bool = False,
        keep_memory: bool = False,
        dump_to: TextIO | None = None,
    ):
        self.device = device
        self.machine = device.machine if machine is None else machine
        self.portable = portable
        self.launches: list[Launch] = []
        self.streams: list[Stream] = []
        self._keep_uop_cache = keep_uop_cache
        self._keep_streams = keep_streams or keep_memory
        self._keep_memory = keep_memory
        self._dump_to = dump_to
        least = (_RESERVED_RECORDS + 1) * INSN_BYTES
        if max_transfer_bytes < least:
            raise RuntimeCallError(
                f"Runtime: max_transfer_bytes = {max_transfer_bytes} is less than {least}, one "
                f"instruction and the tail of a launch"
            )
        self._max_records = max_transfer_bytes // INSN_BYTES - _RESERVED_RECORDS
        self._check_machine()
        self._entry_bytes = {buffer: self.machine.entry_bytes(buffer) for buffer in Buffer}
        self._depth = {buffer: self.machine.depth(buffer) for buffer in Buffer}
        self.buffers = Buffers(device)
        self._queue = InstructionQueue()
        self._kernels = Kernels()
        self._kernel_of_key: dict[tuple[UopMode, Hashable], Kernel] = {}
        self._recorder: KernelRecorder | None = None
        self._cache = UopCache(self._depth[Buffer.UOP])
        self._image = UopImage(device, self.buffers)
        self._loaded: list[tuple[Kernel, Placement]] = []  # in this launch, for dumps
        self._insn_buffer: DeviceBuffer | None = None
        self._debug = DebugFlag(0)
        self._error: BaseException | None = None
        self._number = next(_RUNTIME_NUMBERS)
        _LAST_RUNTIME[device] = self._number

    # Buffers

    def buffer_alloc(self, size: int) -> int:
        """The handle of ``size`` new bytes of device memory, page-aligned, contents undefined."""
        self._check_owner("buffer_alloc")
        return self.buffers.alloc(size).handle

    def buffer_free(self, buffer: int) -> None:
        """Release the memory behind a handle."""
        self.buffers.free(buffer)

    def buffer_copy(
        self,
        source: Any,
        source_offset: int,
        target: Any,
        target_offset: int,
        size: int,
        kind: int,
    ) -> None:
        """Copy ``size`` bytes; kind 1 host to device, 2 device to host, 3 device to device.

        Device sides are handles, host sides contiguous NumPy arrays or raw addresses; offsets are
        in bytes.
        """
        self._check_owner("buffer_copy")
        self.buffers.copy(source, source_offset, target, target_offset, size, kind)

    def buffer_cpu_ptr(self, buffer: int) -> int:
        """The address at which CPU code reads and writes a buffer; other pointers come back as is.

        Memory is coherent: what the CPU wrote before a launch the device reads, and the other way
        round after it.
        """
        if not is_handle(buffer or 0):
            return buffer
        return self.buffers.cpu_address(self.buffers.lookup(buffer, "buffer_cpu_ptr"))

    def write_barrier(self, buffer: int, elem_bits: int, start: int, extent: int) -> None:
        """Before the CPU reads what the device wrote; memory is coherent, so this only checks."""
        self._check_region("write_barrier", buffer, elem_bits, start, extent)

    def read_barrier(self, buffer: int, elem_bits: int, start: int, extent: int) -> None:
        """Before the device reads what the CPU wrote; memory is coherent, so this only checks."""
        self._check_region("read_barrier", buffer, elem_bits, start, extent)

    def buffer(self, handle: int) -> DeviceBuffer:
        """Physical address and size behind a handle."""
        return self.buffers.lookup(handle, "buffer")

    def upload(self, array: NDArray[Any]) -> int:
        """The handle of a new buffer with the bytes of ``array``."""
        data = np.ascontiguousarray(array)
        handle = self.buffer_alloc(data.nbytes)
        self.buffer_copy(data, 0, handle, 0, data.nbytes, HOST_TO_DEVICE)
        return handle

    def download(
        self, buffer: int, shape: int | tuple[int, ...], dtype: DTypeLike, offset: int = 0
    ) -> NDArray[Any]:
        """An array of this shape and type with the bytes from ``offset`` of a buffer."""
        array = np.empty(shape, dtype)
        self.buffer_copy(buffer, offset, array, 0, array.nbytes, DEVICE_TO_HOST)
        return array

    # Instructions

    def load_buffer_2d(
        self,
        src: int,
        src_elem_offset: int,
        x_size: int,
        y_size: int,
        x_stride: int,
        x_pad_before: int,
        y_pad_before: int,
        x_pad_after: int,
        y_pad_after: int,
        dst_sram_index: int,
        dst_mem_type: int,
    ) -> None:
        """Append a LOAD of ``y_size`` rows of ``x_size`` entries, surrounded by zero entries.

        Offset, sizes, stride and pads are in entries of ``dst_mem_type`` (a ``Buffer``).
        """
        call = "load_buffer_2d"
        if dst_mem_type not in _LOADABLE:
            known = ", ".join(f"{buffer.name} {int(buffer)}" for buffer in _LOADABLE)
            hint = "; kernels load micro-ops themselves" if dst_mem_type == Buffer.UOP else ""
            raise RuntimeCallError(
                f"{call}: dst_mem_type = {dst_mem_type} cannot be loaded ({known}){hint}"
            )
        memory = Buffer(dst_mem_type)
        dram_base = self._dram_base(call, src, memory, src_elem_offset, x_size, y_size, x_stride)
        shape = (
            dst_sram_index,
            dram_base,
            y_size,
            x_size,
            x_stride,
            y_pad_before,
            y_pad_after,
            x_pad_before,
            x_pad_after,
        )
        _check_fields(call, shape)
        rows = y_pad_before + y_size + y_pad_after
        if x_size:  # an instruction of empty rows does nothing, padding included
            width = x_pad_before + x_size + x_pad_after
            self._check_sram(call, memory, dst_sram_index, width, rows)
        self._queue.load(memory, shape)
        self._flush_if_full()

    def store_buffer_2d(
        self,
        src_sram_index: int,
        src_mem_type: int,
        dst: int,
        dst_elem_offset: int,
        x_size: int,
        y_size: int,
        x_stride: int,
    ) -> None:
        """Append a STORE of ``y_size`` rows of ``x_size`` OUT entries; SRAM rows are dense."""
        call = "store_buffer_2d"
        if src_mem_type != Buffer.OUT:
            raise RuntimeCallError(
                f"{call}: src_mem_type = {src_mem_type}; only OUT ({int(Buffer.OUT)}) is stored"
            )
        dram_base = self._dram_base(
            call, dst, Buffer.OUT, dst_elem_offset, x_size, y_size, x_stride
        )
        shape = (src_sram_index, dram_base, y_size, x_size, x_stride, 0, 0, 0, 0)
        _check_fields(call, shape)
        self._check_sram(call, Buffer.OUT, src_sram_index, x_size, y_size)
        self._queue.store(shape)
        self._flush_if_full()

    def uop_push(
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
        """Add one micro-op to the kernel being recorded; mode 0 is GEMM, 1 is ALU."""
        self._recording("uop_push").push(
            mode, reset_out, dst_index, src_index, wgt_index, opcode, use_imm, imm_val
        )

    def uop_loop_begin(
        self, extent: int, dst_factor: int, src_factor: int, wgt_factor: int
    ) -> None:
        """Open a loop level of the kernel being recorded, before its first micro-op."""
        self._recording("uop_loop_begin").loop_begin(extent, dst_factor, src_factor, wgt_factor)

    def uop_loop_end(self) -> None:
        """Close the innermost open loop level."""
        self._recording("uop_loop_end").loop_end()

    def push_gemm_op(self, key: Hashable, record: Callable[["Runtime"], object]) -> None:
        """Append the GEMM whose kernel ``record(self)`` records; it is called once per key."""
        self._push_op("push_gemm_op", UopMode.GEMM, key, record)

    def push_alu_op(self, key: Hashable, record: Callable[["Runtime"], object]) -> None:
        """Append the ALU instruction whose kernel ``record(self)`` records, once per key."""
        self._push_op("push_alu_op", UopMode.ALU, key, record)

    def dep_push(self, from_stage: int, to_stage: int) -> None:
        """``from_stage`` (load 1, compute 2, store 3) gives ``to_stage`` a token when done."""
        self._queue.dep_push(from_stage, to_stage)
        self._flush_if_full()

    def dep_pop(self, from_stage: int, to_stage: int) -> None:
        """The next instruction of ``to_stage`` waits for a token of ``from_stage``."""
        self._queue.dep_pop(from_stage, to_stage)
        self._flush_if_full()

    def synchronize(self, wait_cycles: int = WAIT_CYCLES) -> Launch:
        """Launch what is queued, an empty queue too, and wait until it is done.

        More than ``wait_cycles`` cycles are an error. Tokens and SRAM contents stay in the device;
        the queue is empty afterwards, also when the launch failed.
        """
        self._check_owner("synchronize")
        self._check_machine()
        try:
            launch = self._launch(wait_cycles)
        except BaseException:
            self._drop_queue()
            raise
        self._queue.clear()
        self._loaded.clear()
        if not self._keep_uop_cache:
            self._cache.clear()
        return launch

    # Control

    def tls_command_handle(self) -> int:
        """This runtime's command handle, which C calls pass as ``cmd``."""
        return self._number

    def runtime_shutdown(self) -> None:
        """Drop the queue and give back the memory of instructions and micro-ops.

        Buffers stay allocated, recorded kernels stay known, and the runtime can be used again.
        """
        self._drop_queue()
        self._image.release()
        if self._insn_buffer is not None:
            self.buffers.free(self._insn_buffer.handle)
            self._insn_buffer = None

    def set_debug_mode(self, flags: int) -> None:
        """A sum of ``DebugFlag`` values, in force from the next launch on; 0 for none.

        FORCE_SERIAL goes on or off between programs: a program of several launches whose tokens
        only some of them use would lose its balance.
        """
        if flags & ~int(ALL_FLAGS):
            known = ", ".join(f"{flag.name} {int(flag)}" for flag in DebugFlag)
            raise RuntimeCallError(f"set_debug_mode: flags = {flags}; they are a sum of {known}")
        self._debug = DebugFlag(flags)

    def activate(self) -> Self:
        """For ``with runtime.activate():``, the same as ``with runtime:``.

        Inside, C calls of this thread go to this runtime. At the end the error they met, if any,
        is raised.
        """
        return self

    def __enter__(self) -> Self:
        current.enter(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        current.leave()
        if kind is None:
            self.check()

    def check(self) -> None:
        """Raise the first error that C calls to this runtime met since the last ``check``.

        An exception cannot travel through native code, so it is kept here, and later C calls do
        nothing. The half-made queue is dropped. C calls of this thread that found no runtime are
        reported too.
        """
        error, self._error = self._error, None
        error = error or current.take_error()
        if error is not None:
            self._drop_queue()
            raise error

    @property
    def failed(self) -> bool:
        """Whether a C call met an error that ``check`` has not raised yet."""
        return self._error is not None

    def keep_error(self, error: BaseException) -> None:
        """Remember the first error of a C call for ``check``."""
        if self._error is None:
            self._error = error

    def _drop_queue(self) -> None:
        """Forget what was queued, and with it which kernels it would have left in SRAM."""
        self._queue.clear()
        self._loaded.clear()
        self._cache.clear()

    def _push_op(
        self, call: str, mode: UopMode, key: Hashable, record: Callable[["Runtime"], object]
    ) -> None:
        if self._recorder is not None:
            raise RuntimeCallError(
                f"{call} inside a record function; push one kernel after the other"
            )
        kernel = self._kernel_of_key.get((mode, key))
        if kernel is None:
            recorder = KernelRecorder(call, self.machine, mode, portable=self.portable)
            self._recorder = recorder
            try:
                record(self)
            finally:
                self._recorder = None
            kernel = self._kernels.intern(recorder, self.machine)
            self._kernel_of_key[mode, key] = kernel
        placement, absent = self._cache.use(kernel.number, len(kernel))
        if absent:
            base = self._image.address(kernel) // UOP_BYTES
            size = len(kernel)
            self._queue.load(Buffer.UOP, (placement.begin, base, 1, size, size, 0, 0, 0, 0))
            self._loaded.append((kernel, placement))
        self._queue.compute(kernel, placement.begin)
        self._flush_if_full()

    def _recording(self, call: str) -> KernelRecorder:
        if self._recorder is None:
            raise RuntimeCallError(
                f"{call} outside a kernel; make it from the record function of push_gemm_op or "
                f"push_alu_op"
            )
        return self._recorder

    def _flush_if_full(self) -> None:
        if len(self._queue) > self._max_records:
            self.synchronize()

    def _launch(self, wait_cycles: int) -> Launch:
        if self._debug & DebugFlag.FORCE_SERIAL:
            self._queue.finish_serial()
        else:
            self._queue.finish()
        words = encode_stream(self._queue.records(self._kernels), self.machine)
        self._image.flush()
        address = self._place_instructions(words)
        self._dump(words)
        self.buffers.before_launch()
        if self._keep_streams:
            top = self.buffers.allocator.top
            dram = np.array(self.device.read(0, top)) if self._keep_memory else None
            self.streams.append(Stream(words, address, dram))
        launch = self.device.run(address, len(words))
        self.buffers.after_launch()
        self.launches.append(launch)
        if launch.cycles > wait_cycles:
            raise RuntimeCallError(
                f"synchronize: {len(words)} instructions took {launch.cycles} cycles, more than "
                f"wait_cycles = {wait_cycles}; wait longer or launch less at a time"
            )
        return launch

    def _place_instructions(self, words: NDArray[np.uint64]) -> int:
        """Write the stream into the device's memory; the buffer for it grows with the longest."""
        if self._insn_buffer is None or self._insn_buffer.size < words.nbytes:
            if self._insn_buffer is not None:
                self.buffers.free(self._insn_buffer.handle)
                self._insn_buffer = None
            size = 1 << (max(words.nbytes, _MIN_INSN_BYTES) - 1).bit_length()
            self._insn_buffer = self.buffers.alloc(size)
        data = words.astype("<u8", copy=False).reshape(-1).view(np.uint8)
        self.device.write(self._insn_buffer.address, data)
        return self._insn_buffer.address

    def _dump(self, words: NDArray[np.uint64]) -> None:
        out = sys.stderr if self._dump_to is None else self._dump_to
        if self._debug & DebugFlag.DUMP_UOP:
            out.write(format_kernels(self._loaded))
        if self._debug & DebugFlag.DUMP_INSN:
            out.write(format_stream(words, self.machine).rstrip("\n") + "\n")

    def _dram_base(
        self,
        call: str,
        handle: int,
        memory: Buffer,
        offset: int,
        x_size: int,
        y_size: int,
        x_stride: int,
    ) -> int:
        """The first entry of a 2-D access in DRAM, after checking that it stays in its buffer."""
        buffer = self.buffers.lookup(handle, call)
        entry_bytes = self._entry_bytes[memory]
        if x_size > 0 and y_size > 0:
            end = offset + (y_size - 1) * x_stride + x_size
            if offset < 0 or end * entry_bytes > buffer.size:
                raise RuntimeCallError(
                    f"{call}: {y_size} rows of {x_size} {memory.name} entries, {x_stride} apart, "
                    f"from entry {offset} end at entry {end}, but the buffer's {buffer.size} bytes "
                    f"hold {buffer.size // entry_bytes} of {entry_bytes} bytes"
                )
        return buffer.address // entry_bytes + offset

    def _check_sram(self, call: str, memory: Buffer, base: int, width: int, rows: int) -> None:
        depth = self._depth[memory]
        if base + width * rows > depth:
            raise RuntimeCallError(
                f"{call}: {rows} x {width} entries from entry {base} of {memory.name} end at "
                f"{base + width * rows}, past its {depth}; use a smaller tile"
            )

    def _check_region(
        self, call: str, handle: int, elem_bits: int, start: int, extent: int
    ) -> None:
        buffer = self.buffers.lookup(handle, call)
        if start < 0 or extent < 0 or (start + extent) * elem_bits > buffer.size * 8:
            raise RuntimeCallError(
                f"{call}: {extent} elements of {elem_bits} bits from element {start} do not lie "
                f"inside the buffer's {buffer.size} bytes"
            )

    def _check_machine(self) -> None:
        if self.device.machine.hash != self.machine.hash:
            raise RuntimeCallError(
                f"the device is machine {self.device.machine.name!r} "
                f"({self.device.machine.hash}), but the program was made for "
                f"{self.machine.name!r} ({self.machine.hash}); use the same description for both"
            )

    def _check_owner(self, call: str) -> None:
        if _LAST_RUNTIME.get(self.device) != self._number:
            raise RuntimeCallError(
                f"{call}: a newer Runtime has taken this device and its memory over; use one "
                f"runtime per device"
            )


def _check_fields(call: str, shape: tuple[int, ...]) -> None:
    for field, value in zip(_SHAPE_FIELDS, shape, strict=True):
        if not 0 <= value <= field.high:
            raise RuntimeCallError(f"{call}: {MEM.misfit(field.name, value)}")
