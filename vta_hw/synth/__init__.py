"""What a component takes on an FPGA, and how fast it runs there, by open tools."""

from .errors import SynthesisError
from .families import FAMILIES, Family
from .place_route import Route, route
from .report import Area, ModuleArea, Synthesis
from .synthesize import synthesize

__all__ = [
    "FAMILIES",
    "Area",
    "Family",
    "ModuleArea",
    "Route",
    "Synthesis",
    "SynthesisError",
    "route",
    "synthesize",
]
