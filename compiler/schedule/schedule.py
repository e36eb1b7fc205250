"""Schedule: a program, how it came about, and the primitives that change it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ..ir.nodes import Intrinsic, Program
from ..ir.printer import to_text
from ..te import Tensor, topological
from . import (
    annotate,
    cache_read,
    cache_write,
    compute_at,
    compute_inline,
    fuse,
    parallel,
    rename,
    reorder,
    set_scope,
    split,
    tensorize,
    tile,
    unroll,
    vectorize,
    vthread,
)
from .naive import naive_program
from .nests import find_buffer, find_stage, short_name, stage_loops, stage_names

Stage: TypeAlias = str | Tensor


@dataclass(frozen=True)
class Step:
    """One primitive applied: enough to apply it again."""

    primitive: str
    args: tuple[object, ...]
    options: tuple[tuple[str, object], ...] = ()

    def __str__(self) -> str:
        words = [_literal(arg) for arg in self.args]
        words += [f"{name}={_literal(value)}" for name, value in self.options]
        return f"s.{self.primitive}({', '.join(words)})"


class Schedule:
    """The current ``program`` and the ``steps`` that led to it from the naive one.

    A loop is named by its stage and its short name: ``("conv", "ci_o")`` is the loop ``conv.ci_o``.
    The initial values of a reduction are a stage of their own, ``conv.init``. A primitive that
    cannot be applied raises ``ScheduleError`` and changes nothing.
    """

    def __init__(self, program: Program, axes: Mapping[str, Sequence[str]] | None = None):
        self.program = program
        self.steps: list[Step] = []
        self._axes = {name: tuple(names) for name, names in (axes or {}).items()}

    # -- questions ----------------------------------------------------------------------------

    def stages(self) -> list[str]:
        """The names of the nests, in the order they begin."""
        return stage_names(self.program)

    def loops(self, stage: Stage) -> list[str]:
        """The short names of a stage's own loops, outer ones first."""
        name = _name(stage)
        return [short_name(name, loop.var) for loop in stage_loops(find_stage(self.program, name))]

    def extents(self, stage: Stage) -> dict[str, int]:
        """The extent of each of a stage's own loops."""
        name = _name(stage)
        nest = stage_loops(find_stage(self.program, name))
        return {short_name(name, loop.var): loop.extent for loop in nest}

    def __str__(self) -> str:
        return to_text(self.program)

    def trace(self) -> str:
        """The steps so far as Python calls, one per line."""
        return "\n".join(map(str, self.steps))

    def replay_on(self, other: Schedule) -> Schedule:
        """Apply the steps of this schedule to ``other`` and return it."""
        return replay(self.steps, other)

    # -- loops --------------------------------------------------------------------------------

    def split(
        self,
        stage: Stage,
        loop: str,
        factor: int | None = None,
        nparts: int | None = None,
    ) -> tuple[str, str]:
        """Two nested loops for one; returns their names, outer first."""
        name = _name(stage)
        self.program = split.apply(self.program, name, loop, factor=factor, nparts=nparts)
        given = (("factor", factor), ("nparts", nparts))
        self._record("split", name, loop, **{k: v for k, v in given if v is not None})
        return f"{loop}_o", f"{loop}_i"

    def tile(
        self, stage: Stage, x: str, y: str, x_factor: int, y_factor: int
    ) -> tuple[str, str, str, str]:
        """Two nested loops as blocks; returns (x_o, y_o, x_i, y_i), the order they stand in."""
        name = _name(stage)
        self.program = tile.apply(self.program, name, x, y, x_factor, y_factor)
        self._record("tile", name, x, y, x_factor, y_factor)
        return f"{x}_o", f"{y}_o", f"{x}_i", f"{y}_i"

    def fuse(self, stage: Stage, a: str, b: str) -> str:
        """One loop for two directly nested ones; returns its name."""
        name = _name(stage)
        self.program = fuse.apply(self.program, name, a, b)
        self._record("fuse", name, a, b)
        return f"{a}_{b}"

    def reorder(self, stage: Stage, *loops: str) -> None:
        """The named loops in this order, in the places they have now."""
        name = _name(stage)
        self.program = reorder.apply(self.program, name, *loops)
        self._record("reorder", name, *loops)

    def rename(self, stage: Stage, loop: str, name: str) -> str:
        """Another name for a loop."""
        of = _name(stage)
        self.program = rename.apply(self.program, of, loop, name)
        self._record("rename", of, loop, name)
        return name

    def unroll(self, stage: Stage, loop: str) -> None:
        """Mark a loop to be written out."""
        self._mark("unroll", unroll.apply, stage, loop)

    def vectorize(self, stage: Stage, loop: str) -> None:
        """Mark an innermost loop to run in vectors on the host."""
        self._mark("vectorize", vectorize.apply, stage, loop)

    def parallel(self, stage: Stage, loop: str) -> None:
        """Mark a loop to run on the threads of the host."""
        self._mark("parallel", parallel.apply, stage, loop)

    def vthread(self, stage: Stage, loop: str) -> None:
        """Mark a loop whose iterations are interleaved, with on-chip buffers of their own."""
        self._mark("vthread", vthread.apply, stage, loop)

    def annotate(self, stage: Stage, loop: str, key: str, value: object) -> None:
        """Attach a note to a loop."""
        name = _name(stage)
        self.program = annotate.apply(self.program, name, loop, key, value)
        self._record("annotate", name, loop, key, value)

    # -- stages -------------------------------------------------------------------------------

    def compute_at(self, stage: Stage, consumer: Stage, loop: str) -> None:
        """Compute a stage inside a loop of its consumer, as much as one iteration needs."""
        name, reader = _name(stage), _name(consumer)
        self.program = compute_at.apply(self.program, name, reader, loop)
        self._record("compute_at", name, reader, loop)

    def compute_inline(self, stage: Stage) -> None:
        """Compute the elements of a stage wherever they are read."""
        name = _name(stage)
        self.program = compute_inline.apply(self.program, name)
        self._record("compute_inline", name)

    def cache_read(self, tensor: Stage, scope: str, consumers: Iterable[Stage]) -> str:
        """A copy of ``tensor`` in ``scope`` for the consumers; returns its name, tensor.scope."""
        name = _name(tensor)
        given = [consumers] if isinstance(consumers, (str, Tensor)) else consumers
        stages = [_name(stage) for stage in given]
        axes = self._axes_of(name)
        self.program = cache_read.apply(self.program, name, scope, stages, axes)
        self._axes[f"{name}.{scope}"] = axes
        self._record("cache_read", name, str(scope), stages)
        return f"{name}.{scope}"

    def cache_write(self, tensor: Stage, scope: str) -> str:
        """Compute ``tensor`` in ``scope`` and copy it out; returns the new stage, tensor.scope."""
        name = _name(tensor)
        axes = self._axes_of(name)
        self.program = cache_write.apply(self.program, name, scope, axes)
        self._axes[f"{name}.{scope}"] = axes
        self._record("cache_write", name, str(scope))
        return f"{name}.{scope}"

    def set_scope(self, stage: Stage, scope: str) -> None:
        """Put the buffer of a stage into a memory: global, inp, wgt or acc."""
        name = _name(stage)
        self.program = set_scope.apply(self.program, name, scope)
        self._record("set_scope", name, str(scope))

    def tensorize(self, stage: Stage, loop: str, intrinsic: Intrinsic) -> None:
        """Replace a nest, from ``loop`` inwards, by the intrinsic that means the same."""
        name = _name(stage)
        self.program = tensorize.apply(self.program, name, loop, intrinsic)
        self._record("tensorize", name, loop, intrinsic)

    # -- how a step is taken ------------------------------------------------------------------

    def _axes_of(self, tensor: str) -> tuple[str, ...]:
        rank = len(find_buffer(self.program, tensor).shape)
        return self._axes.get(tensor) or tuple(f"ax{i}" for i in range(rank))

    def _mark(
        self, name: str, apply: Callable[[Program, str, str], Program], stage: Stage, loop: str
    ) -> None:
        self.program = apply(self.program, _name(stage), loop)
        self._record(name, _name(stage), loop)

    def _record(self, primitive: str, *args: object, **options: object) -> None:
        self.steps.append(Step(primitive, args, tuple(options.items())))


def create_schedule(
    outputs: Tensor | Sequence[Tensor], inputs: Sequence[Tensor] | None = None
) -> Schedule:
    """The naive schedule: every tensor computed whole, in DRAM, in the order of the expressions.

    The program's parameters are ``inputs`` (default: in the order they are met), then ``outputs``.
    """
    results = [outputs] if isinstance(outputs, Tensor) else list(outputs)
    program = naive_program(results, inputs)
    tensors = [*topological(results), *(inputs or ())]
    return Schedule(program, {tensor.name: tensor.axes for tensor in tensors})


def replay(steps: Iterable[Step], onto: Schedule | Tensor | Sequence[Tensor]) -> Schedule:
    """Apply recorded ``steps`` to a schedule, or to a fresh one of the given outputs."""
    schedule = onto if isinstance(onto, Schedule) else create_schedule(onto)
    for step in steps:
        getattr(schedule, step.primitive)(*step.args, **dict(step.options))
    return schedule


def _name(stage: Stage) -> str:
    return stage.name if isinstance(stage, Tensor) else stage


def _literal(value: object) -> str:
    """``value`` as Python writes it; an intrinsic as the call that makes it."""
    if not isinstance(value, Intrinsic):
        return repr(value)
    if value.emit.alu_op is None:
        return f"{value.name}(machine)"
    imm = "" if value.emit.imm is None else f", {value.emit.imm}"
    return f"alu(machine, {value.emit.alu_op.name.lower()!r}{imm})"
