"""From a sweep to its points, always the same ones in the same order."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .errors import SweepError
from .keys import COMPILE, default_values, flat
from .objectives import derived
from .spec import Sweep, described

MOST_POINTS = 1_000_000  # that are held at a time; larger spaces are sampled
_TRIES = 200  # draws per point that is asked for, where `where` drops nearly everything


@dataclass(frozen=True)
class PlannedPoint:
    """One machine with one workload, before it is run. ``machine`` may turn out impossible."""

    index: int
    axes: dict[str, Any]
    machine: dict[str, Any]
    compile: dict[str, Any]
    workload: int  # its number in the sweep


def planned_points(sweep: Sweep) -> list[PlannedPoint]:
    """Axes in the order of the file, the last one fastest, workloads innermost."""
    shape = tuple(len(axis.choices) for axis in sweep.axes)
    size = math.prod(shape)
    if sweep.sample.random is not None:
        cells = _random(sweep, shape, size, sweep.sample.random)
    elif sweep.sample.latin_hypercube is not None:
        cells = _latin_hypercube(sweep, shape, sweep.sample.latin_hypercube)
    else:
        if size * len(sweep.workloads) > MOST_POINTS:
            raise SweepError(
                f"{sweep.name}: {size:,} machines x {len(sweep.workloads)} workloads are too many "
                f"points; at most {MOST_POINTS:,}: use sample: {{random: N}} or shorter axes"
            )
        cells = [each for each in map(_unravel(shape), range(size)) if _stays(sweep, each)]
    if not cells:
        raise SweepError(
            f"{sweep.name}: no point is left; where drops all {size:,} of them: loosen it"
        )
    points: list[PlannedPoint] = []
    for cell in cells:
        shown, values = _set_by(sweep, cell)
        machine, options = described(sweep, values)
        for workload in range(len(sweep.workloads)):
            points.append(PlannedPoint(len(points), shown, machine, options, workload))
    return points


Cell = tuple[int, ...]  # the choice on each axis


def _unravel(shape: Cell) -> Callable[[int], Cell]:
    def cell(number: int) -> Cell:
        digits = []
        for length in reversed(shape):
            number, digit = divmod(number, length)
            digits.append(digit)
        return tuple(reversed(digits))

    return cell


def _set_by(sweep: Sweep, cell: Cell) -> tuple[dict[str, Any], dict[str, Any]]:
    shown: dict[str, Any] = {}
    values: dict[str, Any] = {}
    for axis, number in zip(sweep.axes, cell, strict=True):
        shown |= axis.choices[number].shown
        values |= axis.choices[number].values
    return shown, values


def _stays(sweep: Sweep, cell: Cell) -> bool:
    if not sweep.where:
        return True
    machine, options = described(sweep, _set_by(sweep, cell)[1])
    values = default_values() | flat(machine) | flat(options, f"{COMPILE}.")
    values |= derived(values)
    return all(condition.holds(values) for condition in sweep.where)


def _random(sweep: Sweep, shape: Cell, size: int, count: int) -> list[Cell]:
    """``count`` different points that ``where`` keeps, in the order of the grid; all, if fewer."""
    rng = np.random.default_rng(sweep.sample.seed)
    unravel = _unravel(shape)
    if size <= MOST_POINTS:
        order: Iterable[int] = rng.permutation(size).tolist()
    else:  # too many to shuffle
        order = (_ravel(shape, _draw(rng, shape)) for _ in range(_TRIES * count))
    kept: set[int] = set()
    for number in order:
        if len(kept) == count:
            break
        if number not in kept and _stays(sweep, unravel(number)):
            kept.add(number)
    return [unravel(number) for number in sorted(kept)]


def _latin_hypercube(sweep: Sweep, shape: Cell, count: int) -> list[Cell]:
    """Points that cover every axis evenly; fewer than ``count``, where ``where`` drops some.

    Each axis is cut into ``count`` strips, and every strip has one point.
    """
    from scipy.stats import qmc

    if not shape:
        return [()] if _stays(sweep, ()) else []
    unit = qmc.LatinHypercube(len(shape), rng=sweep.sample.seed).random(count)
    cells = {
        tuple(np.minimum(row * shape, np.array(shape) - 1).astype(int).tolist()) for row in unit
    }
    return [cell for cell in sorted(cells) if _stays(sweep, cell)]


def _draw(rng: np.random.Generator, shape: Cell) -> Cell:
    return tuple(int(rng.integers(length)) for length in shape)


def _ravel(shape: Cell, cell: Cell) -> int:
    number = 0
    for length, digit in zip(shape, cell, strict=True):
        number = number * length + digit
    return number
