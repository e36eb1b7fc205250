"""From a board's top to the file that configures its FPGA."""

from dataclasses import replace

from ..synth import FAMILIES, Route, Synthesis, SynthesisError, check_route, rtlil_text
from ..synth.families import FREE
from ..synth.place_route import DEVICE, route_text
from ..synth.tools import Progress
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
    return route_text(
        rtlil_text.convert(board) + BLACK_BOX,
        FAMILY,
        top=TOP,
        inside="",
        seed=seed,
        constraints=board.constraints(),
        check=check_room,
        progress=progress,
    )


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
