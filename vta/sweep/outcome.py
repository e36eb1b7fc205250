"""What became of a point: a row of the results, as a worker sends it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Outcome:
    """``objectives``, ``layers`` and ``area`` are JSON already: workers have more time for it."""

    index: int
    status: str
    error: str | None = None
    machine_hash: str | None = None
    cycles: int | None = None
    objectives: str = "{}"
    layers: str = "[]"
    area: str = "{}"
    wall_s: float = 0.0
