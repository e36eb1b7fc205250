"""VTA, the Versatile Tensor Accelerator: simulate a workload on a machine and see where time goes.

    >>> import vta
    >>> report = vta.run("resnet18/C2", "default")
    >>> report.total.cycles, report.total.utilization

Names are looked up on first use, so that ``import vta`` costs nothing that is not needed.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simulator.checker import Finding, check
    from simulator.machine import Result, execute
    from vta_isa.errors import VtaError
    from vta_isa.launch import Launch
    from vta_isa.machine import Machine, load_machine
    from vta_isa.version import __version__

    from .compile import compile_layer, lower
    from .cosimulation import Cosimulation, cosim
    from .job import Comparison, RunReport, WrongResult, compare, run
    from .sweep import read_results, run_sweep
    from .workloads import Workload, load_workload

_HOME = {
    "Comparison": "vta.job",
    "Cosimulation": "vta.cosimulation",
    "Finding": "simulator.checker",
    "Launch": "vta_isa.launch",
    "Machine": "vta_isa.machine",
    "Result": "simulator.machine",
    "RunReport": "vta.job",
    "VtaError": "vta_isa.errors",
    "Workload": "vta.workloads",
    "WrongResult": "vta.job",
    "__version__": "vta_isa.version",
    "check": "simulator.checker",
    "compare": "vta.job",
    "compile_layer": "vta.compile",
    "cosim": "vta.cosimulation",
    "execute": "simulator.machine",
    "load_machine": "vta_isa.machine",
    "load_workload": "vta.workloads",
    "lower": "vta.compile",
    "read_results": "vta.sweep",
    "run": "vta.job",
    "run_sweep": "vta.sweep",
}

__all__ = [
    "Comparison",
    "Cosimulation",
    "Finding",
    "Launch",
    "Machine",
    "Result",
    "RunReport",
    "VtaError",
    "Workload",
    "WrongResult",
    "__version__",
    "check",
    "compare",
    "compile_layer",
    "cosim",
    "execute",
    "load_machine",
    "load_workload",
    "lower",
    "read_results",
    "run",
    "run_sweep",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'vta' has no attribute {name!r}")
    value: object = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
