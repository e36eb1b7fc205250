"""A real Chromium, without a window and without a network."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from opened_page import OpenedPage
    from playwright.sync_api import Browser

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)


def _executable() -> str:
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if path := shutil.which(name):
            return path
    pytest.skip("no Chromium; tests/browser/install_chromium.sh installs it on Debian")


@pytest.fixture(scope="session")
def browser() -> "Iterator[Browser]":
    from playwright.sync_api import sync_playwright

    executable = _executable()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def open_page(
    browser: "Browser", tmp_path_factory: pytest.TempPathFactory
) -> "Iterator[Callable[..., OpenedPage]]":
    """Opens a file; at the end nothing must have gone wrong in any page it opened.

    A picture of each is kept where VTA_SCREENSHOTS names a folder.
    """
    from opened_page import OpenedPage

    pages: list[OpenedPage] = []

    def opened(path: Path, **options: Any) -> OpenedPage:
        pages.append(OpenedPage(browser, path, **options))
        return pages[-1]

    yield opened
    folder = Path(os.environ.get("VTA_SCREENSHOTS") or tmp_path_factory.mktemp("screenshots"))
    folder.mkdir(parents=True, exist_ok=True)
    for number, page in enumerate(pages):
        page.close(folder / f"{number}-{page.name}.png")
