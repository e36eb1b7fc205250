"""Whose signals a file of waves holds."""

from vta_isa.errors import WorkloadError
from vta_runtime.devices.rtl import WavesWanted

from .workloads import Workload


def check_one_layer(workload: Workload, waves: WavesWanted) -> None:
    """Raise WorkloadError for a workload of several layers: each runs on a core of its own."""
    if len(workload.layers) > 1:
        first = workload.layers[0].name
        raise WorkloadError(
            f"{waves[0]} can hold the waves of one layer, and {workload.name} has "
            f"{len(workload.layers)}; name one, as in {workload.name}/{first}"
        )
