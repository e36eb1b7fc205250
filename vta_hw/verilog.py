"""The core as Verilog, with the port names that other tools expect."""

from amaranth.back import verilog
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from vta_isa.machine import Machine

from .core import Core

CORE_NAME = "vta_core"


class FlatCore(wiring.Component):
    """The core with every port at the top: ``m_axi_araddr`` for the member ``read.araddr``.

    From nested members Amaranth makes names with two underscores, which no tool takes for AXI.
    """

    def __init__(self, machine: Machine):
        self.core = Core(machine)
        self.names = {}
        members = {}
        for path, member, _ in self.core.signature.flatten(self.core):
            prefix, *rest = (str(part) for part in path)
            name = "_".join(["m_axi" if prefix in ("read", "write") else prefix, *rest])
            self.names[name] = path
            members[name] = member
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        m.submodules.core = self.core
        for name, path in self.names.items():
            inner = self.core
            for part in path:
                inner = getattr(inner, part)
            outer = getattr(self, name)
            if self.signature.members[name].flow == In:
                m.d.comb += inner.eq(outer)
            else:
                m.d.comb += outer.eq(inner)
        return m


def core_verilog(machine: Machine) -> str:
    """Module ``vta_core`` and its submodules; the same text for the same machine.

    Ports: ``clk``, ``rst`` (synchronous, active high), the members of ``Core``, and one AXI4 master
    ``m_axi_*``.
    """
    return verilog.convert(
        FlatCore(machine), name=CORE_NAME, emit_src=False, strip_internal_attrs=True
    )
