"""The operations of the accelerator: what each means, as a tensor expression, and its micro-op."""

from __future__ import annotations

from dataclasses import replace

from vta_isa.enums import AluOp, FusedOp
from vta_isa.enums import Buffer as Memory
from vta_isa.errors import ScheduleError
from vta_isa.machine import Machine
from vta_runtime.requantize import Requantize

from . import te
from .ir.build import seq
from .ir.nodes import Buffer, Emit, Intrinsic, Produce, Scope, Stmt, Var
from .ir.visit import loops, rename_loops, replace_buffers
from .schedule.naive import naive_nests

IMMEDIATES = (-(1 << 15), (1 << 15) - 1)
"""The smallest and the largest constant of an ALU instruction."""

_MEMORIES = {Scope.INP: Memory.INP, Scope.WGT: Memory.WGT, Scope.ACC: Memory.ACC}


def gemm(machine: Machine) -> Intrinsic:
    """``acc[b, o] += sum over k of inp[b, k] * wgt[o, k]`` on one entry of each scratchpad."""
    tensor, sources = _product(machine)
    _, update = naive_nests(tensor)
    formals = (_formal(machine, tensor, Scope.ACC), *sources)
    return _intrinsic("gemm", formals, update, Emit("gemm"))


def gemm_reset(machine: Machine) -> Intrinsic:
    """``acc[b, o] = 0``, the value a GEMM starts from."""
    tensor, _ = _product(machine)
    initial, _ = naive_nests(tensor)
    formals = (_formal(machine, tensor, Scope.ACC),)
    return _intrinsic("gemm_reset", formals, initial, Emit("gemm", reset=True))


def gemm_overwrite(machine: Machine) -> Intrinsic:
    """``acc[b, o] = sum over k of inp[b, k] * wgt[o, k]``: a reset and a GEMM, in one extension."""
    reset, product = gemm_reset(machine), gemm(machine)
    acc, *sources = product.formals
    zeroed = rename_loops(reset.body, {n.var: Var(f"{n.var.name}.0") for n in loops(reset.body)})
    body: Stmt = seq([replace_buffers(zeroed, {reset.formals[0].name: acc}), product.body])
    return Intrinsic("gemm_overwrite", (acc, *sources), body, Emit("gemm", overwrite=True))


def requantize(machine: Machine, how: Requantize, *, biased: bool) -> Intrinsic:
    """``dst[b, o] = min(max((x[b, o] + bias[b, o]) >> shift, low), high)``, an extension.

    Without ``biased`` there is no bias. Works in place like any ALU operation.
    """
    shape, dtype = machine.entry_shape(Memory.ACC), str(machine.dtype(Memory.ACC))
    x = te.placeholder(shape, dtype, "x", axes=("b", "o"))
    bias = te.placeholder(shape, dtype, "bias", axes=("b", "o"))
    dst = te.compute(
        shape, lambda b, o: requantized(x[b, o] + bias[b, o] if biased else x[b, o], how), "dst"
    )
    (nest,) = naive_nests(dst)
    sources = (x, bias) if biased else (x,)
    formals = tuple(_formal(machine, tensor, Scope.ACC) for tensor in (dst, *sources))
    imm = None if biased else 0
    emit = Emit("alu", alu_op=FusedOp.REQUANTIZE, imm=imm, fused=how)
    return _intrinsic("alu_requantize", formals, nest, emit)


def requantized(total: te.Value, how: Requantize) -> te.Value:
    """What a REQUANTIZE makes of an accumulator to which the bias has been added."""
    low, high = how.bounds
    return te.minimum(te.maximum(total >> how.shift, low), high)


def alu(machine: Machine, op: AluOp | str, imm: int | None = None) -> Intrinsic:
    """``dst[b, o] = x[b, o] op y[b, o]``, or ``op imm``, on entries of the accumulator memory.

    ``shr`` by a negative ``imm`` shifts left. The machine works in place: ``x`` has to end up in
    the memory of ``dst``.
    """
    operation = _operation(op)
    shape, dtype = machine.entry_shape(Memory.ACC), str(machine.dtype(Memory.ACC))
    x = te.placeholder(shape, dtype, "x", axes=("b", "o"))
    y = te.placeholder(shape, dtype, "y", axes=("b", "o"))
    name = f"alu_{operation.name.lower()}"
    if imm is None:
        dst = te.compute(shape, lambda b, o: _apply(operation, x[b, o], y[b, o]), "dst")
        sources: tuple[te.Tensor, ...] = (x, y)
    else:
        _check_immediate(name, operation, imm, dtype)
        dst = te.compute(shape, lambda b, o: _apply(operation, x[b, o], imm), "dst")
        sources = (x,)
    (nest,) = naive_nests(dst)
    formals = tuple(_formal(machine, tensor, Scope.ACC) for tensor in (dst, *sources))
    return _intrinsic(name, formals, nest, Emit("alu", alu_op=operation, imm=imm))


def _product(machine: Machine) -> tuple[te.Tensor, tuple[Buffer, Buffer]]:
    """The one statement of what GEMM and its reset compute; and the two operands it reads."""
    acc_type = str(machine.dtype(Memory.ACC))
    inp = te.placeholder(
        machine.entry_shape(Memory.INP), str(machine.dtype(Memory.INP)), "inp", axes=("b", "k")
    )
    wgt = te.placeholder(
        machine.entry_shape(Memory.WGT), str(machine.dtype(Memory.WGT)), "wgt", axes=("o", "k")
    )
    k = te.reduce_axis(machine.gemm.block_in, "k")
    acc = te.compute(
        machine.entry_shape(Memory.ACC),
        lambda b, o: te.sum(inp[b, k].astype(acc_type) * wgt[o, k].astype(acc_type), axis=k),
        "acc",
    )
    return acc, (_formal(machine, inp, Scope.INP), _formal(machine, wgt, Scope.WGT))


def _apply(op: AluOp, x: te.Value, y: te.Value | int) -> te.Value:
    match op:
        case AluOp.MIN:
            return te.minimum(x, y)
        case AluOp.MAX:
            return te.maximum(x, y)
        case AluOp.ADD:
            return x + y
        case AluOp.SHR:
            return x >> y
        case AluOp.MUL:
            return x * y


def _operation(op: AluOp | str) -> AluOp:
    if isinstance(op, AluOp):
        return op
    try:
        return AluOp[op.upper()]
    except KeyError:
        names = ", ".join(o.name.lower() for o in AluOp)
        raise ScheduleError(f"alu: no operation {op!r}; there are {names}") from None


def _check_immediate(name: str, op: AluOp, imm: int, dtype: str) -> None:
    low, high = IMMEDIATES
    if op is AluOp.SHR:
        bits = int(dtype.removeprefix("int"))
        low, high = max(low, 1 - bits), min(high, bits - 1)
    if isinstance(imm, bool) or not isinstance(imm, int) or not low <= imm <= high:
        raise ScheduleError(
            f"{name}: immediate {imm!r} is outside {low}..{high}; "
            "a larger operand has to come from a tensor"
        )


def _formal(machine: Machine, tensor: te.Tensor, scope: Scope) -> Buffer:
    assert tensor.shape == machine.entry_shape(_MEMORIES[scope])
    return replace(tensor.buffer, scope=scope)


def _intrinsic(name: str, formals: tuple[Buffer, ...], nest: Produce, emit: Emit) -> Intrinsic:
    """The nest over ``formals``, its loops without the stage's name in front."""
    body = replace_buffers(nest.body, {formal.name: formal for formal in formals})
    names = {loop.var: Var(loop.var.name.rpartition(".")[2]) for loop in loops(body)}
    return Intrinsic(name, formals, rename_loops(body, names), emit)
