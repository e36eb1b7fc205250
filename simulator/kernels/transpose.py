"""Transposing a small matrix held in vector registers by shuffles of two registers at a time."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Shuffle:
    """A new register from ``lanes`` of registers ``a`` and ``b``; those of ``b`` follow ``a``'s."""

    a: int
    b: int
    lanes: tuple[int, ...]


def transpose_steps(rows: int, columns: int, lanes: int) -> list[list[Shuffle]]:
    """Steps that turn a row-major ``rows x columns`` matrix into its transpose.

    All sizes are powers of two and ``lanes`` divides ``rows * columns``. The matrix lies in
    consecutive registers of ``lanes`` elements. Each step replaces all registers; a step exchanges
    one bit of the register's number for one bit of the lane's, so there are as many as bits to
    exchange, and at least one.
    """
    size = rows * columns
    target = {
        row * columns + column: column * rows + row
        for row in range(rows)
        for column in range(columns)
    }
    registers = [list(range(first, first + lanes)) for first in range(0, size, lanes)]
    lane_bits = lanes.bit_length() - 1
    row_bits, column_bits = rows.bit_length() - 1, columns.bit_length() - 1
    # Target bit p is element bit (p + column_bits), the row bits first and the column bits above.
    order = [*range(column_bits, column_bits + row_bits), *range(column_bits)]
    now = set(range(lane_bits, row_bits + column_bits))  # element bits that number the register
    then = set(order[lane_bits:])
    steps = []
    for leaving, entering in zip(sorted(now - then), sorted(then - now), strict=True):
        registers, step = _exchange(registers, 1 << leaving, 1 << entering, target)
        steps.append(step)
    if not steps:
        registers, step = _exchange(registers, 0, 0, target)
        steps.append(step)
    final = sorted(range(len(registers)), key=lambda r: target[registers[r][0]])
    steps[-1] = [steps[-1][r] for r in final]
    return steps


def _exchange(
    registers: Sequence[list[int]], leaving: int, entering: int, target: dict[int, int]
) -> tuple[list[list[int]], list[Shuffle]]:
    """Pair registers that differ in element bit ``leaving``; split each pair by ``entering``.

    Lanes are put in the order of the transpose at once, so the last step leaves them in place.
    """
    home = {
        element: (r, lane) for r, held in enumerate(registers) for lane, element in enumerate(held)
    }
    moved, step = [], []
    for first, held in enumerate(registers):
        if held[0] & leaving:
            continue
        second = home[held[0] | leaving][0]
        pool = held if first == second else [*held, *registers[second]]
        halves = {0: [e for e in pool if not e & entering], 1: [e for e in pool if entering & e]}
        for half in (half for half in halves.values() if half):
            half.sort(key=target.__getitem__)
            position = {element: lane for lane, element in enumerate(pool)}
            moved.append(half)
            step.append(Shuffle(first, second, tuple(position[e] for e in half)))
    return moved, step
