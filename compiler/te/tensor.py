"""Tensors: placeholders for data that is given, and computations from other tensors."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NoReturn

from ..ir.arithmetic import Scalar, greatest, least
from ..ir.nodes import INDEX, BinaryOp, Buffer, Const, Expr, Load, Var
from ..ir.visit import variables, walk
from .errors import TensorError
from .value import Value, known_dtype


class ReduceAxis(Value):
    """An index that a reduction runs over; ``reduce_axis`` makes one."""

    def __init__(self, extent: int, name: str):
        self.var = Var(name)
        self.extent = extent
        super().__init__(self.var)

    @property
    def name(self) -> str:
        """Of the loop it becomes."""
        return self.var.name


@dataclass(frozen=True)
class Reduction:
    """``combine`` over all values of ``value``; only as the whole body of a compute."""

    name: str  # sum, min or max
    combine: BinaryOp
    initial: Scalar
    value: Value
    axes: tuple[ReduceAxis, ...]

    def _refuse(self, *_: object) -> NoReturn:
        raise TensorError(
            f"{self.name} of {self.value}: keep a reduction the whole body of its compute and "
            "use the result in another compute"
        )

    astype = __neg__ = __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _refuse
    __floordiv__ = __mod__ = __truediv__ = __rshift__ = __lshift__ = __lt__ = __gt__ = _refuse


@dataclass(frozen=True)
class Definition:
    """How a tensor is computed: one value per point of its axes."""

    axes: tuple[Var, ...]
    value: Expr
    reduction: Reduction | None
    inputs: tuple[Tensor, ...]


class Tensor:
    """An array with a name; ``definition`` is None for a placeholder."""

    def __init__(
        self,
        name: str,
        shape: tuple[int, ...],
        dtype: str,
        axes: tuple[str, ...],
        definition: Definition | None = None,
    ):
        self.name = name
        self.shape = shape
        self.dtype = dtype
        self.axes = axes
        self.definition = definition

    @property
    def buffer(self) -> Buffer:
        """The tensor as a buffer in DRAM."""
        return Buffer(self.name, self.shape, self.dtype)

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The tensors it is computed from; none if it is a placeholder."""
        return () if self.definition is None else self.definition.inputs

    def __getitem__(self, indices: Value | int | tuple[Value | int, ...]) -> Value:
        given = indices if isinstance(indices, tuple) else (indices,)
        if len(given) != len(self.shape):
            raise TensorError(
                f"{self.name} has {len(self.shape)} axes ({', '.join(self.axes)}) and is given "
                f"{len(given)} indices"
            )
        tensors: frozenset[Tensor] = frozenset({self})
        exprs: list[Expr] = []
        for axis, size, index in zip(self.axes, self.shape, given, strict=True):
            exprs.append(self._index(axis, size, index))
            if isinstance(index, Value):
                tensors |= index.tensors
        return Value(Load(self.buffer, tuple(exprs)), tensors)

    def _index(self, axis: str, size: int, index: object) -> Expr:
        where = f"{self.name}[..{axis}..]"
        if isinstance(index, Value):
            if index.dtype != INDEX:
                raise TensorError(
                    f"{where}: index {index} is {index.dtype}; an index is {INDEX}, "
                    f"cast it with .astype({INDEX!r})"
                )
            return index.expr
        if isinstance(index, bool) or not isinstance(index, int):
            raise TensorError(f"{where}: index {index!r} is no integer value")
        if not 0 <= index < size:
            raise TensorError(f"{where}: index {index} is outside 0..{size - 1}")
        return Const(index)

    def __repr__(self) -> str:
        return f"Tensor({self.name}: {self.dtype}{list(self.shape)})"


def placeholder(
    shape: Sequence[int], dtype: str, name: str, axes: Sequence[str] | None = None
) -> Tensor:
    """A tensor whose contents the caller provides."""
    size = _shape(shape, name)
    _identifier(name, "placeholder")
    known_dtype(dtype, f"placeholder {name}")
    return Tensor(name, size, dtype, _axis_names(name, len(size), axes, None))


def reduce_axis(extent: int, name: str) -> ReduceAxis:
    """An index from 0 to ``extent - 1`` for a reduction."""
    _identifier(name, "reduce_axis")
    if isinstance(extent, bool) or not isinstance(extent, int) or extent < 1:
        raise TensorError(f"reduce_axis {name}: extent {extent!r} is not an integer of at least 1")
    return ReduceAxis(extent, name)


def compute(
    shape: Sequence[int],
    fn: Callable[..., Value | Reduction],
    name: str,
    axes: Sequence[str] | None = None,
) -> Tensor:
    """A tensor whose element at ``(i, j, ...)`` is ``fn(i, j, ...)``.

    Axes are named after the parameters of ``fn``, or ``ax0, ax1, ...`` where it takes ``*args``,
    unless ``axes`` names them.
    """
    size = _shape(shape, name)
    _identifier(name, "compute")
    names = _axis_names(name, len(size), axes, fn)
    spatial = tuple(Var(axis) for axis in names)
    result = fn(*(Value(var) for var in spatial))
    if isinstance(result, Reduction):
        value, reduction = result.value, result
        for axis in result.axes:
            if axis.name in names:
                raise TensorError(f"{name}: reduction axis {axis.name} is also an axis of {name}")
    elif isinstance(result, Value):
        value, reduction = result, None
    else:
        raise TensorError(
            f"{name}: the function gave {result!r}; it must give a scalar value, "
            "te.const(...) for a constant"
        )
    met = {n.buffer.name: i for i, n in enumerate(_loads_from_last(value.expr))}
    inputs = tuple(sorted(value.tensors, key=lambda t: -met[t.name]))
    definition = Definition(spatial, value.expr, reduction, inputs)
    _check_variables(name, definition)
    return Tensor(name, size, value.dtype, names, definition)


def sum(value: Value, axis: ReduceAxis | Sequence[ReduceAxis]) -> Reduction:
    """The sum of ``value`` over the axes, in its own type."""
    return _reduction("sum", BinaryOp.ADD, value, axis)


def min(value: Value, axis: ReduceAxis | Sequence[ReduceAxis]) -> Reduction:
    """The smallest ``value`` over the axes."""
    return _reduction("min", BinaryOp.MIN, value, axis)


def max(value: Value, axis: ReduceAxis | Sequence[ReduceAxis]) -> Reduction:
    """The largest ``value`` over the axes."""
    return _reduction("max", BinaryOp.MAX, value, axis)


def topological(outputs: Iterable[Tensor]) -> list[Tensor]:
    """Every tensor the outputs need and the outputs, each after its inputs; names are unique."""
    order: list[Tensor] = []
    named: dict[str, Tensor] = {}

    def visit(tensor: Tensor) -> None:
        known = named.get(tensor.name)
        if known is tensor:
            return
        if known is not None:
            raise TensorError(f"two tensors are named {tensor.name}; give them different names")
        named[tensor.name] = tensor
        for operand in tensor.inputs:
            visit(operand)
        order.append(tensor)

    for output in outputs:
        visit(output)
    return order


def _reduction(
    name: str, combine: BinaryOp, value: Value, axis: ReduceAxis | Sequence[ReduceAxis]
) -> Reduction:
    axes = (axis,) if isinstance(axis, ReduceAxis) else tuple(axis)
    if not isinstance(value, Value):
        raise TensorError(f"{name}: {value!r} is no scalar value; a reduction of one is two stages")
    if not axes or not all(isinstance(a, ReduceAxis) for a in axes):
        raise TensorError(f"{name} of {value}: axis must be one reduce_axis or several")
    names = [a.name for a in axes]
    if len(set(names)) < len(names):
        raise TensorError(f"{name} of {value}: two reduction axes have one name ({names})")
    if value.dtype == "bool":
        raise TensorError(f"{name} of {value}: bool cannot be reduced; cast it to an integer type")
    initial = {"sum": 0, "min": greatest(value.dtype), "max": least(value.dtype)}[name]
    return Reduction(name, combine, initial, value, axes)


def _loads_from_last(value: Expr) -> list[Load]:
    return [n for n in walk(value) if isinstance(n, Load)][::-1]


def _check_variables(name: str, definition: Definition) -> None:
    """Every index used is an axis of the tensor or of its reduction."""
    reduction = definition.reduction
    allowed = {*definition.axes, *(a.var for a in (reduction.axes if reduction else ()))}
    foreign = sorted(v.name for v in variables(definition.value) - allowed)
    if foreign:
        raise TensorError(
            f"{name}: {', '.join(foreign)} is neither an axis of {name} nor reduced over; "
            "name it in the axis argument of te.sum"
        )


def _shape(shape: Sequence[int], name: str) -> tuple[int, ...]:
    size = tuple(shape)
    for extent in size:
        if isinstance(extent, bool) or not isinstance(extent, int) or extent < 1:
            raise TensorError(f"{name}: shape {size} has {extent!r}; extents are integers from 1")
    if not size:
        raise TensorError(f"{name}: a tensor has at least one axis; use shape (1,) for a scalar")
    return size


def _identifier(name: str, what: str) -> str:
    if not name.isidentifier():
        raise TensorError(f"{what}: {name!r} is no name; use letters, digits and underscores")
    return name


def _axis_names(
    name: str, rank: int, axes: Sequence[str] | None, fn: Callable[..., object] | None
) -> tuple[str, ...]:
    if axes is None and fn is not None:
        parameters = inspect.signature(fn).parameters.values()
        if all(p.kind is p.POSITIONAL_OR_KEYWORD for p in parameters):
            axes = [p.name for p in parameters]
    if axes is None:
        return tuple(f"ax{i}" for i in range(rank))
    if len(axes) != rank:
        raise TensorError(
            f"{name}: {len(axes)} axes ({', '.join(axes)}) for a shape of rank {rank}"
        )
    if len(set(axes)) < rank:
        raise TensorError(f"{name}: axis names {', '.join(axes)} are not all different")
    return tuple(_identifier(axis, f"axis of {name}") for axis in axes)
