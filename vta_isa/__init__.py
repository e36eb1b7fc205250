"""The contract between software and machine: descriptions, instruction set, encodings, errors."""

from .assembly import format_stream, parse_stream
from .encoding import as_words, decode_stream, decode_uops, encode_stream, encode_uops
from .enums import AluOp, Buffer, FusedOp, LowKind, Opcode, Stage, TokenQueue
from .errors import (
    AssemblyError,
    CompileError,
    DeadlockError,
    EncodingError,
    MachineError,
    RuntimeCallError,
    ScheduleError,
    StreamError,
    VtaError,
    WorkloadError,
)
from .insn import (
    INSN_BYTES,
    INSN_DTYPE,
    UOP_BYTES,
    Layouts,
    alu,
    alu_operations,
    finish,
    gemm,
    layouts,
    load,
    noop,
    records,
    requantize,
    stages,
    store,
)
from .launch import Launch, Timeline
from .layout import Field, Layout, Reserved
from .machine import Machine, load_machine
from .presets import preset_folder, preset_names, preset_path
from .table import BitRow, bit_table
from .tensors import pack_entries, unpack_entries
from .version import __version__

__all__ = [
    "INSN_BYTES",
    "INSN_DTYPE",
    "UOP_BYTES",
    "AluOp",
    "AssemblyError",
    "BitRow",
    "Buffer",
    "CompileError",
    "DeadlockError",
    "EncodingError",
    "Field",
    "FusedOp",
    "Launch",
    "Layout",
    "Layouts",
    "LowKind",
    "Machine",
    "MachineError",
    "Opcode",
    "Reserved",
    "RuntimeCallError",
    "ScheduleError",
    "Stage",
    "StreamError",
    "Timeline",
    "TokenQueue",
    "VtaError",
    "WorkloadError",
    "__version__",
    "alu",
    "alu_operations",
    "as_words",
    "bit_table",
    "decode_stream",
    "decode_uops",
    "encode_stream",
    "encode_uops",
    "finish",
    "format_stream",
    "gemm",
    "layouts",
    "load",
    "load_machine",
    "noop",
    "pack_entries",
    "parse_stream",
    "preset_folder",
    "preset_names",
    "preset_path",
    "records",
    "requantize",
    "stages",
    "store",
    "unpack_entries",
]
