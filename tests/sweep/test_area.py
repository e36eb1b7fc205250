"""The area model: what it was fitted on, how far off it is; and synthesis itself."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vta.report.sweep_tables import area_lines
from vta.sweep import load_sweep, read_results
from vta.sweep.area import RESOURCES, estimate, held_out
from vta.sweep.area import model as module
from vta.sweep.area.measured import ROWS, Row, machines, part_of, read_rows
from vta.sweep.area.model import GROUPS
from vta.sweep.errors import SweepError
from vta.sweep.outcome import Outcome
from vta.sweep.points import planned_points
from vta.sweep.store import open_store
from vta.sweep.synthesis import synthesise_best
from vta_isa import load_machine

SPEC: dict[str, Any] = {
    "name": "mine",
    "base": "tiny",
    "axes": {"gemm.block": [4, 8], "memory.read_latency": [8, 16]},
    "workloads": ["matmul/single"],
    "objectives": ["cycles", "lut"],
}


@pytest.mark.parametrize("family", ROWS)
def test_every_row_is_of_a_machine_as_it_is_described_now(family: str) -> None:
    with ROWS[family].open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == len(read_rows(family))
    assert len({line["machine"] for line in lines}) >= 12


def test_the_hierarchy_is_cut_into_parts() -> None:
    assert part_of("core.compute.alu.lane3") == part_of("core.compute.alu") == "compute.alu"
    assert (part_of("core.compute"), part_of("core.load.pads"), part_of("core")) == (
        "compute",
        "load",
        "core",
    )
    assert part_of("") == part_of("csr") == "registers"


@pytest.mark.parametrize("family", ROWS)
def test_machines_it_has_not_seen_are_met_within_a_tenth(family: str) -> None:
    found = held_out(family)
    for resource in ("lut", "ff", "dsp"):
        assert found["error"][resource] < 0.1, resource
    assert set(found["machines"]) <= set(machines())


def test_held_out_is_a_fit_without_the_machine() -> None:
    """Against the same least squares, asked for one machine by hand."""
    name = next(iter(held_out("xc7")["machines"]))
    others = [row for row in read_rows("xc7") if row.machine != name]
    said = module._total(module._sizes(machines()[name]), module._fit(others))
    shown = held_out("xc7")["machines"][name]
    assert {resource: shown[resource]["model"] for resource in RESOURCES} == said


def test_a_law_that_the_model_can_state_is_found_again() -> None:
    """Rows that follow from weights give these weights' sums for machines not among them."""
    rng = np.random.default_rng(1)
    law = {
        (group, resource): rng.integers(0, 50, len(features)).astype(float)
        for group, (_, features) in GROUPS.items()
        for resource in RESOURCES
    }
    part_in = {
        **{"gemm": "compute.gemm", "alu": "compute.alu", "memory": "inp_memory"},
        **{"transfer": "store", "queues": "numbers", "rest": "fetch"},
    }
    rows = []
    for name, machine in machines().items():
        sizes = module._sizes(machine)
        for group, (_, features) in GROUPS.items():
            sums = {
                resource: float(law[group, resource] @ [sizes[feature] for feature in features])
                for resource in RESOURCES
            }
            rows.append(Row(name, machine.hash, part_in[group], **sums))
    weights = module._fit(rows)
    other = load_machine(
        {"gemm": {"batch": 2, "block_in": 8, "block_out": 8}, "sram": {"wgt": "64 KiB"}}
    )
    said, expected = (module._total(module._sizes(other), each) for each in (weights, law))
    for resource in RESOURCES:
        assert said[resource] == pytest.approx(expected[resource], rel=1e-3)


def test_without_any_machine_there_is_no_model() -> None:
    with pytest.raises(SweepError, match="no machine has been synthesised"):
        module._fit([])


def test_more_of_everything_takes_more() -> None:
    small, large = (
        estimate(load_machine({"gemm": {"block_in": n, "block_out": n}, "sram": sram}), "xc7")
        for n, sram in (
            (8, {"uop": "4 KiB", "inp": "8 KiB", "wgt": "16 KiB", "acc": "16 KiB"}),
            (16, {}),
        )
    )
    assert all(small[resource] < large[resource] for resource in ("lut", "ff", "dsp", "block_ram"))


def test_the_best_machines_are_synthesised_once_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep = load_sweep(SPEC)
    made: list[str] = []

    def area(machine: Any, family: str) -> dict[str, float]:
        made.append(machine.hash)
        return dict.fromkeys(RESOURCES, 7)

    monkeypatch.setattr("vta.sweep.synthesis._area", area)
    points = planned_points(sweep)
    # Two machines, each with two memories; the last point is the best, the first the next.
    cycles = [20, 40, 30, 10]
    with open_store(tmp_path, sweep, planned=4, versions={"code": "1"}) as store:
        hashes = [load_machine(point.machine).hash for point in points]
        store.add(
            [
                (
                    point,
                    Outcome(
                        point.index,
                        "ok",
                        machine_hash=hashes[point.index],
                        cycles=cycles[point.index],
                        objectives=json.dumps({"cycles": cycles[point.index], "lut": 1}),
                        area=json.dumps(dict.fromkeys(RESOURCES, 5)),
                    ),
                )
                for point in points
            ]
        )
        for count in (1, 2, 2):
            synthesise_best(read_results(tmp_path), count, store.add_synthesis, lambda text: None)
    assert made == [hashes[3], hashes[0]]
    results = read_results(tmp_path)
    assert all(point.synthesis == dict.fromkeys(RESOURCES, 7) for point in results.points)
    lines = list(area_lines(results))
    assert lines[0].startswith("area: a model of ")
    assert "synthesis of point 0's machine: lut 7 (model 5), " in lines[1]
    assert len(lines) == 3
