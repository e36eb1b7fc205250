"""How the scalar types of the IR are spelled in LLVM IR."""

from __future__ import annotations

import struct

import numpy as np

from vta_isa import CompileError

from ..ir.arithmetic import DTYPES, is_float


def value_type(dtype: str) -> str:
    """Of a value in a register."""
    if dtype not in DTYPES:
        raise CompileError(f"codegen: no machine type for {dtype!r}; known are {', '.join(DTYPES)}")
    if dtype == "bool":
        return "i1"
    if is_float(dtype):
        return "float" if dtype == "float32" else "double"
    return f"i{np.dtype(dtype).itemsize * 8}"


def memory_type(dtype: str) -> str:
    """Of an element of a buffer: a bool takes a byte there, as in NumPy."""
    return "i8" if dtype == "bool" else value_type(dtype)


def is_signed(dtype: str) -> bool:
    return dtype.startswith("int")


def literal(value: int | float, dtype: str) -> str:
    """A constant; floats as the bits of a double, which LLVM reads exactly."""
    if is_float(dtype):
        number = float(np.float32(value)) if dtype == "float32" else float(value)
        return f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}"
    if dtype == "bool":
        return "true" if value else "false"
    return str(int(value))


def element_bytes(dtype: str) -> int:
    return np.dtype(dtype).itemsize
