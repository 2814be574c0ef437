"""The page in a real browser: no network, sorting, filtering, a phone, no errors.

Runs where a Chromium is found; with RELIVE_REQUIRE_BROWSER=1 a missing one is a failure instead of a skip.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from PIL import Image

from relive.report.page import Report, write
from tests.report.fake import paper_like, searched

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

LAPTOP, PHONE = (1280, 800), (390, 844)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of many runs."""
    folder = tmp_path_factory.mktemp("report")
    grid, tuned = searched("split", "task", ("si",))
    runs = [run for run in paper_like("split", 2) if run.spec.method in ("none", "si", "dgr-distill", "rtf")]
    runs[0] = replace(runs[0], cpu_seconds=None)
    return write(Report(folder, runs + grid, tuned, {}), folder / "report.html")[0]


class Visit:
    """A page opened from disk; network requests are refused and recorded, and so are console errors."""

    def __init__(self, browser: Browser, path: Path, size: tuple[int, int], scheme: str = "light") -> None:
        width, height = size
        self.context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme="dark" if scheme == "dark" else "light"
        )
        self.page: Page = self.context.new_page()
        self.page.set_default_timeout(15_000)
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.route(lambda url: not url.startswith(("file:", "data:")), lambda route: route.abort())
        self.page.goto(path.as_uri())

    def column(self, label: str) -> list[str]:
        """The visible cells below a heading."""
        place = self.page.locator("#run-table thead th").all_inner_texts()
        index = next(i for i, text in enumerate(place) if text.startswith(label))
        return self.page.locator(f"#run-table tbody tr:not([hidden]) > :nth-child({index + 1})").all_inner_texts()

    def heading(self, label: str) -> None:
        """Click on a heading of the table of runs."""
        self.page.locator("#run-table thead").get_by_role("button", name=label, exact=True).click()


@pytest.fixture
def visit(browser: Browser, report: Path) -> Iterator[Visit]:
    opened = Visit(browser, report, LAPTOP)
    yield opened
    assert opened.complaints == []
    opened.context.close()


def test_it_opens_from_disk_and_asks_nothing_of_the_network(visit: Visit, report: Path) -> None:
    visit.page.wait_for_load_state("networkidle")
    assert [url for url in visit.requests if not url.startswith("data:")] == [report.as_uri()]
    broken = visit.page.evaluate("[...document.images].filter(i => !i.complete || !i.naturalWidth).length")
    assert broken == 0
    assert visit.page.locator("img").count() > 5


def test_numbers_are_sorted_as_numbers(visit: Visit) -> None:
    visit.heading("Accuracy (%)")
    up = [float(text) for text in visit.column("Accuracy")]
    assert up == sorted(up)
    assert visit.page.locator('th[aria-sort="ascending"]').count() == 1
    visit.heading("Accuracy (%)")
    down = [float(text) for text in visit.column("Accuracy")]
    assert down == sorted(up, reverse=True)
    assert visit.page.locator('th[aria-sort="descending"]').inner_text().startswith("Accuracy")


def test_settings_are_sorted_by_their_values(visit: Visit) -> None:
    visit.heading("Settings")
    cs = [float(text.removeprefix("c = ").partition(",")[0]) for text in visit.column("Settings") if text]
    assert len(set(cs)) == 9
    assert cs == sorted(cs)


def test_words_are_sorted_as_words_and_with_the_keyboard(visit: Visit) -> None:
    visit.page.locator("#run-table thead").get_by_role("button", name="Method", exact=True).focus()
    visit.page.keyboard.press("Enter")
    methods = visit.column("Method")
    assert methods == sorted(methods, key=str.casefold)


def test_filters_narrow_the_rows_and_say_how_many_are_left(visit: Visit) -> None:
    total = len(visit.column("Method"))
    visit.page.get_by_label("Method", exact=True).select_option("rtf")
    assert visit.column("Method") == ["RtF"] * 6
    visit.page.get_by_label("Scenario", exact=True).select_option("class")
    visit.page.get_by_label("Search", exact=True).fill("RtF seed1")
    assert visit.column("Seed") == ["1"]
    assert visit.page.locator("#shown").inner_text() == f"1 of {total} runs"
    visit.page.get_by_label("Search", exact=True).fill("nothing like this")
    assert visit.column("Seed") == []


def test_a_run_that_is_used_twice_is_found_under_both_uses(visit: Visit) -> None:
    for use in ("table", "tuned table"):
        visit.page.get_by_label("Used in", exact=True).select_option(use)
        assert any(text == "table, tuned table" for text in visit.column("Used in"))


def test_what_is_not_known_is_last_either_way(visit: Visit) -> None:
    for _ in range(2):
        visit.heading("Core (%)")
        assert visit.column("Core")[-1] == "?"


def test_a_filter_survives_sorting(visit: Visit) -> None:
    visit.page.get_by_label("Used in", exact=True).select_option("grid search")
    visit.heading("Seed")
    assert set(visit.column("Used in")) == {"grid search"}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [LAPTOP, PHONE])
def test_nothing_sticks_out_of_the_page(browser: Browser, report: Path, size: tuple[int, int], scheme: str) -> None:
    opened = Visit(browser, report, size, scheme)
    width = opened.page.evaluate("document.documentElement.scrollWidth")
    colour = opened.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert width <= size[0]
    assert (colour == "rgb(246, 247, 249)") is (scheme == "light")
    assert opened.complaints == []
    opened.context.close()


def test_a_shade_over_a_wide_figure_says_that_there_is_more_until_its_end(browser: Browser, report: Path) -> None:
    opened = Visit(browser, report, PHONE)
    plate = opened.page.locator("figure .scroll").first

    def lightest() -> int:
        """The lightest pixel just inside the right edge, where the figure has a white background."""
        picture = Image.open(io.BytesIO(plate.screenshot())).convert("L")
        return max(picture.crop((picture.width - 4, 40, picture.width - 3, picture.height - 40)).tobytes())

    assert lightest() < 250
    plate.evaluate("plate => plate.scrollLeft = plate.scrollWidth")
    assert lightest() == 255
    opened.context.close()


def test_the_empty_page_opens_without_complaint(browser: Browser, tmp_path: Path) -> None:
    opened = Visit(browser, write(Report(tmp_path, [], {}, {}), tmp_path / "report.html")[0], PHONE)
    assert opened.page.get_by_text("Nothing here yet.").is_visible()
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
    assert opened.complaints == []
    opened.context.close()


def test_the_table_of_runs_is_there_without_javascript(browser: Browser, report: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(report.as_uri())
    assert page.locator("#run-table tbody tr").count() > 30
    assert not page.locator("#filters").is_visible()
    context.close()
