"""The components that can be synthesised on their own, by name."""

from collections.abc import Callable

from amaranth.lib import wiring

from vta_isa.machine import Machine

from ..alu import TensorAlu
from ..compute import Compute
from ..core import Core
from ..fetch import Fetch
from ..gemm import GemmCore
from ..load import Load
from ..store import Store
from ..top import Accelerator

TOPS: dict[str, Callable[[Machine], wiring.Component]] = {
    "axi": Accelerator,
    "core": Core,
    "fetch": Fetch,
    "load": Load,
    "compute": Compute,
    "store": Store,
    "gemm": GemmCore,
    "alu": TensorAlu,
}


def component(name: str, machine: Machine) -> wiring.Component:
    return TOPS[name](machine)
