"""Spell machine statements as calls of the runtime."""

from __future__ import annotations

from dataclasses import replace

from vta_isa import Buffer as Memory
from vta_runtime.uops import Before

from ..ir.build import const, seq
from ..ir.nodes import (
    COMMAND,
    Alloc,
    Buffer,
    Call,
    Coproc,
    DepPop,
    DepPush,
    DmaLoad,
    DmaStore,
    Expr,
    Program,
    Scope,
    Stmt,
    Synchronize,
    UopKernel,
    UopLoop,
    UopPush,
)
from ..ir.visit import map_program, map_stmt
from .accesses import MEMORY_OF

WAIT_CYCLES = 1 << 31  # how long to wait for the accelerator: as the published compiler does


def emit_calls(program: Program) -> Program:
    """Replace what only the accelerator does by calls of the runtime, under their C names.

        coproc load:                           VTADepPop(cmd, 2, 1)
          pop compute -> load             →    VTALoadBuffer2D(cmd, A, k * 8, 8, 1, 8, 0, ..., 2)
          dma inp.sram[0] <- A[k * 8] ...

    Micro-op kernels stay, with recording calls as their body: the code generator turns each into
    ``VTAPushGEMMOp`` or ``VTAPushALUOp`` with the body as a function of its own. Scratchpad
    allocations have become numbers and go.
    """
    return map_program(program, lambda body: map_stmt(body, _call))


def _call(stmt: Stmt) -> Stmt:
    match stmt:
        case Alloc(buffer, body) if buffer.scope is not Scope.GLOBAL:
            return body
        case Coproc(_, body):
            return body
        case DmaLoad():
            return _load(stmt)
        case DmaStore():
            sram = (stmt.sram_index, const(Memory.OUT))
            size = (stmt.x_size, stmt.y_size, stmt.x_stride)
            return _queue("VTAStoreBuffer2D", *sram, stmt.dram, stmt.dram_offset, *size)
        case DepPush(producer, consumer):
            return _queue("VTADepPush", const(producer), const(consumer))
        case DepPop(producer, consumer):
            return _queue("VTADepPop", const(producer), const(consumer))
        case Synchronize():
            return _queue("VTASynchronize", const(WAIT_CYCLES))
        case UopKernel():
            return _kernel(stmt)
        case UopPush():
            return _uop(stmt)
    return stmt


def _queue(name: str, *args: Expr | Buffer) -> Call:
    return Call(name, (COMMAND, *args))


def _load(load: DmaLoad) -> Call:
    memory = Memory.ACC_8BIT if load.widen else MEMORY_OF[load.sram.scope]
    size = (load.x_size, load.y_size, load.x_stride)
    # The pads go before the tile, x then y, and after it: the order of the published call.
    pads = (load.x_pad[0], load.y_pad[0], load.x_pad[1], load.y_pad[1])
    sram = (load.sram_index, const(memory))
    return _queue("VTALoadBuffer2D", load.dram, load.dram_offset, *size, *pads, *sram)


def _kernel(kernel: UopKernel) -> UopKernel:
    begins = [
        Call("VTAUopLoopBegin", tuple(map(const, (level.extent, *_factors(level)))))
        for level in kernel.loops
    ]
    ends = [Call("VTAUopLoopEnd", ()) for _ in kernel.loops]
    return replace(kernel, loops=(), body=seq([*begins, kernel.body, *ends]))


def _factors(level: UopLoop) -> tuple[int, int, int]:
    return level.dst_factor, level.src_factor, level.wgt_factor


def _uop(push: UopPush) -> Call:
    emit = push.emit
    mode = 0 if emit.mode == "gemm" else 1
    opcode = 0 if emit.alu_op is None else int(emit.alu_op)
    number = emit.fused.packed if emit.fused is not None else emit.imm or 0
    operation = (const(opcode), const(int(emit.imm is not None)), const(number))
    before = Before.RESET if emit.reset else Before.OVERWRITE if emit.overwrite else Before.ADD
    return Call(
        "VTAUopPush",
        (const(mode), const(int(before)), push.dst, push.src, push.wgt, *operation),
    )
