"""What synthesis needs to know of a design, from its RTLIL: modules and multiplications."""

import re
from dataclasses import dataclass

from amaranth.back import rtlil

TOP = "top"


def convert(component) -> str:
    """One module per instance, named by its path: ``top.load.loader``. No source lines: they would
    make the text, and the key of the cache, depend on where and how the source is laid out."""
    return rtlil.convert(component, name=TOP, emit_src=False)


@dataclass(frozen=True)
class Product:
    """A ``$mul`` cell; ``module`` and ``cell`` are RTLIL's names."""

    module: str
    cell: str
    bits: tuple[int, int, int]


_MODULE = re.compile(r"^module \\(\S+)$", re.MULTILINE)
_PRODUCT = re.compile(
    r"^  cell \$mul (\S+)$.*?\\A_WIDTH (\d+)$.*?\\B_WIDTH (\d+)$.*?\\Y_WIDTH (\d+)$",
    re.MULTILINE | re.DOTALL,
)


def module_names(text: str) -> list[str]:
    return _MODULE.findall(text)


def products(text: str) -> list[Product]:
    """In the order of the text."""
    found = []
    starts = [*_MODULE.finditer(text)]
    ends = [*(match.start() for match in starts[1:]), len(text)]
    for match, end in zip(starts, ends, strict=True):
        for product in _PRODUCT.finditer(text, match.end(), end):
            a, b, y = (int(product[i]) for i in (2, 3, 4))
            found.append(Product(match[1], product[1], (a, b, y)))
    return found


def before_flatten(cell: str) -> tuple[str, str]:
    """Module and name of a cell of the flat design: ``top/$flatten\\load.\\loader.$5`` is ``$5`` in
    ``top.load.loader``."""
    name = cell.removeprefix(f"{TOP}/")
    if not name.startswith("$flatten"):
        return TOP, name
    path, _, own = name.removeprefix("$flatten").replace("\\", "").rpartition(".")
    return f"{TOP}.{path}", own


def instance_path(name: str, inside: str = "") -> str | None:
    """``top.wgt$230.bank0`` as instance names: ``wgt.bank0``; the top is the empty path.

    Yosys sees ``wgt$230`` where a signal of the module around it is called ``wgt``, too. With
    ``inside``, the path is from that instance on, and None for what is not in it.
    """
    path = re.sub(r"\$\d+(?=\.|$)", "", name)
    root = f"{TOP}.{inside}" if inside else TOP
    if path == root:
        return ""
    return path.removeprefix(f"{root}.") if path.startswith(f"{root}.") else None
