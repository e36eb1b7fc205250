"""The names of the two tops and of their ports."""

from dataclasses import dataclass

from amaranth.lib import data

from vta_isa.machine import Machine

from .. import top
from ..core import bases_layout
from ..verilog import CORE_NAME


@dataclass(frozen=True)
class Ports:
    """Names in the Verilog of one top; ``control`` and ``interrupt`` are empty in the core."""

    module: str
    clock: str
    reset: str
    reset_level: str  # high or low
    data: str
    control: str
    interrupt: str
    bases: data.StructLayout


def axi_ports(machine: Machine) -> Ports:
    return Ports(
        module=top.TOP_NAME,
        clock=top.CLOCK,
        reset=top.RESET,
        reset_level="low",
        data=top.DATA,
        control=top.CONTROL,
        interrupt=top.INTERRUPT,
        bases=bases_layout(machine),
    )


def core_ports(machine: Machine) -> Ports:
    return Ports(
        module=CORE_NAME,
        clock="clk",
        reset="rst",
        reset_level="high",
        data="m_axi",
        control="",
        interrupt="",
        bases=bases_layout(machine),
    )
