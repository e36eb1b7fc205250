"""A workload: layers in order, how often each runs, and which of them are summed up."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from vta_isa.errors import VtaError, WorkloadError
from vta_isa.suggest import did_you_mean

from .layers import Layer


@dataclass(frozen=True)
class Workload:
    """``totals`` maps the label of a partial sum to the names of the layers in it."""

    name: str
    layers: tuple[Layer, ...]
    about: str = ""
    totals: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def as_json(self) -> dict[str, object]:
        """Plain data that ``load_workload`` reads back as an equal workload."""
        return {
            "name": self.name,
            "about": self.about,
            "layers": [layer.model_dump(mode="json") for layer in self.layers],
            "totals": {label: list(names) for label, names in self.totals.items()},
        }

    def pick(self, layer: str) -> "Workload":
        """The workload that runs one layer of this one, once."""
        for candidate in self.layers:
            if candidate.name == layer:
                once = candidate.model_copy(update={"count": 1})
                return replace(self, name=f"{self.name}/{layer}", layers=(once,), totals={})
        names = [candidate.name for candidate in self.layers]
        raise WorkloadError(
            f"workload {self.name} has no layer {layer!r}{did_you_mean(layer, names)}"
        )


@contextlib.contextmanager
def about_layer(workload: Workload, layer: Layer) -> Iterator[None]:
    """Errors raised inside, from whatever room, begin with workload and layer."""
    try:
        yield
    except VtaError as error:
        error.args = (f"{workload.name}: {layer.name}: {error}", *error.args[1:])
        raise
