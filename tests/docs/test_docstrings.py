"""Whatever the pages of the Python API show has a docstring."""

import re
from collections.abc import Iterator

import griffe
import pytest
from site_hooks import ROOT

PACKAGES = ("vta_isa", "vta_runtime", "simulator", "compiler", "vta", "vta_hw")
SHOWN = sorted(
    name
    for page in ROOT.glob("docs/api/*.md")
    for name in re.findall(r"^::: (\S+)", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
)


@pytest.fixture(scope="module")
def sources() -> griffe.ModulesCollection:
    """Every package, as read from its sources; nothing is imported."""
    loader = griffe.GriffeLoader(search_paths=[ROOT])
    for package in PACKAGES:
        loader.load(package)
    loader.resolve_aliases(external=False)
    return loader.modules_collection


def undocumented(module: griffe.Object) -> Iterator[str]:
    """Public names of a module without a docstring, and those of its classes."""
    for name, member in module.members.items():
        if not member.is_public or member.is_module:
            continue
        target = member.final_target if member.is_alias else member
        if not target.docstring:
            yield f"{module.path}.{name}"
        if target.is_class:
            for inner, part in target.members.items():
                shown = not part.is_alias and (part.is_function or "property" in part.labels)
                own = shown and not inner.startswith("_") and inner != "elaborate"  # Amaranth's
                if own and not part.docstring:
                    yield f"{target.path}.{inner}"


def test_pages_show_something() -> None:
    assert len(SHOWN) > 8


@pytest.mark.parametrize("name", SHOWN)
def test_what_a_page_shows_is_documented(name: str, sources: griffe.ModulesCollection) -> None:
    assert list(undocumented(sources[name])) == []
