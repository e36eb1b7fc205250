"""docs/hooks/check_links.py finds what is wrong with a site; `make docs` runs it on ours."""

from pathlib import Path

import pytest
from site_hooks import hook

check_site = hook("check_links").check_site


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "deep").mkdir()
    (tmp_path / "index.html").write_text('<h1 id="top">Home</h1><a href="deep/page.html#part">')
    (tmp_path / "deep/page.html").write_text('<h2 id="part">Part</h2><a href="../index.html#top">')
    return tmp_path


def test_a_site_that_holds_together_has_no_problem(site: Path) -> None:
    assert check_site(site) == []


@pytest.mark.parametrize(
    ("html", "problem"),
    [
        ('<a href="nowhere.html">', "'nowhere.html' is no file of the site"),
        ('<img src="a.png">', "'a.png' is no file of the site"),
        ('<a href="index.html#bottom">', "'index.html#bottom' has no such anchor"),
        ('<a href="#bottom">', "'#bottom' has no such anchor"),
        (
            '<script src="https://example.org/x.js">',
            "'https://example.org/x.js' is loaded from another host",
        ),
        ('<link href="//example.org/x.css">', "'//example.org/x.css' is loaded from another host"),
    ],
)
def test_problems_are_named_with_their_page(site: Path, html: str, problem: str) -> None:
    (site / "bad.html").write_text(html)

    assert check_site(site) == [f"bad.html: {problem}"]


@pytest.mark.parametrize(
    "html",
    [
        '<a href="https://example.org/">',
        '<a href="mailto:nobody@example.org">',
        '<img src="data:image/png;base64,AA==">',
        '<a href="deep/page.html">',
        '<a name="here"></a><a href="#here">',
    ],
)
def test_links_that_are_right_are_left_alone(site: Path, html: str) -> None:
    (site / "good.html").write_text(html)

    assert check_site(site) == []
