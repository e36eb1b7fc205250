"""Measures what the area model of sweeps is fitted on, and how far off it is on other machines.

    python benchmarks/area_model.py measure [--family xc7] [NAME ...]
    python benchmarks/area_model.py check [--family xc7] [--json]

`measure` synthesises the machines of vta/sweep/area/machines.yaml, minutes each, and puts one row
per part of each machine into vta/sweep/area/FAMILY.csv. `check` fits the model on all machines but
one, for each of them, and compares what it says about that one with synthesis.
"""

import argparse
import json
import sys
import time

from vta.sweep.area.measured import ROWS, Row, machines, part_of, read_rows, write_rows
from vta.sweep.area.model import RESOURCES, held_out


def measure(family: str, names: list[str]) -> None:
    from vta_hw.synth import FAMILIES, synthesize
    from vta_hw.top import Accelerator

    known = machines()
    for name in names or known:
        begin = time.perf_counter()
        figures = synthesize(Accelerator(known[name]), FAMILIES[family], top=name)
        parts: dict[str, dict[str, float]] = {}
        for module in figures.modules:
            sums = parts.setdefault(part_of(module.path), dict.fromkeys(RESOURCES, 0))
            for resource in RESOURCES:
                sums[resource] += getattr(module.own, resource)
        rows = [row for row in read_rows(family) if row.machine != name]
        rows += [Row(name, known[name].hash, part, **sums) for part, sums in parts.items()]
        order = list(known)
        rows.sort(key=lambda row: (order.index(row.machine), row.part))
        write_rows(family, rows)
        print(f"{name}: {time.perf_counter() - begin:.0f} s, {figures.total}", file=sys.stderr)


def check(family: str, as_json: bool) -> None:
    results = held_out(family)
    if as_json:
        print(json.dumps(results, indent=2))
        return
    print(f"{'machine':12}" + "".join(f"{resource:>24}" for resource in RESOURCES))
    for name, row in results["machines"].items():
        cells = [f"{row[r]['model']:,.0f} of {row[r]['synthesis']:,.0f}" for r in RESOURCES]
        print(f"{name:12}" + "".join(f"{cell:>24}" for cell in cells))
    errors = [f"{results['error'][resource]:.1%}" for resource in RESOURCES]
    print(f"{'median error':12}" + "".join(f"{error:>24}" for error in errors))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("action", choices=("measure", "check"))
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(machines()))
    parser.add_argument("--family", choices=sorted(ROWS), default="xc7")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(machines()):
        parser.error(f"no machine called {', '.join(unknown)}")
    if arguments.action == "measure":
        measure(arguments.family, arguments.names)
    else:
        check(arguments.family, arguments.json)


if __name__ == "__main__":
    main()
