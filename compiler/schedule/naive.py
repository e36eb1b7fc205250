"""The program a schedule starts from: one nest per tensor, in the order of the expressions."""

from __future__ import annotations

from collections.abc import Sequence

from vta_isa.errors import ScheduleError

from ..ir.arithmetic import convert
from ..ir.build import binary, block
from ..ir.nodes import Const, Expr, For, Load, Produce, Program, Stmt, Store, Var
from ..ir.visit import substitute
from ..te import Tensor, topological

INIT = ".init"  # ends the name of the nest that gives a reduction its initial value


def naive_program(outputs: Sequence[Tensor], inputs: Sequence[Tensor] | None = None) -> Program:
    """The expressions behind ``outputs`` as a program over ``inputs`` (default: as they are met).

    y = compute(x + 1), z = compute(sum of y)  →  alloc y; produce y; produce z.init; produce z
    """
    if not outputs:
        raise ScheduleError("create_schedule: no output tensor given")
    order = topological(outputs)
    given = [t for t in order if t.definition is None]
    for tensor in outputs:
        if tensor.definition is None:
            raise ScheduleError(f"create_schedule: output {tensor.name} is a placeholder")
    if inputs is not None:
        missing = sorted({t.name for t in given} - {t.name for t in inputs})
        if missing:
            raise ScheduleError(f"create_schedule: inputs lacks {', '.join(missing)}")
        given = list(inputs)
    computed = [t for t in order if t.definition is not None]
    inner = [t.buffer for t in computed if t not in outputs]
    nests = [nest for tensor in computed for nest in naive_nests(tensor)]
    results = tuple(t.buffer for t in outputs)
    params = (*(t.buffer for t in given), *results)
    return Program(outputs[0].name, params, block(inner, nests), results)


def naive_nests(tensor: Tensor) -> list[Produce]:
    """The nest that computes ``tensor``; before it, for a reduction, the nest of initial values."""
    definition = tensor.definition
    assert definition is not None
    reduction = definition.reduction
    if reduction is None:
        return [_nest(tensor, tensor.name, definition.value, ())]
    initial = Const(convert(reduction.initial, tensor.dtype), tensor.dtype)
    so_far = Load(tensor.buffer, definition.axes)
    update = binary(reduction.combine, so_far, definition.value)
    extents = tuple((axis.var, axis.extent) for axis in reduction.axes)
    return [
        _nest(tensor, tensor.name + INIT, initial, ()),
        _nest(tensor, tensor.name, update, extents),
    ]


def _nest(tensor: Tensor, stage: str, value: Expr, reduced: Sequence[tuple[Var, int]]) -> Produce:
    assert tensor.definition is not None
    axes = tensor.definition.axes
    body: Stmt = Store(tensor.buffer, axes, value)
    extents = [*zip(axes, tensor.shape, strict=True), *reduced]
    names = {var: Var(f"{stage}.{var.name}") for var, _ in extents}
    body = substitute(body, names)
    for var, extent in reversed(extents):
        body = For(names[var], extent, body)
    return Produce(stage, body)
