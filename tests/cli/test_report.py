"""``vta report``: what it writes, and what it refuses before it begins."""

import csv
import re
import sys
from pathlib import Path

import pytest

pytest.importorskip("plotly", reason="needs plotly: pip install 'vta-sdk[report]'")


@pytest.fixture
def saved(vta, compiler) -> str:
    assert vta("run", "matmul", "-c", "tiny", "--json", "tiny.json").status == 0
    return "tiny.json"


def test_everything_at_once(vta, saved: str) -> None:
    assert vta("run", "matmul", "--json", "default.json").status == 0
    outputs = ("-o", "r.html", "--png", "pictures", "--csv", "r.csv", "--parquet", "r.parquet")
    ended = vta("report", saved, "default.json", *outputs)
    assert ended.status == 0, ended.err
    assert ended.out.splitlines() == [
        *("r.html", "r.csv", "r.parquet"),
        *(
            f"pictures/{name}.png"
            for name in ("pareto", "parallel", "heatmap", "roofline", "stalls")
        ),
    ]
    for name in ended.out.splitlines():
        assert Path(name).stat().st_size > 0
    rows = list(csv.DictReader(Path("r.csv").read_text().splitlines()))
    assert [row["point"] for row in rows] == ["tiny", "default"]


def test_the_page_asks_for_nothing(vta, saved: str) -> None:
    assert vta("report", saved, "-o", "r.html").status == 0
    page = Path("r.html").read_text(encoding="utf-8")
    ours = page.replace(re.search(r"<script>\s*/\*\*\s*\* plotly.*?</script>", page, re.S)[0], "")
    assert not re.search(r"""(src|href)\s*=\s*["'](?!data:)""", ours)
    assert "default-src 'none'" in ours
    assert "://" not in ours


def test_options_choose_what_is_shown_first(vta, saved: str) -> None:
    assert vta("report", saved, "-o", "a.html").status == 0
    chosen = ("--x", "utilization", "--y", "time_us", "--point", "tiny")
    assert vta("report", saved, "-o", "b.html", *chosen).status == 0
    data = re.search(r'id="data">(.*?)</script>', Path("b.html").read_text())[1]
    assert '"x":"utilization","y":"time_us","selected":"tiny"' in data
    assert Path("a.html").read_text() != Path("b.html").read_text()


def one_line(ended, message: str, status: int = 1) -> None:
    assert ended.status == status, ended
    assert ended.err.startswith("vta: ")
    assert ended.err.count("\n") == 1
    assert message in ended.err


def test_bad_input_is_explained(vta, saved: str) -> None:
    one_line(vta("report", saved), "Say what to write: -o, --png, --csv or --parquet.", status=2)
    one_line(vta("report", "-o", "r.html"), "Missing argument", status=2)
    one_line(vta("report", "none.json", "-o", "r.html"), "none.json: no such file or directory")
    one_line(vta("report", saved, "-o", "no/r.html"), "no/r.html: cannot write: there is no folder")
    one_line(vta("report", saved, "-o", "r.html", "--x", "cycels"), "did you mean 'cycles'?")
    one_line(vta("report", saved, "-o", "r.html", "--point", "tinny"), "did you mean 'tiny'?")
    Path("empty").mkdir()
    one_line(vta("report", "empty", "-o", "r.html"), "name a folder that `vta sweep -o` made")
    Path("other.json").write_text("{}")
    one_line(vta("report", "other.json", "-o", "r.html"), "other.json: version: field required")
    assert not Path("r.html").exists()


@pytest.mark.parametrize(("module", "option"), [("plotly", "-o"), ("pyarrow", "--parquet")])
def test_what_is_not_installed_is_named(vta, saved, monkeypatch, module: str, option: str) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    ended = vta("report", saved, option, "out")
    one_line(ended, f"needs {module}, which is not installed; it comes with `pip install 'vta-sdk")
    assert not Path("out").exists()
