"""The table of entry points: C name, Python method, arguments, result, one sentence each.

This is the one place where the runtime's C contract is written. ``abi`` builds C function
pointers from it, the compiler declares its external functions from it, and the methods of
``Runtime`` carry the names in its ``method`` column with the same arguments less ``cmd``.
"""

import ctypes
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

CType: TypeAlias = Any  # a ctypes scalar class, or None for a function without a result

HANDLE = ctypes.c_void_p  # command handles, buffer handles and raw pointers alike
U32 = ctypes.c_uint32
INT = ctypes.c_int
SIZE = ctypes.c_size_t


@dataclass(frozen=True)
class Call:
    """One entry point of the runtime.

    ``arguments`` are (name, ctypes type) in the order of the C call. Of an entry point that queues
    instructions the first is ``cmd``, the calling thread's command handle.
    """

    c_name: str
    method: str
    arguments: tuple[tuple[str, CType], ...]
    result: CType
    doc: str

    @property
    def takes_command(self) -> bool:
        """Whether the first argument is the command handle, which Python methods do not have."""
        return bool(self.arguments) and self.arguments[0][0] == "cmd"


_CMD = ("cmd", HANDLE)
_RECORD = (("handle", HANDLE), ("finit", HANDLE), ("signature", HANDLE), ("nbytes", INT))
_REGION = (_CMD, ("buffer", HANDLE), ("elem_bits", U32), ("start", U32), ("extent", U32))
_EDGE = (_CMD, ("from_stage", INT), ("to_stage", INT))

_TABLE = (
    Call(
        "VTABufferAlloc",
        "buffer_alloc",
        (("size", SIZE),),
        HANDLE,
        "Allocate `size` bytes of physically contiguous device memory; the result is a handle.",
    ),
    Call(
        "VTABufferFree",
        "buffer_free",
        (("buffer", HANDLE),),
        None,
        "Give the memory behind a handle back.",
    ),
    Call(
        "VTABufferCopy",
        "buffer_copy",
        (
            ("source", HANDLE),
            ("source_offset", SIZE),
            ("target", HANDLE),
            ("target_offset", SIZE),
            ("size", SIZE),
            ("kind", INT),
        ),
        None,
        "Copy bytes; kind 1 is host to device, 2 device to host, 3 device to device.",
    ),
    Call(
        "VTATLSCommandHandle",
        "tls_command_handle",
        (),
        HANDLE,
        "The command handle of the calling thread's current runtime.",
    ),
    Call(
        "VTARuntimeShutdown",
        "runtime_shutdown",
        (),
        None,
        "Drop the queued instructions, the kernels and the memory that holds them.",
    ),
    Call(
        "VTABufferCPUPtr",
        "buffer_cpu_ptr",
        (_CMD, ("buffer", HANDLE)),
        HANDLE,
        "The address at which the CPU sees a buffer; a pointer that is no handle comes back as is.",
    ),
    Call(
        "VTAWriteBarrier",
        "write_barrier",
        _REGION,
        None,
        "Make a region the device wrote visible to the CPU; coherent memory, so only checked.",
    ),
    Call(
        "VTAReadBarrier",
        "read_barrier",
        _REGION,
        None,
        "Make a region the CPU wrote visible to the device; coherent memory, so only checked.",
    ),
    Call(
        "VTASetDebugMode",
        "set_debug_mode",
        (_CMD, ("flags", INT)),
        None,
        "Choose dumps and serial execution: a sum of the values of DebugFlag.",
    ),
    Call(
        "VTALoadBuffer2D",
        "load_buffer_2d",
        (
            _CMD,
            ("src", HANDLE),
            ("src_elem_offset", U32),
            ("x_size", U32),
            ("y_size", U32),
            ("x_stride", U32),
            ("x_pad_before", U32),
            ("y_pad_before", U32),
            ("x_pad_after", U32),
            ("y_pad_after", U32),
            ("dst_sram_index", U32),
            ("dst_mem_type", U32),
        ),
        None,
        "Append a LOAD of a padded 2-D tile; everything is counted in elements of the SRAM.",
    ),
    Call(
        "VTAStoreBuffer2D",
        "store_buffer_2d",
        (
            _CMD,
            ("src_sram_index", U32),
            ("src_mem_type", U32),
            ("dst", HANDLE),
            ("dst_elem_offset", U32),
            ("x_size", U32),
            ("y_size", U32),
            ("x_stride", U32),
        ),
        None,
        "Append a STORE of a 2-D tile from the OUT memory (src_mem_type 4).",
    ),
    Call(
        "VTAUopPush",
        "uop_push",
        (
            ("mode", U32),
            ("reset_out", U32),
            ("dst_index", U32),
            ("src_index", U32),
            ("wgt_index", U32),
            ("opcode", U32),
            ("use_imm", U32),
            ("imm_val", ctypes.c_int32),
        ),
        None,
        "Add one micro-op to the kernel being recorded; mode 0 is GEMM, 1 is ALU. With extensions "
        "reset_out 2 overwrites and opcode 5 is REQUANTIZE, its settings packed into imm_val.",
    ),
    Call(
        "VTAUopLoopBegin",
        "uop_loop_begin",
        (("extent", U32), ("dst_factor", U32), ("src_factor", U32), ("wgt_factor", U32)),
        None,
        "Open a loop level, of at most two, of the kernel being recorded.",
    ),
    Call(
        "VTAUopLoopEnd",
        "uop_loop_end",
        (),
        None,
        "Close the innermost open loop level.",
    ),
    Call(
        "VTAPushGEMMOp",
        "push_gemm_op",
        _RECORD,
        INT,
        "Record a GEMM kernel by calling int finit(void *signature), once per key; append a GEMM.",
    ),
    Call(
        "VTAPushALUOp",
        "push_alu_op",
        _RECORD,
        INT,
        "Record an ALU kernel by calling int finit(void *signature), once per key; append an ALU.",
    ),
    Call(
        "VTADepPush",
        "dep_push",
        _EDGE,
        None,
        "The stage `from_stage` (load 1, compute 2, store 3) gives `to_stage` a token.",
    ),
    Call(
        "VTADepPop",
        "dep_pop",
        _EDGE,
        None,
        "The next instruction of `to_stage` waits for a token of `from_stage`.",
    ),
    Call(
        "VTASynchronize",
        "synchronize",
        (_CMD, ("wait_cycles", U32)),
        None,
        "Run everything queued and wait for it, at most `wait_cycles` cycles.",
    ),
)

CALLS = MappingProxyType({call.c_name: call for call in _TABLE})
"""C name -> ``Call``, in the order in which the contract lists them."""
