"""From a component to a netlist and its figures."""

import json
import re
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from . import rtlil_text
from .cache import cached
from .families import Family
from .netlist import MARK, Netlist
from .report import Area, MemoryUse, Multiplication, Synthesis, module_tree
from .tools import Progress, run_yosys, version

SCRIPT_VERSION = "3"  # change it when figures are derived from the netlist in another way


@dataclass(frozen=True)
class Mapped:
    """A synthesised design: its figures, and the netlist as place and route takes it."""

    synthesis: Synthesis
    netlist: str  # Yosys's JSON, without what place and route does not know
    owners: dict[str, str | None]  # cell → path of its module; None outside the component


def check_synthesis() -> None:
    """Raises where ``synthesize`` cannot work, before any work is done."""
    version("pyosys")


def synthesize(
    component, family: Family, *, top: str, progress: Progress = lambda text: None
) -> Synthesis:
    """Figures of an Amaranth component on a family; ``top`` is what the report calls it.

    Nothing is placed, so there are no pads, and clock buffers do not count. Cached.
    """
    progress(f"elaborating {top}")
    text = rtlil_text.convert(component)
    script = yosys_script(text, family)
    key = ("synthesis", SCRIPT_VERSION, text, repr(family), version("pyosys"), script)

    def produce() -> dict:
        mapped = map_to(text, family, top=top, inside="", progress=progress)
        return mapped.synthesis.as_json()

    data = cached(key, produce)
    return Synthesis.from_json({**data, "top": top})


def map_to(text: str, family: Family, *, top: str, inside: str, progress: Progress) -> Mapped:
    """Runs Yosys on RTLIL text, and finds out whose every cell is.

    Figures are those of the instance ``inside`` of the top module; of the top itself where that is
    empty.
    """
    task = f"synthesising {top} for {family.name}"
    progress(task)
    with tempfile.TemporaryDirectory(prefix="vta-synth-") as name:
        folder = Path(name)
        (folder / "design.il").write_text(text)
        log = run_yosys(
            yosys_script(text, family), folder, lambda step: progress(f"{task}: {step}")
        )
        design = json.loads((folder / "netlist.json").read_text())
        kept = (folder / "products.txt").read_text().split()
    return _read(design, log, kept, text, family, top, inside)


def yosys_script(text: str, family: Family) -> str:
    """Reads design.il, writes netlist.json."""
    marks = [f'setattr -set src "{name}" \\{name}/c:*' for name in rtlil_text.module_names(text)]
    marks += [
        f'setattr -set src "{product.module}{MARK}{product.cell}" \\{product.module}/{product.cell}'
        for product in rtlil_text.products(text)
    ]
    return "\n".join(
        [
            "read_rtlil design.il",
            f"hierarchy -check -top {rtlil_text.TOP}",
            "proc",
            *marks,
            # Yosys 0.70 stops at wires called x[0], which clash with its own names for bits.
            "rename -hide w:*[*",
            # No part of the machine reads a word in the cycle in which it is written, unless its
            # port is transparent; without this, every such memory gets a bypass around it.
            "setparam -set COLLISION_X_MASK 1'1 t:$memrd_v2 r:TRANSPARENCY_MASK=1'0 %i "
            "r:CLK_ENABLE=1'1 %i",
            "flatten",
            # What a family's script would do first; after it, the products that there are.
            *("opt_expr", "opt_merge", "opt_clean"),
            "tee -q -o products.txt select -list t:$mul",
            f"{family.command} -top {rtlil_text.TOP}",
            "delete t:$scopeinfo",
            "write_json netlist.json",
            "",
        ]
    )


_MEMORY_CELLS = re.compile(r"mapping memory (\S+) via (\S+)")
_MEMORY_REGISTERS = re.compile(r"using FF mapping for memory (\S+)")
_LUT_RAM = re.compile("LUTRAM|DPR16|RAM16")


def _read(
    design: dict, log: str, kept: list[str], text: str, family: Family, top: str, inside: str
) -> Mapped:
    modules = frozenset(rtlil_text.module_names(text))
    cells = design["modules"][rtlil_text.TOP]["cells"]
    types = {cell["type"] for cell in cells.values()}
    keep_names = frozenset(
        kind for kind in types if (cost := family.cost(kind)).block_ram or cost.lut_ram
    )
    netlist = Netlist(cells, modules, keep_names)

    paths = {name: rtlil_text.instance_path(name, inside) for name in modules}
    owners = {name: paths[netlist.owner(name)] for name in netlist.cells}
    alive = set(map(rtlil_text.before_flatten, kept))
    products = {
        f"{product.module}{MARK}{product.cell}": product
        for product in rtlil_text.products(text)
        if (product.module, product.cell) in alive
    }

    own: dict[str, Area] = {}
    blocks: Counter[str] = Counter()
    counted: Counter[str] = Counter()
    for name, path in owners.items():
        if path is None:
            continue
        kind = cells[name]["type"]
        cost = family.cost(kind)
        own[path] = own.get(path, Area()) + cost
        counted[kind] += 1
        if cost.dsp:
            sources = netlist.sources.get(name, [netlist.owner(name)])
            marked = next((source for source in sources if source in products), sources[0])
            blocks[marked.partition(MARK)[0] if marked not in products else marked] += cost.dsp

    found = [
        (name, "LUT RAM" if _LUT_RAM.search(how) else "block RAM")
        for name, how in _MEMORY_CELLS.findall(log)
    ]
    found += [(name, "registers") for name in _MEMORY_REGISTERS.findall(log)]
    memories = {
        MemoryUse(path, kind)
        for name, kind in found
        # Parts of a name may begin with a backslash.
        if (path := rtlil_text.instance_path(name.replace("\\", ""), inside)) is not None
    }
    multiplications = []
    for mark, product in products.items():
        dsp = blocks[mark]
        if not dsp and blocks[product.module]:
            # Merged with an addition, a product loses its name, but not its module.
            blocks[product.module] -= 1
            dsp = 1
        if (path := paths[product.module]) is not None:
            multiplications.append(Multiplication(path, product.bits, dsp))
    synthesis = Synthesis(
        top,
        family.name,
        module_tree(own, (path for path in paths.values() if path is not None)),
        tuple(sorted(memories, key=lambda memory: memory.path)),
        tuple(multiplications),
        dict(sorted(counted.items())),
    )
    return Mapped(synthesis, json.dumps(design), owners)
