"""Many machines, many workloads: which of them are worth building."""

from .errors import SweepError
from .pareto import front
from .results import LayerResult, Point, Results, read_results
from .run import run_sweep
from .spec import Sweep, load_sweep
from .table import csv_text

__all__ = [
    "LayerResult",
    "Point",
    "Results",
    "Sweep",
    "SweepError",
    "csv_text",
    "front",
    "load_sweep",
    "read_results",
    "run_sweep",
]
