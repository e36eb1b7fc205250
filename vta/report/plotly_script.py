"""The plotting library of the page, taken from the Python package it comes with."""

from pathlib import Path

from .study import ReportError


def plotly_script() -> str:
    """plotly.js, ready to stand in a script element. ReportError where it is missing."""
    try:
        import plotly
    except ModuleNotFoundError:
        raise ReportError(
            "a report needs plotly, which is not installed; it comes with "
            "`pip install 'vta-sdk[report]'`"
        ) from None
    # `plotly.offline.get_plotlyjs` reads the same file, after a second of imports.
    path = Path(plotly.__path__[0]) / "package_data" / "plotly.min.js"
    return path.read_text(encoding="utf-8").replace("</script", "<\\/script")
