"""Every script of ``examples/`` is executed, and becomes a page with what it printed and drew.

The scripts are in the percent format of jupytext: cells begin with ``# %%``, those of text with
``# %% [markdown]``. A cell that fails stops the build.
"""

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jupytext
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell
from traitlets.config import Config

FOLDER = "examples"
# Sockets of this user, not ports that anybody on the machine can connect to.
_PRIVATE = Config({"KernelManager": {"transport": "ipc"}})
# Sharp on dense screens, too.
_SETUP = """\
%config InlineBackend.figure_formats = ["png"]
%config InlineBackend.rc = {"figure.dpi": 144, "font.size": 9}
"""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    root = Path(config.docs_dir).parent
    for script in sorted((root / FOLDER).glob("*.py")):
        notebook = jupytext.read(script)
        notebook.cells.insert(0, new_code_cell(_SETUP))
        client = NotebookClient(notebook, kernel_name="python3", timeout=600, config=_PRIVATE)
        client.execute(cwd=str(root))
        pictures: list[bytes] = []
        text = "\n\n".join(
            part for cell in notebook.cells[1:] for part in _parts(cell, script.stem, pictures)
        )
        note = f"This page is [{FOLDER}/{script.name}](../../{FOLDER}/{script.name}), executed."
        head, _, rest = text.partition("\n")
        page = f"{head}\n\n*{note}*\n{rest}\n"
        files.append(File.generated(config, f"{FOLDER}/{script.stem}.md", content=page))
        for number, picture in enumerate(pictures):
            uri = f"{FOLDER}/{script.stem}_{number}.png"
            files.append(File.generated(config, uri, content=picture))
    return files


def _parts(cell: Any, stem: str, pictures: list[bytes]) -> Iterator[str]:
    """The Markdown of one cell; pictures are appended to ``pictures``."""
    if cell.cell_type == "markdown":
        yield cell.source
        return
    yield f"```python\n{cell.source.rstrip()}\n```"
    printed = "".join(out.text for out in cell.outputs if out.output_type == "stream")
    if printed.strip():
        yield f"```{{.text .output}}\n{printed.rstrip()}\n```"
    for out in cell.outputs:
        if picture := out.get("data", {}).get("image/png"):
            yield f"![]({stem}_{len(pictures)}.png)"
            pictures.append(base64.b64decode(picture))
