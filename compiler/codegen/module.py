"""A lowered program as the text of an LLVM module."""

from __future__ import annotations

from ..ir.nodes import COMMAND, Program
from .expressions import ERROR_FLAG
from .statements import Scope, Statements, calls_runtime, device_buffers, host_buffers
from .writer import FunctionWriter, ModuleWriter

ENTRY = "vta.run"
"""``i32 (ptr, ptr, ...)``: one argument per parameter, the result is the error flag."""


def emit_llvm(program: Program) -> str:
    """LLVM IR for ``program``, which must hold host statements, calls and recorded kernels only.

    Buffers that the accelerator touches are passed as handles of the runtime, the others as
    addresses. Parameters must not overlap.
    """
    module = ModuleWriter()
    module.parts.append(f"{ERROR_FLAG} = internal global i32 0")
    params = [f"ptr noalias %p{i}" for i in range(len(program.params))]
    out = FunctionWriter(module, f"define i32 @{ENTRY}({', '.join(params)})")
    out.do(f"store i32 0, ptr {ERROR_FLAG}")
    scope = Scope()
    code = Statements(out, scope)
    on_device, on_host = device_buffers(program.body), host_buffers(program.body)
    if calls_runtime(program.body):
        scope.variables[COMMAND.name] = code.runtime("VTATLSCommandHandle", [])
    for i, buffer in enumerate(program.params):
        scope.handles[buffer.name] = f"%p{i}"
        if buffer.name not in on_device:
            scope.pointers[buffer.name] = f"%p{i}"
        elif buffer.name in on_host:
            scope.pointers[buffer.name] = code.cpu_pointer(f"%p{i}")
    code.statement(program.body)
    out.finish(f"i32 {out.let(f'load i32, ptr {ERROR_FLAG}')}")
    return module.text()
