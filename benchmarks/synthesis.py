"""Area and clock of the machines, next to the numbers they are held to.

    python benchmarks/synthesis.py [NAME ...] [--json]

Without names, everything: some 20 minutes on two cores the first time, and no time at all the
second, for results are cached (``VTA_CACHE_DIR``). Names: those of the first column of the table.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

from vta_hw.core import Core
from vta_hw.gemm import GemmCore
from vta_hw.synth import FAMILIES, route, synthesize
from vta_hw.top import Accelerator
from vta_isa.machine import load_machine

ECP5_SEEDS = (1, 2, 3)
ROW = "{:18} {:6} {:>8} {:>8} {:>8} {:>6} {:>10} {:>6}  {}"


@dataclass(frozen=True)
class Row:
    """One line of the table; ``clock_mhz`` where it was placed and routed."""

    name: str
    family: str
    lut: int
    lut_ram: int
    ff: int
    dsp: int
    block_ram: float
    clock_mhz: float | None
    held_to: str

    def __str__(self) -> str:
        clock = f"{self.clock_mhz:.1f}" if self.clock_mhz else ""
        figures = (self.lut, self.lut_ram, self.ff, self.dsp)
        return ROW.format(
            self.name,
            self.family,
            *(f"{number:,}" for number in figures),
            f"{self.block_ram:g}",
            clock,
            self.held_to,
        )


def _synthesized(name: str, component, family: str, held_to: str) -> Row:
    figures = synthesize(component, FAMILIES[family], top=name)
    return Row(name, family, **asdict(figures.total), clock_mhz=None, held_to=held_to)


def _routed(name: str, component, seed: int, held_to: str) -> Row:
    target_hz = component.machine.clock
    figures, routed = route(component, FAMILIES["ecp5"], top=name, seed=seed, target_hz=target_hz)
    return Row(name, "ecp5", **asdict(figures.total), clock_mhz=routed.clock_mhz, held_to=held_to)


def _jobs() -> dict[str, Callable[[], Row]]:
    """What to measure, by name."""
    default, packed, extended, ecp5 = map(
        load_machine, ("default", "zynq7020", "default-ext", "ecp5")
    )
    jobs = {
        "machine": lambda: _synthesized("machine", Accelerator(default), "xc7", "at most 20 k LUT"),
        "packed machine": lambda: _synthesized(
            "packed machine", Accelerator(packed), "xc7", "20 k LUT, 134 DSP"
        ),
        "extended machine": lambda: _synthesized(
            "extended machine", Accelerator(extended), "xc7", "what extensions cost"
        ),
        "array": lambda: _synthesized("array", GemmCore(default), "xc7", "256 DSP"),
        "packed array": lambda: _synthesized("packed array", GemmCore(packed), "xc7", "128 DSP"),
    }
    for seed in ECP5_SEEDS:
        name = f"ecp5 seed {seed}"
        jobs[name] = lambda name=name, seed=seed: _routed(name, Core(ecp5), seed, "70 MHz")
    return jobs


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    jobs = _jobs()
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(jobs))
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(jobs):
        parser.error(f"no measurement called {', '.join(unknown)}; there are {', '.join(jobs)}")

    rows = []
    if not arguments.json:
        print(ROW.format("", "family", "LUT", "(RAM)", "FF", "DSP", "block RAM", "MHz", "hold"))
    for name in arguments.names or jobs:
        began = time.perf_counter()
        rows.append(jobs[name]())
        print(f"{name}: {time.perf_counter() - began:.0f} s", file=sys.stderr)
        if not arguments.json:
            print(rows[-1], flush=True)
    if arguments.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))


if __name__ == "__main__":
    main()
