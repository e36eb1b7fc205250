"""What a report is made of: points of sweeps and of saved runs, and their tables."""

import csv
import io
import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fake_compiler import FakeCompiler

from vta import compare, run
from vta.report.page_data import LAYER_FIELDS, as_script, page_data
from vta.report.pictures import best, pareto_front, pictures
from vta.report.point_table import csv_of, parquet_of, point_columns
from vta.report.study import Column, ReportError, Study, StudyPoint, read_study
from vta.sweep import run_sweep
from vta_isa.counters import CAUSES

WORKLOAD = {
    "name": "two",
    "layers": [
        {"name": "b", "kind": "dense", "m": 4, "k": 8, "n": 8, "count": 3},
        {"name": "c", "kind": "relu", "length": 40},
    ],
}
SPEC = {
    "name": "small",
    "base": "tiny",
    "axes": {"gemm.block": [4, 256], "compile.vthreads": [True, False]},
    "workloads": [WORKLOAD],
    "objectives": {"compute_wait_load": "min", "utilization": "max"},
}


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Study:
    folder = tmp_path_factory.mktemp("sweep") / "out"
    run_sweep(SPEC, folder, workers=1)
    return read_study([folder])


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    paths = []
    for machine in ("tiny", "default"):
        report = run(WORKLOAD, machine, compile_with=FakeCompiler())
        paths.append(tmp_path / f"{machine}.json")
        paths[-1].write_text(json.dumps(report.as_json()))
    return paths


def test_a_point_of_a_sweep_has_the_figures_of_a_run(swept: Study) -> None:
    point = swept.points[0]
    report = run(WORKLOAD, point.load_machine(), vthreads=True)
    total = report.total
    assert point.label == "#0"
    assert point.values["cycles"] == total.cycles
    assert point.values["utilization"] == pytest.approx(total.utilization)
    assert point.values["over_bound"] == pytest.approx(total.distance)
    assert point.values["dram_bytes"] == total.dram_read_bytes + total.dram_write_bytes
    assert point.values["time_us"] == pytest.approx(1e6 * total.cycles / report.machine.clock)
    assert point.values["gmacs_per_second"] == pytest.approx(
        total.macs / total.cycles * report.machine.clock / 1e9
    )
    for layer, expected in zip(point.layers, report.layers, strict=True):
        assert layer.cycles == expected.figures.cycles
        for stage, causes in layer.causes.items():
            assert sum(causes.values()) == layer.cycles
            for cause, cycles in expected.figures.stalls[stage].items():
                assert causes[cause] == cycles


def test_failed_points_stay_with_their_reason(swept: Study) -> None:
    assert [point.ok for point in swept.points] == [True, True, False, False]
    assert swept.points[2].error
    assert "cycles" not in swept.points[2].values
    assert len(swept.of("two")) == 2


def test_columns_are_axes_then_objectives_as_the_sweep_names_them(swept: Study) -> None:
    keys = [column.key for column in swept.columns]
    assert keys[:4] == ["gemm.block", "compile.vthreads", "compute_wait_load", "utilization"]
    assert {"cycles", "time_us", "dram_bytes"} <= set(keys)
    assert swept.column("utilization").better == "max"
    assert swept.column("compute_wait_load").unit == "cycle"
    assert [column.key for column in swept.varied()] == ["gemm.block", "compile.vthreads"]
    assert "compile.vthreads" not in [column.key for column in swept.numeric()]


def test_files_are_points_whose_axes_are_what_their_machines_differ_in(files: list[Path]) -> None:
    study = read_study(files)
    assert [point.label for point in study.points] == ["tiny", "default"]
    assert study.title == "two"
    varied = [column.key for column in study.varied()]
    assert "gemm.block_in" in varied
    assert "types.inp" not in varied
    assert "device" not in varied
    assert study.points[0].load_machine().name == "tiny"


def test_a_comparison_is_two_points(tmp_path: Path) -> None:
    both = compare(WORKLOAD, "tiny", compile_with=FakeCompiler())
    (tmp_path / "both.json").write_text(json.dumps(both.as_json()))
    study = read_study([tmp_path / "both.json"])
    assert [point.label for point in study.points] == [
        "both without virtual threads",
        "both with virtual threads",
    ]
    assert [column.key for column in study.varied()] == ["compile.vthreads"]
    cycles = [both.without.total.cycles, both.threaded.total.cycles]
    assert [point.values["cycles"] for point in study.points] == cycles


def test_folders_and_files_do_not_mix(tmp_path: Path, files: list[Path]) -> None:
    with pytest.raises(ReportError, match="is the folder of a sweep and stands alone"):
        read_study([tmp_path, files[0]])


def test_pareto_axes_are_an_objective_against_a_cost(swept: Study, files: list[Path]) -> None:
    assert read_study(files).pareto_axes() == ("cycles", "dram_bytes")
    assert swept.pareto_axes() == ("compute_wait_load", "utilization")  # costs are all the same
    assert swept.pareto_axes("utilization", "cycles") == ("utilization", "cycles")
    assert swept.pareto_axes("dram_bytes")[1] != "dram_bytes"
    with pytest.raises(ReportError, match=r"no point has a value 'cycels'.*cycles"):
        swept.pareto_axes("cycels")
    with pytest.raises(ReportError, match=r"compile\.vthreads has words for values"):
        swept.pareto_axes("compile.vthreads")


def test_points_are_found_by_label_and_by_number(swept: Study) -> None:
    assert swept.point("#1") is swept.points[1]
    assert swept.point("1") is swept.points[1]
    with pytest.raises(ReportError, match=r"there is no point '7'"):
        swept.point("7")


@pytest.mark.parametrize("seed", range(20))
def test_the_front_is_what_no_other_point_beats(seed: int) -> None:
    rng = np.random.default_rng(seed)
    print(f"seed {seed}")
    columns = (Column("a", "figure", better="min"), Column("b", "figure", better="max"))
    points = [
        StudyPoint(f"#{i}", "w", "ok", "", {"a": int(a), "b": int(b)}, {}, ())
        for i, (a, b) in enumerate(rng.integers(0, 8, size=(int(rng.integers(0, 40)), 2)))
    ]
    points.append(StudyPoint("none", "w", "ok", "", {"a": 0, "b": None}, {}, ()))
    study = Study("s", "", columns, tuple(points))
    found = pareto_front(study, points, "a", "b")
    values = [(point.values["a"], point.values["b"]) for point in points[:-1]]
    expected = [
        point
        for point, (a, b) in zip(points, values, strict=False)
        if not any((c, d) != (a, b) and c <= a and d >= b for c, d in values)
    ]
    assert sorted(point.label for point in found) == sorted(point.label for point in expected)
    assert [point.values["a"] for point in found] == sorted(point.values["a"] for point in found)


def test_the_best_point_follows_the_first_objective(swept: Study) -> None:
    chosen = best(swept, "two")
    least = min(point.values["compute_wait_load"] for point in swept.of("two"))
    assert chosen.values["compute_wait_load"] == least


def test_csv_has_every_value_of_every_point(swept: Study) -> None:
    rows = list(csv.DictReader(io.StringIO(csv_of(swept))))
    assert [row["point"] for row in rows] == ["#0", "#1", "#2", "#3"]
    for row, point in zip(rows, swept.points, strict=True):
        assert row["status"] == point.status
        assert row["error"] == point.error
        assert row["compile.vthreads"] == json.dumps(point.values["compile.vthreads"])
        assert row["gemm.block_in"] == str(point.machine["gemm.block_in"])
        if point.ok:
            assert int(row["cycles"]) == point.values["cycles"]
            assert float(row["utilization"]) == point.values["utilization"]
        else:
            assert row["cycles"] == ""


def test_parquet_is_the_csv_with_types(swept: Study) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pip install 'vta-sdk[report]'")
    table = parquet.read_table(io.BytesIO(parquet_of(swept)))
    expected = point_columns(swept)
    assert table.column_names == list(expected)
    for name, values in expected.items():
        assert table[name].to_pylist() == values
    assert str(table.schema.field("cycles").type) == "int64"
    assert str(table.schema.field("utilization").type) == "double"
    assert str(table.schema.field("compile.vthreads").type) == "bool"


def test_parquet_columns_of_mixed_values_are_words(swept: Study) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pip install 'vta-sdk[report]'")
    first = swept.points[0]
    mixed = replace(first, values={**first.values, "gemm.block": "wide", "cycles": 1.5})
    study = replace(swept, points=(mixed, *swept.points[1:]))
    table = parquet.read_table(io.BytesIO(parquet_of(study)))
    assert table["gemm.block"].to_pylist() == ["wide", "4", "256", "256"]
    assert table["cycles"].to_pylist()[0] == 1.5


def test_the_page_is_told_every_value(swept: Study) -> None:
    told = json.loads(as_script(page_data(swept, "cycles", "utilization", "#1")))
    keys = [column["key"] for column in told["columns"]]
    causes = [(each["stage"], each["cause"]) for each in told["causes"]]
    assert (told["x"], told["y"], told["selected"]) == ("cycles", "utilization", "#1")
    for given, point in zip(told["points"], swept.points, strict=True):
        assert {**told["common"], **given["machine"]} == point.machine
        assert dict(zip(keys, given["values"], strict=True)) == {
            key: point.values.get(key) for key in keys
        }
        assert given.get("error", "") == point.error
        for row, layer in zip(given.get("layers", []), point.layers, strict=True):
            fields = dict(zip(LAYER_FIELDS, row, strict=True))
            assert fields["cycles"] == layer.cycles
            assert fields["use"] == pytest.approx(layer.utilization, rel=1e-5)
            assert (fields["place"] is None) == (layer.macs == 0)
            for (stage, cause), cycles in zip(causes, fields["causes"], strict=True):
                assert layer.causes[stage][cause] == cycles
    assert len(causes) == sum(map(len, CAUSES.values()))


def test_nothing_in_the_data_ends_the_script() -> None:
    hostile = "</script><!--\u2028&"
    text = as_script({"name": hostile})
    assert "<" not in text
    assert "\u2028" not in text
    assert json.loads(text) == {"name": hostile}
    with pytest.raises(ValueError, match="JSON"):
        as_script({"value": math.nan})


def test_every_picture_is_a_png(swept: Study, files: list[Path]) -> None:
    drawn = dict(pictures(swept, "cycles", "dram_bytes", ""))
    assert list(drawn) == [
        f"{name}.png" for name in ("pareto", "parallel", "heatmap", "roofline", "stalls")
    ]
    single = dict(pictures(read_study(files[:1]), "cycles", "dram_bytes", ""))
    assert list(single) == ["heatmap.png", "roofline.png", "stalls.png"]
    for data in (*drawn.values(), *single.values()):
        assert data.startswith(b"\x89PNG\r\n")
    other = dict(pictures(swept, "utilization", "dram_bytes", "#1"))
    changed = {name for name in drawn if drawn[name] != other[name]}
    assert changed >= {"pareto.png"}


def test_pictures_of_several_workloads_have_their_names(files: list[Path], tmp_path: Path) -> None:
    other = {"name": "an/other", "layers": WORKLOAD["layers"]}
    (tmp_path / "b.json").write_text(
        json.dumps(run(other, "tiny", compile_with=FakeCompiler()).as_json())
    )
    study = read_study([files[0], tmp_path / "b.json"])
    names = [name for name, _ in pictures(study, "cycles", "dram_bytes", "")]
    assert "roofline-two.png" in names
    assert "roofline-an-other.png" in names
