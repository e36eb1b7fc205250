"""The page of ``vta report`` in a real browser: it loads alone, and everything can be touched."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("playwright", reason="needs playwright: pip install -e '.[dev]'")
pytest.importorskip("plotly", reason="needs plotly: pip install 'vta-sdk[report]'")

from opened_page import OpenedPage

import vta
from vta.report.page import report_page
from vta.report.pictures import pareto_front
from vta.report.study import Study, StudyPoint, read_study
from vta.sweep import run_sweep

# `make large-report` has 5,000; lines by emulated WebGL take seconds then.
MANY = int(os.environ.get("VTA_REPORT_POINTS", "1500"))
MISSING = "\N{EN DASH}"  # in place of a value
SPEC = {
    "name": "small & <b>sweep</b>",
    "about": "for tests",
    "base": "tiny",
    "axes": {"gemm.block": [4, 8, 256], "memory.read_latency": [8, 40, 72]},
    "workloads": [
        {
            "name": "two",
            "layers": [
                {"name": "b", "kind": "dense", "m": 4, "k": 16, "n": 8, "count": 3},
                {"name": "c", "kind": "relu", "length": 40},
                {"name": "d", "kind": "dense", "m": 8, "k": 16, "n": 16},
            ],
        },
        {"name": "one", "layers": [{"name": "a", "kind": "dense", "m": 4, "k": 8, "n": 8}]},
    ],
    "objectives": {"cycles": "min", "utilization": "max", "dram_bytes": "min"},
}


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    folder = tmp_path_factory.mktemp("sweep") / "out"
    run_sweep(SPEC, folder, workers=1)
    return read_study([folder])


@pytest.fixture(scope="module")
def html(study: Study, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(study, tmp_path_factory.mktemp("page") / "report.html")


@pytest.fixture(scope="module")
def shared(open_page: Callable[..., OpenedPage], html: Path) -> OpenedPage:
    return open_page(html)


@pytest.fixture
def page(shared: OpenedPage) -> OpenedPage:
    """The page of ``study``; opened once, and as good as new."""
    shared.reset()
    return shared


def written(study: Study, path: Path, x: str = "cycles", y: str = "dram_bytes") -> Path:
    path.write_text(report_page(study, x, y, ""), encoding="utf-8")
    return path


def finished(study: Study, workload: str = "two") -> list[StudyPoint]:
    return study.of(workload)


def test_it_loads_alone_and_shows_every_view(page: OpenedPage, study: Study) -> None:
    assert page.text("#title") == "small & <b>sweep</b>"
    assert page.text("#about") == "for tests; 18 of 18 points"
    assert page.text("#count") == "9 of 9 points, 3 without a result"
    for view in ("pareto", "parallel", "heatmap", "roofline", "stalls"):
        assert page.ask("id => document.getElementById(id).data.length > 0", view), view
        assert page.one(f"#{view} .main-svg").first.is_visible()
    assert len(page.column("point")) == 9


def test_hover_shows_the_machine(page: OpenedPage, study: Study) -> None:
    point = finished(study)[1]
    page.page.mouse.move(*page.marker(point.label))
    label = page.one("#pareto .hovertext").first
    label.wait_for()
    text = label.text_content()
    assert point.label in text
    assert f"gemm.block: {point.values['gemm.block']}" in text
    assert f"memory.read_latency: {point.values['memory.read_latency']}" in text
    assert f"cycles: {point.values['cycles']:,}" in text


def test_a_click_on_a_point_shows_its_row_and_everything_about_it(
    page: OpenedPage, study: Study
) -> None:
    best = min(finished(study), key=lambda point: point.values["cycles"])
    assert page.text("#detail-title") == f"Point {best.label}"
    chosen = next(point for point in finished(study) if point.label != best.label)
    page.page.mouse.click(*page.marker(chosen.label))
    row = page.one("#table tr.selected")
    row.wait_for()
    assert page.one("#table tr.selected").count() == 1
    assert row.locator("td").first.inner_text() == chosen.label
    assert page.text("#detail-title") == f"Point {chosen.label}"
    assert page.text("#roofline-section .selected-label") == chosen.label
    detail = page.text("#detail")
    assert f"{chosen.machine['gemm.block_in']}" in detail
    assert "axi.outstanding_reads" in detail
    for layer in chosen.layers:
        assert f"{layer.cycles:,}" in detail


def test_a_row_that_is_not_in_view_is_scrolled_to(page: OpenedPage, study: Study) -> None:
    box = "document.querySelector('#table-section .scroll')"
    page.ask(f"() => {{ {box}.style.maxHeight = '120px'; }}")
    page.page.mouse.click(*page.marker(finished(study)[-1].label))
    inside = """() => {
      const row = document.querySelector("#table tr.selected").getBoundingClientRect();
      const box = document.querySelector("#table-section .scroll").getBoundingClientRect();
      return box.top <= row.top && row.bottom <= box.bottom + 1;
    }"""
    page.one("#table tr.selected").wait_for()
    assert page.ask(inside)
    page.ask(f"() => {{ {box}.style.maxHeight = ''; }}")


@pytest.mark.parametrize(
    ("x", "y"), [("cycles", "utilization"), ("utilization", "dram_bytes"), ("gemm.block", "cycles")]
)
def test_the_front_is_of_the_axes_that_are_chosen(
    page: OpenedPage, study: Study, x: str, y: str
) -> None:
    page.one("#x").select_option(x)
    page.one("#y").select_option(y)
    shown = page.ask(
        "([x, y]) => paretoFront(shownPoints().filter((p) => p.ok), x, y).map((p) => p.label)",
        [x, y],
    )
    signs = {key: -1 if study.column(key).better == "max" else 1 for key in (x, y)}
    costs = {p.label: [signs[key] * p.values[key] for key in (x, y)] for p in finished(study)}
    expected = {
        label
        for label, mine in costs.items()
        if not any(
            other != mine and other[0] <= mine[0] and other[1] <= mine[1]
            for other in costs.values()
        )
    }
    assert set(shown) == expected
    assert {point.label for point in pareto_front(study, finished(study), x, y)} == expected
    title = page.ask("() => document.getElementById('pareto').layout.xaxis.title.text")
    assert title.split(" ")[0] == x
    assert f"{len(expected)} of 6 points are on the front" in page.text("#front")
    page.one("#y-log").check()
    assert page.ask("() => document.getElementById('pareto').layout.yaxis.type") == "log"


def test_a_colour_can_be_chosen(page: OpenedPage, study: Study) -> None:
    page.one("#colour").select_option("utilization")
    colours = page.ask("() => document.getElementById('pareto').data[1].marker.color")
    expected = [point.values["utilization"] for point in finished(study)]
    assert colours == pytest.approx(expected)


def test_headings_sort_there_and_back_and_points_without_a_value_come_last(
    page: OpenedPage, study: Study
) -> None:
    points = finished(study)
    page.one("#table th[data-key=cycles] button").click()
    rising = [f"{value:,}" for value in sorted(point.values["cycles"] for point in points)]
    assert page.column("cycles") == [*rising, MISSING, MISSING, MISSING]
    assert page.one("#table th[data-key=cycles]").get_attribute("aria-sort") == "ascending"
    page.one("#table th[data-key=cycles] button").click()
    assert page.column("cycles") == [*rising[::-1], MISSING, MISSING, MISSING]
    page.one("#table th[data-key=utilization] button").click()  # more is better: the best first
    best = max(points, key=lambda point: point.values["utilization"])
    assert page.column("point")[0] == best.label


def test_filters_keep_what_they_say_everywhere(page: OpenedPage, study: Study) -> None:
    page.one("#table input[data-filter='memory.read_latency']").fill(">= 40")
    page.page.wait_for_function(
        "() => document.getElementById('count').textContent.startsWith('6 of')"
    )
    assert set(page.column("memory.read_latency")) == {"40", "72"}
    assert page.ask("() => document.getElementById('pareto').data[1].x.length") == 4
    assert page.ask("() => document.getElementById('heatmap').data[0].z.length") == 4
    page.one("#table input[data-filter='status']").fill("err")
    page.page.wait_for_function(
        "() => document.getElementById('count').textContent.startsWith('2 of')"
    )
    assert set(page.column("gemm.block")) == {"256"}
    page.one("#clear").click()
    assert page.text("#count").startswith("9 of 9 points")
    assert page.one("#table input[data-filter='status']").input_value() == ""


def test_a_filter_that_means_nothing_is_marked_and_drops_nothing(page: OpenedPage) -> None:
    box = page.one("#table input[data-filter='cycles']")
    box.fill("> a lot")
    assert "wrong" in box.get_attribute("class")
    assert page.text("#count").startswith("9 of 9 points")


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("4", [4]),
        ("= 4", [4]),
        ("<5", [-1, 0.5, 4]),
        ("<= 4", [-1, 0.5, 4]),
        (">4", [5000, 2048]),
        (">= 2Ki", [5000, 2048]),
        ("> 2KiB", [5000]),
        ("1k .. 5k", [5000, 2048]),
        ("50%", [0.5]),
        ("-2 .. 0", [-1]),
        ("5e3", [5000]),
    ],
)
def test_number_filters(shared: OpenedPage, text: str, kept: list[float]) -> None:
    values = "[-1, 0.5, 4, 5000, 2048, null]"
    assert shared.ask(f"text => {values}.filter(filterOf(text, true))", text) == kept


@pytest.mark.parametrize("text", ["a", "4 4", "..", "4 ..", "< ", "1x"])
def test_what_is_no_number_filter(shared: OpenedPage, text: str) -> None:
    assert shared.ask("text => filterOf(text, true)", text) is None


def test_dragging_along_an_axis_keeps_the_lines_that_cross_there(
    page: OpenedPage, study: Study
) -> None:
    page.one("#parallel").scroll_into_view_if_needed()
    axis = page.one("#parallel .axis-brush .background").first.bounding_box()
    middle = axis["x"] + axis["width"] / 2
    page.page.mouse.move(middle, axis["y"] + axis["height"] - 8)
    page.page.mouse.down()
    page.page.mouse.move(middle, axis["y"] + axis["height"] * 0.7, steps=8)
    page.page.mouse.up()
    page.page.wait_for_function(
        "() => !document.getElementById('count').textContent.startsWith('9 of')"
    )
    lowest = min(point.values["gemm.block"] for point in finished(study))
    assert set(page.column("gemm.block")) == {str(lowest)}
    page.one("#clear").click()
    assert page.text("#count").startswith("9 of 9 points")


def test_a_click_on_the_heat_map_selects(page: OpenedPage, study: Study) -> None:
    page.one("#heatmap").scroll_into_view_if_needed()
    box = page.one("#heatmap .plot .hm, #heatmap .heatmaplayer image").first.bounding_box()
    rows = len(finished(study))
    page.page.mouse.click(box["x"] + box["width"] * 0.1, box["y"] + box["height"] * 2.5 / rows)
    assert page.text("#detail-title") == f"Point {finished(study)[2].label}"
    use = page.ask("() => document.getElementById('heatmap').data[0].z")
    expected = [
        [layer.utilization if layer.macs else None for layer in point.layers]
        for point in finished(study)
    ]
    assert len(use) == rows
    for got, row in zip(use, expected, strict=True):
        assert [value for value in got if value is not None] == pytest.approx(
            [value for value in row if value is not None], rel=1e-5
        )


def test_stalls_are_those_of_the_chosen_stage(page: OpenedPage, study: Study) -> None:
    label = page.ask("() => state.selected.label")
    chosen = next(point for point in finished(study) if point.label == label)
    page.one("#stage").select_option("load")
    page.one("#share").uncheck()
    shown = page.ask(
        "() => document.getElementById('stalls').data.map((trace) => [trace.name, trace.x])"
    )
    assert {name for name, _ in shown} >= {"busy", "wait for dram", "idle"}
    for row, layer in enumerate(chosen.layers):
        assert sum(values[row] for _, values in shown) == layer.cycles
        waits = dict((name, values[row]) for name, values in shown)["wait for dram"]
        assert waits == layer.causes["load"]["wait_dram"]


def test_the_roofline_has_the_layers_that_multiply(page: OpenedPage, study: Study) -> None:
    chosen = next(p for p in finished(study) if p.label == page.ask("() => state.selected.label"))
    machine = chosen.load_machine()
    _, places = page.ask("() => document.getElementById('roofline').data")
    assert places["text"] == ["b", "d"]
    layer = chosen.layers[0]
    busier = max(layer.dram_read_bytes, layer.dram_write_bytes)
    assert places["x"][0] == pytest.approx(2 * layer.macs / busier, rel=1e-5)
    gops = 2 * layer.macs / layer.cycles * machine.clock / 1e9
    assert places["y"][0] == pytest.approx(gops, rel=1e-5)


def test_another_workload_keeps_the_machine(page: OpenedPage, study: Study) -> None:
    before = page.ask("() => VARIED.map((key) => valueOf(state.selected, key))")
    page.one("#workload").select_option(label="one")
    assert page.ask("() => VARIED.map((key) => valueOf(state.selected, key))") == before
    assert page.text("#count") == "9 of 9 points, 3 without a result"
    labels = [point.label for point in study.points if point.workload == "one"]
    assert page.column("point") == labels


def test_a_point_without_a_result_says_why(page: OpenedPage, study: Study) -> None:
    failed = next(point for point in study.points if not point.ok)
    page.one(f"#table tbody tr:has(td:text-is('{failed.label}'))").click()
    assert page.text("#detail .failure") == f"error: {failed.error}"
    assert page.text("#detail-title") == f"Point {failed.label}"


def test_a_single_run_is_a_page_without_a_front(
    open_page: Callable[..., OpenedPage], tmp_path: Path
) -> None:
    report = vta.run(
        {"name": "</script><img src=x>", "layers": SPEC["workloads"][0]["layers"]}, "tiny"
    )
    (tmp_path / "run.json").write_text(json.dumps(report.as_json()))
    study = read_study([tmp_path / "run.json"])
    page = open_page(written(study, tmp_path / "report.html"), scheme="dark")
    assert page.text("#title") == "</script><img src=x>"
    assert page.one("#pareto-section").is_hidden()
    assert page.one("#parallel-section").is_hidden()
    assert page.text("#detail-title") == "Point run"
    assert page.column("cycles") == [f"{report.total.cycles:,}"]
    assert page.one("img").count() == 0
    assert page.ask("() => document.documentElement.dataset.theme") == "dark"


def test_light_and_dark(shared: OpenedPage) -> None:
    background = "() => getComputedStyle(document.body).backgroundColor"
    colours = []
    for theme in ("dark", "light"):
        shared.one("#theme").click()
        assert shared.ask("() => document.documentElement.dataset.theme") == theme
        colours.append(shared.ask(background))
        text = shared.ask("() => document.getElementById('pareto').layout.font.color")
        colours.append(text)
    assert len(set(colours)) == 4


def many(study: Study, count: int) -> Study:
    """``count`` points made of the finished ones, no two with the same figures."""
    rng = np.random.default_rng(1)
    some = finished(study)
    points = []
    for number in range(count):
        point = some[number % len(some)]
        values = dict(point.values)
        for key in ("cycles", "dram_bytes"):
            values[key] = int(values[key] * rng.uniform(0.5, 3)) * 8 + number % 8
        values["memory.read_latency"] = int(rng.integers(1, 200))
        points.append(replace(point, label=f"#{number}", values=values))
    return replace(study, points=tuple(points))


@pytest.mark.slow
def test_thousands_of_points_stay_usable(
    open_page: Callable[..., OpenedPage], study: Study, tmp_path: Path
) -> None:
    large = many(study, MANY)
    path = written(large, tmp_path / "large.html")
    page = open_page(path)
    assert page.text("#count") == f"{MANY} of {MANY} points"
    assert page.text("#page") == f"1\N{EN DASH}50 of {MANY}"
    page.one("#table th[data-key=cycles] button").click()
    cycles = sorted(point.values["cycles"] for point in large.points)
    assert page.column("cycles") == [f"{value:,}" for value in cycles[:50]]
    page.one("#next").click()
    assert page.column("cycles") == [f"{value:,}" for value in cycles[50:100]]
    seconds = page.ask(
        """() => {
          const took = (action) => {
            const begin = performance.now();
            action();
            return (performance.now() - begin) / 1000;
          };
          return {
            draw: took(draw),
            select: took(() => select(POINTS[1234])),
          };
        }"""
    )
    print(f"{MANY} points, {path.stat().st_size / 1e6:.1f} MB, seconds: {seconds}")
    assert page.text("#table tr.selected td:first-child") == "#1234"
    assert max(seconds.values()) < 5  # it takes a fraction; a loaded machine is no failure
