"""A report as one HTML file that needs nothing else: no server, no network, no other file."""

import html
from importlib import resources
from string import Template

from .page_data import as_script, page_data
from .plotly_script import plotly_script
from .study import Study

# In the order in which they use each other.
SCRIPTS = (
    *("data.js", "format.js", "theme.js", "state.js", "pareto.js", "parallel.js", "table.js"),
    *("heatmap.js", "roofline.js", "stalls.js", "detail.js", "main.js"),
)


def report_page(study: Study, x: str, y: str, selected: str) -> str:
    """The page. ``x`` and ``y`` are the keys of the columns that the Pareto plot begins with,
    ``selected`` is the label of the point that is shown in detail."""
    return Template(_file("page.html")).substitute(
        title=html.escape(study.title),
        style=_file("page.css"),
        plotly=plotly_script(),
        data=as_script(page_data(study, x, y, selected)),
        script="\n".join(_file(name) for name in SCRIPTS),
    )


def _file(name: str) -> str:
    return (resources.files(__package__) / "page" / name).read_text(encoding="utf-8")
