"""Functional coverage of the core: random programs and made-up situations until every bin is hit.

    python tests/hw/cover.py [--programs 200] [--machines tiny,odd,...] [--add FOLDER]

Every program runs on the compiled RTL, once in a memory that is always ready and once under
back-pressure; results are those of the reference, cycles those of the simulator. ``--add`` counts
what other runs have collected (``VTA_COVERAGE_DIR``). Ends with status 1 if a bin is not hit.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np

TESTS = Path(__file__).parents[1]
sys.path.insert(0, str(TESTS / "lib"))

import rtl_machines  # noqa: E402
from coverage_table import open_holes, table  # noqa: E402
from functional_coverage import Coverage  # noqa: E402
from programs import Program, random_program  # noqa: E402
from rtl_checks import check, check_results  # noqa: E402
from situations import situation_program  # noqa: E402

from vta_hw.verilated import VerilatedCore  # noqa: E402

MACHINES = ("tiny", "odd", "extended-tiny")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", type=int, default=200, help="per machine")
    parser.add_argument("--seed", type=int, default=0, help="of the first one")
    parser.add_argument("--machines", default=",".join(MACHINES), help="comma-separated")
    parser.add_argument("--add", type=Path, metavar="FOLDER", help="what other runs collected")
    asked = parser.parse_args()

    begin = time.perf_counter()
    coverage, launches = Coverage(), 0
    for name in asked.machines.split(",") if asked.machines else ():
        machine = rtl_machines.machine(name)
        for number in range(asked.seed, asked.seed + asked.programs):
            rng = np.random.default_rng([number, 13])
            made_up, turn = divmod(number, 4)
            program: Program = (
                situation_program(rng, machine, 3 * made_up + turn - 1)
                if turn
                else random_program(rng, machine)
            )
            place = 16 * int(rng.integers(64))
            for run in (
                check(VerilatedCore(machine), program, place, record_places=True),
                check_results(
                    VerilatedCore(machine), program, pressure=number + 1, record_places=True
                ),
            ):
                coverage.observe(program.table, run.timeline.places)
                launches += 1
    if asked.add is not None:
        coverage.add(asked.add)
    assert not coverage.unknown(), f"not in the list of bins: {coverage.unknown()}"
    print("\n".join(table(coverage)))
    print(f"{launches} launches here, {time.perf_counter() - begin:.0f} s")
    return 1 if any(open_holes(coverage).values()) else 0


if __name__ == "__main__":
    sys.exit(main())
