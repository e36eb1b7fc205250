"""What a point can be judged by: each objective with its unit and the direction that is better."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from vta_isa.counters import COUNTERS


class Direction(StrEnum):
    """Which of two values is better."""

    MIN = "min"
    MAX = "max"


@dataclass(frozen=True)
class Objective:
    """A number every finished point has."""

    name: str
    unit: str
    sentence: str
    direction: Direction = Direction.MIN


AREA = ("lut", "lut_ram", "ff", "dsp", "block_ram")

_OWN = (
    Objective("cycles", "cycle", "of the whole workload, each layer as often as it runs"),
    Objective("time_us", "us", "those cycles at the machine's clock"),
    Objective(
        "utilization",
        "1",
        "multiply-accumulates asked for over those the GEMM core could have done",
        Direction.MAX,
    ),
    Objective("gmacs_per_second", "GMAC/s", "multiply-accumulates over the time", Direction.MAX),
    Objective("bound_cycles", "cycle", "below which no stream computes the workload"),
    Objective("over_bound", "1", "cycles over the bound; 1 is perfect"),
    Objective("dram_bytes", "byte", "read and written"),
    Objective("sram_bytes", "byte", "of all on-chip memories, OUT included"),
    Objective("macs_per_cycle", "MAC", "size of the GEMM core", Direction.MAX),
    Objective("lut", "LUT", "of the whole machine, by the area model"),
    Objective("lut_ram", "LUT", "that serve as memory, by the area model"),
    Objective("ff", "FF", "by the area model"),
    Objective("dsp", "block", "multiplier blocks, by the area model"),
    Objective("block_ram", "block", "memory blocks, by the area model"),
)
# Every counter is an objective too; those that share a name are the sums that are above.
OBJECTIVES: dict[str, Objective] = {
    **{
        counter.name: Objective(counter.name, counter.unit, counter.sentence)
        for counter in COUNTERS
    },
    **{objective.name: objective for objective in _OWN},
}

# Numbers that follow from a description, for `where`; they need no machine that can be built.
DERIVED = ("macs_per_cycle", "sram_bytes", "bus_bytes")


def derived(values: Mapping[str, Any]) -> dict[str, int]:
    """``DERIVED`` of a flat description (``gemm.batch`` → 1)."""
    acc = values["sram.acc"]
    out = acc * _bits(values["types.out"]) // _bits(values["types.acc"])
    return {
        "macs_per_cycle": values["gemm.batch"] * values["gemm.block_in"] * values["gemm.block_out"],
        "sram_bytes": sum(values[f"sram.{name}"] for name in ("uop", "inp", "wgt")) + acc + out,
        "bus_bytes": values["axi.data_bits"] // 8,
    }


def _bits(scalar: str) -> int:
    return int(scalar.removeprefix("int"))
