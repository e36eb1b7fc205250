"""What is proven of one component, and the broken components that must fail the proof."""

import inspect
import sys
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from amaranth.lib import wiring

from .symbiyosys import Answer, Bounded, Cover, Induction, Unbounded, ask


@dataclass(frozen=True)
class Mutant:
    """The component with one piece of its source replaced: ``old``, found once, by ``new``."""

    old: str
    new: str


@dataclass(frozen=True)
class Proof:
    """``spec`` builds the assertions around an instance it makes of a class like ``component``.

    A mutant must break an assertion within ``mutant_cycles``.
    """

    name: str
    claims: str
    component: type[wiring.Component]
    spec: Callable[[type[wiring.Component]], wiring.Component]
    method: Unbounded | Induction | Bounded
    cover_cycles: int
    mutant_cycles: int
    mutants: Mapping[str, Mutant] = field(default_factory=dict)
    slow: bool = False  # left to `make formal`

    def prove(self) -> Answer:
        return ask(self.spec(self.component), self.method)

    def cover(self) -> Answer:
        """Whether the interesting situations can be reached at all."""
        return ask(self.spec(self.component), Cover(self.cover_cycles))

    def survives(self, name: str) -> Answer:
        """The answer for a broken component; it must not hold."""
        broken = mutated(self.component, self.mutants[name])
        return ask(self.spec(broken), Bounded(self.mutant_cycles))


def mutated(component: type[wiring.Component], mutant: Mutant) -> type[wiring.Component]:
    """The class as its module defines it with the mutant's text; raises where that is stale."""
    original = sys.modules[component.__module__]
    source = inspect.getsource(original)
    if source.count(mutant.old) != 1:
        raise ValueError(
            f"{component.__module__} has {mutant.old!r} {source.count(mutant.old)} times, not once;"
            " write the mutant anew"
        )
    module = types.ModuleType(original.__name__)
    module.__package__ = original.__package__
    code = compile(source.replace(mutant.old, mutant.new), f"broken {component.__name__}", "exec")
    exec(code, module.__dict__)
    broken: type[wiring.Component] = getattr(module, component.__name__)
    return broken
