"""What came out: figures per module, and what did not go where it should."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Area:
    """``lut_ram`` is the part of ``lut`` that serves as memory; half a block RAM is 0.5."""

    lut: int = 0
    lut_ram: int = 0
    ff: int = 0
    dsp: int = 0
    block_ram: float = 0

    def __add__(self, other: "Area") -> "Area":
        return Area(
            self.lut + other.lut,
            self.lut_ram + other.lut_ram,
            self.ff + other.ff,
            self.dsp + other.dsp,
            self.block_ram + other.block_ram,
        )


@dataclass(frozen=True)
class ModuleArea:
    """One module: its cells without (``own``) and with (``all``) those of the modules inside.

    ``path`` is the instance names from the top, joined by dots; empty for the top itself.
    """

    path: str
    own: Area
    all: Area


@dataclass(frozen=True)
class MemoryUse:
    """``kind``: "block RAM", "LUT RAM" or "registers"."""

    path: str
    kind: str


@dataclass(frozen=True)
class Multiplication:
    """A product in the source; ``dsp`` is how many blocks it took, 0 where it became LUTs."""

    path: str
    bits: tuple[int, int, int]  # of the operands and of the result
    dsp: int


@dataclass(frozen=True)
class Synthesis:
    """The component ``top`` on one family. ``modules`` is in the order of paths, the top first."""

    top: str
    family: str
    modules: tuple[ModuleArea, ...]
    memories: tuple[MemoryUse, ...]
    multiplications: tuple[Multiplication, ...]
    cells: Mapping[str, int]  # of each type

    @property
    def total(self) -> Area:
        """Of everything."""
        return self.modules[0].all

    def to_depth(self, depth: int) -> tuple[ModuleArea, ...]:
        """Modules at most ``depth`` levels below the top."""
        return tuple(m for m in self.modules if not m.path or m.path.count(".") < depth)

    def as_json(self) -> dict[str, Any]:
        """Plain data, which ``from_json`` reads back."""
        return {"total": asdict(self.total), **asdict(self)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Synthesis":
        """What ``as_json`` has written."""
        return cls(
            data["top"],
            data["family"],
            tuple(
                ModuleArea(m["path"], Area(**m["own"]), Area(**m["all"])) for m in data["modules"]
            ),
            tuple(MemoryUse(**m) for m in data["memories"]),
            tuple(
                Multiplication(m["path"], tuple(m["bits"]), m["dsp"])
                for m in data["multiplications"]
            ),
            dict(data["cells"]),
        )


def module_tree(own: Mapping[str, Area], paths: Iterable[str]) -> tuple[ModuleArea, ...]:
    """Every module of ``paths`` and of ``own``, with sums over what is inside."""
    everything = {"", *paths, *own}
    everything |= {
        path.rsplit(".", i)[0] for path in everything for i in range(path.count(".") + 1)
    }
    total = dict.fromkeys(everything, Area())
    for path, area in own.items():
        while True:
            total[path] += area
            if not path:
                break
            path = path.rpartition(".")[0]
    order = sorted(everything, key=lambda path: path.split(".") if path else [])
    return tuple(ModuleArea(path, own.get(path, Area()), total[path]) for path in order)
