"""What a component takes on an FPGA, and how fast it runs there, by open tools."""

from .errors import SynthesisError
from .families import FAMILIES, Family
from .place_route import Route, check_route, route
from .report import Area, ModuleArea, Synthesis
from .synthesize import check_synthesis, synthesize

__all__ = [
    "FAMILIES",
    "Area",
    "Family",
    "ModuleArea",
    "Route",
    "Synthesis",
    "SynthesisError",
    "check_route",
    "check_synthesis",
    "route",
    "synthesize",
]
