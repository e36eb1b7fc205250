"""The best machines of a sweep through synthesis: what the area model only estimates."""

from collections.abc import Callable, Mapping
from dataclasses import asdict

from vta_isa import load_machine
from vta_isa.errors import VtaError
from vta_isa.machine import Machine

from ..extras import needs_amaranth
from .area import RESOURCES
from .results import Results
from .table import best

Keep = Callable[[str, Mapping[str, float] | None, str | None], None]  # hash, area, error


def synthesise_best(results: Results, count: int, keep: Keep, note: Callable[[str], None]) -> None:
    """Synthesise the ``count`` best machines by the first objective that have not been yet.

    A machine counts once, by its best point. ``keep`` is given each one's area, with the words of
    the area model, or the reason why there is none; ``note`` is told what begins.
    """
    first = next(iter(results.objectives))
    chosen: dict[str, Machine] = {}
    done = {point.machine_hash for point in results.points if point.synthesis is not None}
    for point in best(results, first):
        assert point.machine_hash is not None
        if len(chosen) == count:
            break
        if point.machine_hash not in chosen:
            chosen[point.machine_hash] = load_machine(point.machine)
    for number, (key, machine) in enumerate(chosen.items(), start=1):
        if key in done:
            continue
        note(f"synthesising machine {number} of {len(chosen)}, {machine.shape}")
        try:
            keep(key, _area(machine, results.spec["area"]), None)
        except VtaError as error:
            keep(key, None, str(error))


def _area(machine: Machine, family: str) -> dict[str, float]:
    with needs_amaranth("synth"):
        from vta_hw.synth import FAMILIES, check_synthesis, synthesize
        from vta_hw.top import Accelerator
    check_synthesis()
    total = asdict(synthesize(Accelerator(machine), FAMILIES[family], top="axi").total)
    return {resource: total[resource] for resource in RESOURCES}
