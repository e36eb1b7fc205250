"""A component in surroundings that may do anything."""

from amaranth.hdl import Module, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In


class Surroundings(wiring.Component):
    """Its inputs are those of ``part``: whatever comes, comes in any cycle.

    A specification inherits from it, says in assumptions what does not come, and in assertions what
    must hold.
    """

    def __init__(self, part: wiring.Component):
        self.part = part
        self._inputs = {
            "__".join(map(str, path)): Value.cast(value)
            for path, member, value in part.signature.flatten(part)
            if member.flow == In
        }
        super().__init__({name: In(value.shape()) for name, value in self._inputs.items()})

    def around(self, m: Module) -> None:
        """Puts the part into ``m`` and connects its inputs."""
        m.submodules.part = self.part
        m.d.comb += [value.eq(getattr(self, name)) for name, value in self._inputs.items()]
