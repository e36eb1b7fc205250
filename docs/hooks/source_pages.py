"""Links from a page to a file of the checkout lead to a page that shows the file.

Pages of ``docs/`` link to sources as ``../vta_isa/microarch.py``, which works where the checkout is
browsed. The site has only what is in ``docs/``, so every file that is linked becomes a page, and a
folder becomes a list of the pages of its files.
"""

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

LINK = re.compile(r"(?P<head>\]\()(?P<target>\.\.?/[^)#\s]+)(?P<anchor>#[^)\s]*)?(?=\))")
LANGUAGES = {".py": "python", ".cpp": "cpp", ".yaml": "yaml", ".md": "markdown", ".toml": "toml"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    root = Path(config.docs_dir).parent
    linked = {
        path
        for file in files.documentation_pages()
        for _, path in _outside(file.content_string, file.src_uri, root)
    }
    folders = {path for path in linked if (root / path).is_dir()}
    for path in sorted(folders):
        names = sorted(file.name for file in (root / path).iterdir() if file.suffix in LANGUAGES)
        linked |= {f"{path}/{name}" for name in names}
        files.append(File.generated(config, f"source/{path}.md", content=_list(path, names)))
    for path in sorted(linked - folders):
        text = (root / path).read_text(encoding="utf-8")
        files.append(File.generated(config, f"source/{path}.md", content=_source_page(path, text)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    root = Path(config.docs_dir).parent
    here = posixpath.dirname(page.file.src_uri)
    shown = dict(_outside(markdown, page.file.src_uri, root))

    def replace(match: re.Match[str]) -> str:
        path = shown.get(match["target"])
        if path is None:
            return match[0]
        return match["head"] + posixpath.relpath(f"source/{path}.md", here or ".")

    return LINK.sub(replace, markdown)


def _outside(markdown: str, src_uri: str, root: Path) -> Iterator[tuple[str, str]]:
    """``(target, path from the root)`` of each link to something outside of ``docs/``."""
    for match in LINK.finditer(markdown):
        path = posixpath.normpath(
            posixpath.join("docs", posixpath.dirname(src_uri), match["target"])
        )
        if not path.startswith(("docs/", "..")) and (root / path).exists():
            yield match["target"], path


def _list(path: str, names: list[str]) -> str:
    folder = posixpath.basename(path)
    lines = (f"- [{name}]({folder}/{name}.md)" for name in names)
    return "\n".join([f"---\ntitle: {path}\n---\n\n# {path}\n", *lines, ""])


def _source_page(path: str, text: str) -> str:
    language = LANGUAGES.get(Path(path).suffix, "text")
    return (
        f"---\ntitle: {path}\nsearch: {{exclude: true}}\nhide: [toc]\n---\n\n# {path}\n\n"
        f'``````{{.{language} linenums="1"}}\n{text.rstrip()}\n``````\n'
    )
