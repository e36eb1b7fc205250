"""A page in a browser, and all that went wrong in it."""

from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Locator


class OpenedPage:
    """``path`` in a window of its own, offline; ready for use."""

    def __init__(
        self,
        browser: Browser,
        path: Path,
        *,
        scheme: str = "light",
        size: tuple[int, int] = (1500, 1000),
    ):
        self._context = browser.new_context(
            viewport={"width": size[0], "height": size[1]}, color_scheme=scheme, offline=True
        )
        self.page = self._context.new_page()
        self.errors: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.name = f"{path.stem}-{scheme}"
        self.url = path.absolute().as_uri()
        self.page.goto(self.url)
        self.page.wait_for_selector("body[data-ready]", timeout=120_000)

    def _console(self, message: Any) -> None:
        # The driver's own remark on reading pixels back is none of the page's.
        if message.type in ("error", "warning") and "GL Driver Message" not in message.text:
            self.errors.append(message.text)

    def one(self, selector: str) -> Locator:
        return self.page.locator(selector)

    def text(self, selector: str) -> str:
        return self.one(selector).inner_text()

    def ask(self, expression: str, argument: object = None) -> Any:
        """The value of a JavaScript expression or function in the page."""
        return self.page.evaluate(expression, argument)

    def column(self, key: str) -> list[str]:
        """The cells of one column of the table, as shown."""
        return self.ask(
            """key => {
              const place = [...document.querySelectorAll("#table thead th[data-key]")]
                .findIndex((heading) => heading.dataset.key === key);
              return [...document.querySelectorAll("#table tbody tr")]
                .map((row) => row.cells[place].textContent);
            }""",
            key,
        )

    def marker(self, label: str) -> tuple[float, float]:
        """Where the point of the Pareto plot is on the screen."""
        self.one("#pareto").scroll_into_view_if_needed()
        found = self.ask(
            """label => {
              const plot = document.getElementById("pareto");
              const trace = plot.data.findIndex((each) => each.name === "points");
              const shown = plot.data[trace].customdata.map((i) => POINTS[i].label);
              const number = shown.indexOf(label);
              const markers = plot.querySelectorAll(".scatterlayer .trace");
              const box = [...markers][trace].querySelectorAll("path.point")[number]
                .getBoundingClientRect();
              return [box.x + box.width / 2, box.y + box.height / 2];
            }""",
            label,
        )
        return found[0], found[1]

    def reset(self) -> None:
        """As it was when it was opened."""
        self.page.mouse.move(0, 0)
        self.ask(
            """() => {
              const { colour, workload, filters, brushes } = state;
              const lines = colour || workload || filters.size || brushes.size;
              for (const key of ["x", "y"]) {
                state[key] = element(key).value = DATA[key];
                state[`${key}Log`] = element(`${key}-log`).checked = false;
              }
              state.colour = element("colour").value = "";
              state.stage = element("stage").value = "compute";
              state.share = element("share").checked = true;
              state.sort = { key: "", descending: false };
              state.selected = null;
              element("workload").value = "0";
              showWorkload(0);
              if (lines) clearFilters();  // draws everything, lines by emulated WebGL included
              else { draw(); drawSelected(); }
              scrollTo(0, 0);
            }"""
        )

    def close(self, screenshot: Path) -> None:
        """Keep a picture, and fail if anything went wrong or was asked for from outside."""
        self.page.screenshot(path=screenshot, full_page=True)
        self._context.close()
        assert self.errors == []
        self.check_alone()

    def check_alone(self) -> None:
        """Nothing was asked for but the page itself."""
        assert [
            url
            for url in self.requests
            if url != self.url and not url.startswith(("data:", "blob:"))
        ] == []
