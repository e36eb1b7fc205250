"""The main job, above a compiler and a device that are exact and instant."""

import json
import re

import numpy as np
import pytest
from fake_compiler import FakeCompiler, fake_launch

from vta.figures import measured, no_stalls, summed
from vta.job import WrongResult, compare, run
from vta.report import tables
from vta.report.roofline import draw
from vta.workloads import Layer
from vta_isa.errors import StreamError, WorkloadError
from vta_isa.launch import Launch
from vta_isa.machine import Machine

SMALL = {
    "name": "small",
    "layers": [
        {"name": "one", "kind": "dense", "count": 2, "m": 1, "k": 8, "n": 8},
        {"name": "two", "kind": "add", "length": 20},
        {"name": "none", "kind": "dense", "count": 0, "m": 4, "k": 8, "n": 8},
    ],
    "totals": {"products": ["one", "none"]},
}


def test_a_total_counts_each_layer_as_often_as_the_network_runs_it() -> None:
    report = run(SMALL, "tiny", compile_with=FakeCompiler())
    one, two, none = (layer.figures for layer in report.layers)
    assert report.total.cycles == 2 * one.cycles + two.cycles
    assert report.total.macs == 2 * one.macs
    assert report.total.stalls["load"]["idle"] == (
        2 * one.stalls["load"]["idle"] + two.stalls["load"]["idle"]
    )
    assert report.totals["products"].cycles == 2 * one.cycles
    assert none.cycles > 0


def test_the_report_has_the_promised_keys_and_survives_json() -> None:
    report = run(SMALL, "tiny", compile_with=FakeCompiler())
    data = report.as_json()
    assert json.loads(json.dumps(data)) == data
    assert {"machine", "layers", "total"} <= set(data)
    for layer in json.loads(json.dumps(data))["layers"]:
        promised = "name macs instructions cycles utilization bound_cycles dram_read_bytes "
        promised += "dram_write_bytes stalls checked"
        assert set(promised.split()) <= set(layer)
        assert layer["checked"] is True


def test_utilization_is_macs_asked_for_over_macs_possible() -> None:
    launches = [fake_launch(10, load_instructions=1), fake_launch(30, store_instructions=2)]
    figures = measured(launches, macs=320, bound_cycles=20, peak=16)
    assert (figures.cycles, figures.instructions) == (40, 3)
    assert figures.utilization == 0.5
    assert figures.distance == 2
    assert figures.stalls["store"]["idle"] == 40


def test_nothing_summed_is_nothing() -> None:
    nothing = summed([], peak=16)
    assert (nothing.cycles, nothing.utilization, nothing.distance) == (0, 0.0, 0.0)
    assert nothing.stalls == no_stalls()


def test_a_wrong_number_names_layer_index_and_both_values() -> None:
    with pytest.raises(WrongResult) as wrong:
        run(SMALL, "tiny", compile_with=FakeCompiler(wrong=("two",)))
    pattern = (
        r"^small: two: wrong number from the simulator: output\[19\] = -?\d+, expected -?\d+ "
        r"\(1 of 20 differ\)$"
    )
    assert re.match(pattern, str(wrong.value)), wrong.value


def test_an_output_of_another_shape_is_wrong() -> None:
    class Flat:
        def run(self, *_: object, **__: object) -> tuple[np.ndarray, list[Launch]]:
            return np.zeros(1, np.int8), [fake_launch(1)]

    def compiler(layer: Layer, machine: Machine, vthreads: bool) -> Flat:
        return Flat()

    with pytest.raises(WrongResult, match=r"output of shape \(1,\), expected \(1, 8\)"):
        run(SMALL, "tiny", compile_with=compiler)


def test_an_error_from_below_keeps_its_type_and_gains_the_layer() -> None:
    compiler = FakeCompiler(error=StreamError("insn 3: no such opcode", insn=3))
    with pytest.raises(StreamError, match=r"^small: one: insn 3: no such opcode$") as refusal:
        run(SMALL, "tiny", compile_with=compiler)
    assert refusal.value.insn == 3


def test_an_unknown_device_is_refused_before_any_work() -> None:
    compiler = FakeCompiler()
    with pytest.raises(WorkloadError, match="there is no device 'sim'; did you mean 'simulator'"):
        run(SMALL, "tiny", device="sim", compile_with=compiler)
    assert compiler.compiled == []


@pytest.mark.parametrize("vthreads", [True, False])
def test_virtual_threads_are_asked_for(vthreads: bool) -> None:
    compiler = FakeCompiler()
    run(SMALL, "tiny", vthreads=vthreads, compile_with=compiler)
    assert compiler.compiled == [("one", vthreads), ("two", vthreads), ("none", vthreads)]


def test_a_comparison_runs_without_virtual_threads_first() -> None:
    compiler = FakeCompiler()
    both = compare("vector-add/short", "tiny", compile_with=compiler)
    assert compiler.compiled == [("short", False), ("short", True)]
    data = both.as_json()
    assert data["vthreads"] is True
    assert data["without_vthreads"] == both.without.as_json()


def test_progress_is_told_before_each_layer_and_at_the_end() -> None:
    told: list[tuple[str, int, int]] = []
    run(
        SMALL,
        "tiny",
        compile_with=FakeCompiler(),
        progress=lambda name, done, total: told.append((name, done, total)),
    )
    assert told == [("one", 0, 3), ("two", 1, 3), ("none", 2, 3), ("", 3, 3)]


def test_one_layer_alone_sees_the_data_it_sees_in_the_whole() -> None:
    whole = run("matmul", "tiny", compile_with=FakeCompiler())
    alone = run("matmul/ragged", "tiny", compile_with=FakeCompiler())
    in_whole = next(layer for layer in whole.layers if layer.name == "ragged")
    assert alone.layers[0].figures == in_whole.figures


def test_tables_have_a_row_per_layer_partial_sum_and_total() -> None:
    both = compare(SMALL, "tiny", compile_with=FakeCompiler())
    for table in (
        tables.layer_table(both.threaded),
        tables.stall_table(both.threaded),
        tables.gain_table(both),
    ):
        assert table.row_count == 3 + 1 + 1


def test_causes_that_never_occurred_are_left_out_of_the_table() -> None:
    table = tables.stall_table(run(SMALL, "tiny", compile_with=FakeCompiler()))
    headings = [str(column.header) for column in table.columns]
    assert "load\ncompute" in headings
    assert "load\ndram" not in headings


def test_the_roofline_is_a_png_with_or_without_anything_to_show() -> None:
    for result in (
        run("vector-add/short", "tiny", compile_with=FakeCompiler()),
        run("matmul", "tiny", vthreads=False, compile_with=FakeCompiler()),
        compare("matmul", "tiny", compile_with=FakeCompiler()),
    ):
        assert draw(result).startswith(b"\x89PNG\r\n\x1a\n")
