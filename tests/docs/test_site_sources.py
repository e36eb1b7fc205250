"""docs/hooks/source_pages.py: what pages link to outside of docs/ becomes a page of the site."""

from pathlib import Path

import pytest
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from site_hooks import hook

source_pages = hook("source_pages")


@pytest.fixture
def config(tmp_path: Path) -> MkDocsConfig:
    (tmp_path / "docs/deep").mkdir(parents=True)
    (tmp_path / "docs/other.md").write_text("# Other\n")
    (tmp_path / "room/inner").mkdir(parents=True)
    (tmp_path / "room/code.py").write_text("x = 1  # ```\n")
    (tmp_path / "room/inner/more.py").write_text("y = 2\n")
    config = MkDocsConfig()
    config.load_dict({"site_name": "test", "docs_dir": str(tmp_path / "docs")})
    config.validate()
    config.plugins._current_plugin = "test"  # as MkDocs sets it while a hook runs
    return config


def site(config: MkDocsConfig, name: str, text: str) -> tuple[str, dict[str, str]]:
    """The page's text as the site has it, and the pages made for it."""
    page = File.generated(config, name, content=text)
    files = source_pages.on_files(Files([page]), config)
    made = {file.src_uri: file.content_string for file in files if file is not page}
    shown = source_pages.on_page_markdown(text, Page(None, page, config), config, files)
    return shown, made


def test_a_file_becomes_a_page(config: MkDocsConfig) -> None:
    shown, made = site(config, "deep/page.md", "See [it](../../room/code.py), and `x`.")

    assert shown == "See [it](../source/room/code.py.md), and `x`."
    assert "x = 1  # ```\n" in made["source/room/code.py.md"]


def test_a_folder_becomes_a_list(config: MkDocsConfig) -> None:
    shown, made = site(config, "page.md", "[All](../room/inner)")

    assert shown == "[All](source/room/inner.md)"
    assert "[more.py](inner/more.py.md)" in made["source/room/inner.md"]
    assert "y = 2" in made["source/room/inner/more.py.md"]


@pytest.mark.parametrize("link", ["[a](other.md)", "[a](../docs/other.md)", "[a](../missing.py)"])
def test_other_links_are_left_alone(config: MkDocsConfig, link: str) -> None:
    assert site(config, "page.md", link) == (link, {})
