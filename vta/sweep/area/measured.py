"""What synthesis made of some machines: the data that the area model is fitted on."""

import csv
import io
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path

import yaml

from vta_isa.machine import Machine
from vta_isa.strict_yaml import StrictLoader

from ...files import write_whole

_FOLDER = Path(__file__).parent
ROWS = {family: _FOLDER / f"{family}.csv" for family in ("xc7",)}


@dataclass(frozen=True)
class Row:
    """One part of a machine on one family; counts as in ``vta_hw.synth.Area``."""

    machine: str
    hash: str
    part: str
    lut: float
    lut_ram: float
    ff: float
    dsp: float
    block_ram: float


@cache
def machines() -> dict[str, Machine]:
    """The machines of ``machines.yaml`` by name, the smallest first."""
    content = yaml.load((_FOLDER / "machines.yaml").read_text(), Loader=StrictLoader)
    return {name: Machine.model_validate({"name": name, **keys}) for name, keys in content.items()}


def part_of(path: str) -> str:
    """The part of the machine that a module of the hierarchy belongs to: ``core.compute.alu.x`` is
    in ``compute.alu``; what is directly in ``core.compute`` is in ``compute``."""
    names = path.split(".")
    if names[0] != "core":
        return "registers"  # and what connects them to the bus
    if names[1:2] == ["compute"]:
        return ".".join(names[1:3])
    return names[1] if len(names) > 1 else "core"


def read_rows(family: str) -> list[Row]:
    """Rows of a family, those of machines whose description has changed since left out."""
    if not ROWS[family].exists():
        return []
    with ROWS[family].open(newline="") as file:
        rows = [_row(line) for line in csv.DictReader(file)]
    known = machines()
    return [row for row in rows if row.machine in known and known[row.machine].hash == row.hash]


def write_rows(family: str, rows: list[Row]) -> None:
    """Replace the rows of a family."""
    text = io.StringIO()
    writer = csv.DictWriter(text, [field.name for field in fields(Row)], lineterminator="\n")
    writer.writeheader()
    for row in rows:
        numbers = {key: f"{value:g}" for key, value in asdict(row).items() if key in _NUMBERS}
        writer.writerow(asdict(row) | numbers)
    write_whole(ROWS[family], text.getvalue())


_NUMBERS = ("lut", "lut_ram", "ff", "dsp", "block_ram")


def _row(line: dict[str, str]) -> Row:
    numbers = {key: float(line[key]) for key in _NUMBERS}
    return Row(line["machine"], line["hash"], line["part"], **numbers)
