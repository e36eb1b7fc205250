"""The site that was built holds together, and needs nothing but itself.

Every link, picture, script and style sheet of every page leads to a file of the site, and to an
anchor that is there; nothing is loaded from another host. MkDocs checks links between Markdown
pages; this looks at the HTML, docstrings and generated pages included.
"""

import posixpath
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError

# Attributes that make a browser load something at once; only a link may lead out of the site.
LOADED = {("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src"), ("source", "src")}


class Document(HTMLParser):
    """What a page refers to, and the anchors it has."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.references: list[tuple[bool, str]] = []  # (loaded at once, target)
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        for name in ("href", "src"):
            canonical = tag == "link" and given.get("rel") == "canonical"
            if name in given and not canonical:
                self.references.append(((tag, name) in LOADED, given[name]))


def on_post_build(config: MkDocsConfig) -> None:
    problems = check_site(Path(config.site_dir))
    if problems:
        raise PluginError("\n".join(problems))


def check_site(site: Path) -> list[str]:
    """What is wrong with the site in this folder, one line each; empty if nothing is."""
    documents = {path.relative_to(site).as_posix(): path for path in site.rglob("*.html")}
    parsed = {name: Document(path) for name, path in documents.items()}
    problems = []
    for name, document in sorted(parsed.items()):
        if name == "404.html":  # its links count from wherever it is shown
            continue
        for loaded, target in document.references:
            problem = _problem(site, name, loaded, target, parsed)
            if problem:
                problems.append(f"{name}: {target!r} {problem}")
    return problems


def _problem(
    site: Path, page: str, loaded: bool, target: str, parsed: dict[str, Document]
) -> str | None:
    parts = urlsplit(target)
    if parts.scheme in ("http", "https") or parts.netloc:
        return "is loaded from another host" if loaded else None
    if parts.scheme:
        return None  # mailto:, data:
    path = posixpath.normpath(posixpath.join(posixpath.dirname(page), unquote(parts.path)))
    path = page if not parts.path else path
    if not (site / path).is_file():
        return "is no file of the site"
    anchor = unquote(parts.fragment)
    if anchor and path in parsed and not anchor.startswith("__"):
        return None if anchor in parsed[path].anchors else "has no such anchor"
    return None
