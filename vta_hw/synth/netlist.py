"""Whose is a cell of the finished netlist?

The design is flattened before it is optimised and mapped: the figures are those of the machine as
it would be built, with nothing lost at module boundaries, which keeping the hierarchy would cost.
So the module of a cell has to be found afterwards.

- Before anything is flattened, every cell gets the name of its module as its ``src`` attribute, and
  a multiplication gets its own name. Yosys carries ``src`` through most passes: registers, carry
  chains and DSP blocks still have it at the end.
- Memories keep their name, which begins with the path of their module.
- LUTs come out of ABC and have neither. A LUT belongs to the module of what it feeds: of the
  nearest cells behind it that have a module, the one that most of them have.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from .rtlil_text import TOP

MARK = "#"  # between the module and the cell in the ``src`` of a multiplication

Cell = Mapping[str, Any]  # of Yosys's JSON


def sources_of(cell: Cell, modules: frozenset[str]) -> list[str]:
    """The parts of ``src`` that were set before flattening; several, where cells were merged."""
    parts = cell["attributes"].get("src", "").split("|")
    return [part for part in parts if part.partition(MARK)[0] in modules]


class Netlist:
    """The cells of a flat netlist with the modules they belong to. ``modules``: RTLIL's names."""

    def __init__(
        self, cells: Mapping[str, Cell], modules: frozenset[str], memories: frozenset[str]
    ):
        """``memories``: types of cells that keep the name of their memory."""
        self.cells = {name: cell for name, cell in cells.items() if cell["type"][0] != "$"}
        self.sources: dict[str, list[str]] = {}
        self._memories = memories
        self._modules = modules
        self._readers = self._find_readers()
        for name, cell in self.cells.items():
            sources = sources_of(cell, modules)
            if not sources and cell["type"] in memories:
                sources = self._by_name(name)
            if sources:
                self.sources[name] = sources
        self._owners = {
            name: first.partition(MARK)[0] for name, (first, *_) in self.sources.items()
        }
        anonymous = [name for name in self.cells if name not in self._owners]
        # All found before any is added: the answer must not depend on the order of cells.
        self._owners |= {name: self._nearest_behind(name) for name in anonymous}

    def owner(self, name: str) -> str:
        """RTLIL's name of the module a cell belongs to."""
        return self._owners[name]

    def _by_name(self, name: str) -> list[str]:
        """``load.pads.memory.0.0`` is in ``top.load.pads``."""
        path = f"{TOP}.{name}"
        while path:
            if path in self._modules:
                return [path]
            path = path.rpartition(".")[0]
        return []

    def _find_readers(self) -> dict[int, list[str]]:
        """Net bit → the cells that it goes into."""
        readers: dict[int, list[str]] = {}
        for name, cell in self.cells.items():
            for bit in _bits(cell, "input"):
                readers.setdefault(bit, []).append(name)
        return readers

    def _nearest_behind(self, name: str) -> str:
        """Breadth first along the outputs; the top where they only leave the design."""
        seen, front = {name}, [name]
        while front:
            behind = [
                reader
                for cell in front
                for bit in _bits(self.cells[cell], "output")
                for reader in self._readers.get(bit, ())
            ]
            found = Counter(self._owners[reader] for reader in behind if reader in self._owners)
            if found:
                return min(found, key=lambda module: (-found[module], module))
            front = [reader for reader in dict.fromkeys(behind) if reader not in seen]
            seen.update(front)
        return TOP


def _bits(cell: Cell, direction: str) -> Iterator[int]:
    """Net bits at the ports of one direction; constants have no number."""
    for port, bits in cell["connections"].items():
        if cell["port_directions"][port] == direction:
            yield from (bit for bit in bits if isinstance(bit, int))
