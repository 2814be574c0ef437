"""The studio in a real browser: the demo, runs from elsewhere, drawing, dreams, models, and accessibility.

Runs where a Chromium is found; with RELIVE_REQUIRE_BROWSER=1 a missing one is a failure instead of a skip.
"""

from __future__ import annotations

import math
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from relive.studio import choices, comparing
from tests.report.fake import result_of, spec_of
from tests.studio.served import Served, serving
from tests.studio.visiting import LAPTOP, PHONE, Visit

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

SMALL: dict[str, Any] = {"iters": 100, "hidden": 100, "latent": 20}
SCRIPT = "<script>document.title = 'owned'</script>"


@pytest.fixture(scope="module")
def axe() -> str:
    """The accessibility checker axe-core, from a test dependency."""
    return files("axe_playwright_python").joinpath("axe.min.js").read_text()


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with pytest.MonkeyPatch.context() as patch, serving(tmp_path_factory.mktemp("studio")) as served:
        patch.setitem(choices.FIRST_SIZES, "digits", SMALL)
        yield served


@pytest.fixture(scope="module")
def page_of_all(browser: Browser, studio: Served) -> Iterator[Visit]:
    """One page for all tests after which a reload is enough."""
    opened = Visit(browser, studio)
    yield opened
    opened.context.close()


@pytest.fixture
def visit(page_of_all: Visit, studio: Served) -> Iterator[Visit]:
    """The page as a new visitor sees it."""
    page_of_all.page.goto("about:blank")
    page_of_all.complaints.clear()  # of a failed test
    page_of_all.page.goto(studio.address)
    yield page_of_all
    assert page_of_all.complaints == []


@pytest.fixture(scope="module")
def looked(page_of_all: Visit, studio: Served) -> Served:
    """The studio after the demo."""
    from playwright.sync_api import expect

    page = page_of_all.page
    page.get_by_role("button", name="Show me").click()
    page.get_by_role("heading", name="Forgetting, side by side").wait_for()
    page.get_by_text("2 of 2 runs").wait_for()
    expect(page.locator(".runs tbody tr").filter(has_text="%")).to_have_count(2, timeout=60_000)
    assert page_of_all.complaints == []
    return studio


def test_the_first_look_shows_that_one_forgets_and_the_other_does_not(looked: Served, visit: Visit) -> None:
    visit.page.get_by_text("As a table").first.click()
    rows = visit.page.locator("details table").first.locator("tbody tr").all_inner_texts()
    cells = [float(text.replace("%", "")) for text in rows[-1].split("\t")[1:]]
    (none_all, none_first, rtf_all, rtf_first) = cells
    assert none_all == pytest.approx(20, abs=2)
    assert none_first == 0
    assert rtf_all > none_all + 10
    assert rtf_first > 0
    assert visit.page.url.endswith("#/live")  # the token is removed from the address


def test_a_run_that_is_started_elsewhere_appears_by_itself(looked: Served, visit: Visit) -> None:
    visit.page.get_by_text("2 of 2 runs").wait_for()
    words = ["run", "--dataset", "digits", "--method", "slda", "--scenario", "task", "--snapshots", "--quiet"]
    words += ["--runs-dir", str(looked.places.store.root)]
    done = subprocess.Popen([sys.executable, "-m", "relive", *words], stdout=subprocess.DEVNULL)
    visit.page.get_by_text("3 of 3 runs").wait_for()
    visit.page.get_by_role("row", name="SLDA").get_by_text("%").first.wait_for()
    assert done.wait() == 0


def test_a_run_of_an_evil_name_is_shown_as_it_is_written(looked: Served, visit: Visit) -> None:
    spec = replace(spec_of("split", "class", "rtf", 3), method=f"mine.py:{SCRIPT}")
    looked.places.store.save(replace(result_of(spec), shown={"title": SCRIPT}), [])
    visit.page.get_by_role("link", name=SCRIPT).wait_for()
    assert visit.page.title() == "Live · relive studio"
    shutil.rmtree(looked.places.store.directory(spec))
    visit.page.get_by_role("link", name=SCRIPT).wait_for(state="detached")


def test_runs_are_started_from_the_form_stopped_and_gone_on_with(looked: Served, visit: Visit) -> None:
    visit.page.get_by_text("Start runs").click()
    visit.page.get_by_label("None", exact=True).uncheck()
    for name, value in (("Seed", "5"), ("Steps per task", "3000"), ("Hidden units", "16"), ("Latent variables", "4")):
        visit.page.get_by_label(name, exact=True).fill(value)
    visit.page.get_by_role("button", name="Start", exact=True).click()
    visit.page.get_by_text("task 1 of 5").first.wait_for()
    visit.page.get_by_role("button", name="Stop").click()
    visit.page.get_by_role("row", name="stopped").wait_for()
    visit.page.get_by_role("button", name="Resume").click()
    visit.page.get_by_role("button", name="Stop").click()
    visit.page.get_by_role("row", name="stopped").wait_for()


def test_the_form_says_what_cannot_be(looked: Served, visit: Visit) -> None:
    visit.page.get_by_text("Start runs").click()
    visit.page.get_by_label("Tasks", exact=True).fill("3")
    visit.page.get_by_label("RtF", exact=True).uncheck()
    visit.page.get_by_label("None", exact=True).uncheck()
    visit.page.get_by_role("button", name="Start", exact=True).click()
    visit.page.get_by_role("alert").get_by_text("at least one method").wait_for()
    visit.complaints.clear()  # the browser logs every refused request


def test_the_matrix_plays_and_a_cell_shows_what_was_wrong(looked: Served, visit: Visit) -> None:
    visit.view("Matrix")
    cells = visit.page.locator("svg .cell")
    cells.first.wait_for()
    assert cells.count() == 50
    visit.page.get_by_role("slider").fill("1")
    assert cells.count() == 10
    visit.page.get_by_role("button", name="Play").click()
    cells.nth(10).wait_for()
    visit.page.get_by_role("slider").fill("5")
    visit.page.get_by_role("button", name="after task 5, on task 1: 0.0 %").first.press("Enter")
    visit.page.get_by_text("48 of 48 test samples are misclassified").wait_for()
    assert visit.page.locator(".pictures canvas").count() == 24
    assert visit.page.get_by_text("0 → ").count() > 0


def test_dreams_are_shown_by_class_and_on_a_map(looked: Served, visit: Visit) -> None:
    visit.view("Dreams")
    visit.page.get_by_role("heading", name="RtF, seed 1, after task 5").wait_for()
    assert visit.page.locator(".classes > div").count() == 10
    assert visit.page.locator(".pictures canvas").count() > 0
    dots = visit.page.locator("circle").count()
    visit.page.get_by_role("slider").fill("1")
    visit.page.get_by_role("heading", name="RtF, seed 1, after task 1").wait_for()
    assert visit.page.locator(".classes > div").count() == 2
    assert dots > 300


def test_a_method_that_dreams_of_nothing_says_so(looked: Served, visit: Visit) -> None:
    visit.view("Dreams")
    visit.page.get_by_role("combobox").select_option(label="None, seed 1 (digits, split, Class-IL, 5 × 100 steps)")
    visit.page.get_by_role("alert").get_by_text("generates nothing").wait_for()
    visit.complaints.clear()


def draw_nought(page: Page) -> None:
    """Draw a 0 with the mouse."""
    box = page.locator(".pad").bounding_box()
    assert box is not None
    turns = [2 * math.pi * i / 24 for i in range(25)]
    points = [(0.5 + 0.22 * math.sin(t), 0.5 - 0.36 * math.cos(t)) for t in turns]
    at = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in points]
    page.mouse.move(*at[0])
    page.mouse.down()
    for place in at:
        page.mouse.move(*place)
    page.mouse.up()


def test_a_digit_is_drawn_and_two_networks_answer(looked: Served, visit: Visit) -> None:
    visit.view("Draw")
    draw_nought(visit.page)
    visit.page.locator(".answer").nth(1).wait_for()
    visit.page.get_by_role("slider").fill("1")
    assert visit.page.locator(".answer").all_inner_texts() == ["0", "0"]
    visit.page.get_by_role("slider").fill("5")
    none, rtf = visit.page.locator(".answer").all_inner_texts()
    assert none in ("8", "9")  # the digits that it learned last
    assert rtf == "0"
    assert visit.page.get_by_label("the drawing as the network reconstructs it").count() == 1
    visit.page.get_by_role("button", name="Clear").click()
    assert visit.page.locator(".answer").count() == 0


def test_in_task_il_the_task_is_given_with_the_drawing(looked: Served, visit: Visit) -> None:
    """The run is the one started elsewhere: the tests of this file run in order."""
    page = visit.view("Draw")
    assert not page.get_by_label("the task whose classes").is_visible()
    choice = page.get_by_role("combobox").first
    choice.select_option(label=choice.locator("option", has_text="SLDA").inner_text())
    page.get_by_label("the task whose classes").select_option(label="task 2")
    draw_nought(page)
    page.get_by_label("SLDA predicts").wait_for()
    assert page.get_by_label("SLDA predicts").inner_text() in ("2", "3")
    page.get_by_role("slider").fill("1")
    assert page.get_by_label("SLDA predicts").inner_text() == "?"
    page.get_by_label("the task whose classes").select_option(label="task 1")
    page.get_by_label("SLDA predicts").get_by_text("0", exact=True).wait_for()


def test_a_model_is_taught_asked_made_to_forget_and_rolled_back(looked: Served, visit: Visit, tmp_path: Path) -> None:
    from playwright.sync_api import expect

    rng = np.random.default_rng(0)
    for season, names in (("spring", ["rose", "tulip"]), ("summer", ["aster", "<b>iris</b>"])):
        rows = [
            f"{rng.normal(3 * k + (season == 'summer') * 6):.3f},{rng.normal(k):.3f},{name}"
            for k, name in enumerate(names)
            for _ in range(30)
        ]
        (tmp_path / f"{season}.csv").write_text("\n".join(["width,height,species", *rows]) + "\n")
    page = visit.view("Models")
    page.get_by_label("Its name").fill("flowers")
    page.get_by_label("Method").select_option("slda")
    page.get_by_label("Choose a file").set_input_files(tmp_path / "spring.csv")
    expect(page.get_by_label("Label column")).to_have_value("species")
    page.get_by_role("button", name="Teach").click()
    page.get_by_role("heading", name="Learned").wait_for()
    page.get_by_role("row", name="tulip").wait_for()
    page.get_by_label("Choose a file").set_input_files(tmp_path / "summer.csv")
    page.get_by_role("button", name="Teach").click()
    page.get_by_role("row", name="<b>iris</b>").wait_for()
    page.get_by_role("button", name="Evaluate").click()
    page.get_by_role("heading", name="Accuracy").wait_for()
    assert float(page.locator(".big-number").inner_text().split()[0]) > 80
    page.get_by_role("button", name="Predict").click()
    page.get_by_text("60 predictions").wait_for()
    page.get_by_role("button", name="Forget rose").click()
    page.get_by_role("heading", name="Forgotten").wait_for()
    page.get_by_role("row", name="aster").wait_for()
    assert page.get_by_role("row", name="rose").count() == 0
    page.get_by_role("button", name="Roll back").click()
    page.get_by_role("row", name="rose").wait_for()
    page.get_by_role("button", name="Teach").click()  # the same file again
    page.get_by_role("alert").get_by_text("has already learned summer.csv").wait_for()
    visit.complaints.clear()


def test_own_runs_are_compared_and_a_dot_leads_to_its_run(looked: Served, visit: Visit) -> None:
    page = visit.view("Compare")
    page.get_by_role("row", name="None − RtF").wait_for()
    assert page.locator("circle").count() == 2
    page.locator("circle").first.click()
    page.get_by_role("heading", name="Accuracy by task").wait_for()
    page.get_by_role("heading", name="None, seed 1").wait_for()


def copied(page: Page) -> str:
    """Return what is in the clipboard."""
    page.get_by_role("status").get_by_text("Copied").wait_for()
    return str(page.evaluate("navigator.clipboard.readText()"))


def test_any_runs_are_ticked_compared_kept_as_an_address_and_exported(
    looked: Served, visit: Visit, browser: Browser
) -> None:
    page = visit.page
    boxes = page.get_by_role("checkbox", name="seed 1")
    boxes.first.check()
    boxes.last.click(modifiers=["Shift"])
    page.get_by_role("link", name="Compare 2 runs").click()
    page.get_by_role("heading", name="2 runs").wait_for()
    rows = page.get_by_role("region", name="The chosen runs").locator("tbody tr")
    assert {text.split()[0] for text in rows.all_inner_texts()} == {"None", "RtF"}
    page.get_by_role("row", name="None − RtF").wait_for()
    assert page.locator("svg path").count() == 2  # one line per run
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy as Python").first.click()
    assert copied(page).count("make_spec('split', 'class', ") == 2
    with page.expect_download() as downloading:
        page.get_by_role("button", name="Export").click()
    text = Path(downloading.value.path()).read_text()
    assert text == comparing.Comparer(looked.places.store).report(
        [result for result in looked.places.store.scan()[0] if result.spec.seed == 1], None
    )
    assert "2 runs in" in text

    other = Visit(browser, looked, address=page.url)  # a visitor with the address but not the token
    other.page.get_by_label("or paste it here").fill("http://127.0.0.1/")
    other.page.get_by_role("button", name="Open").click()
    other.page.get_by_text("No token found").wait_for()
    other.page.get_by_label("or paste it here").fill(looked.address)
    other.page.get_by_role("button", name="Open").click()
    other.page.get_by_role("heading", name="2 runs").wait_for()
    assert other.page.url == page.url
    other.page.get_by_role("button", name="Leave out None").click()
    other.page.get_by_role("heading", name="1 run").wait_for()
    assert other.page.url.count("seed1") == 1
    other.page.get_by_role("button", name="Your runs").click()
    other.page.get_by_role("row", name="None − RtF").wait_for()
    assert other.page.url.endswith("#/compare/own")
    other.page.get_by_role("link", name="Live", exact=True).click()
    other.page.get_by_role("link", name="Compare 1 run").wait_for()
    assert other.complaints == []
    other.context.close()


def test_what_a_form_asks_for_is_copied_and_not_started(looked: Served, visit: Visit) -> None:
    page = visit.page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_text("Start runs").click()
    page.get_by_label("Repeats").select_option("many")
    page.get_by_label("Number of seeds").fill("3")
    page.get_by_role("button", name="Copy as command").first.click()
    wanted = "relive compare --dataset digits --scenario class --method none --method rtf --seeds 3 --iters 300"
    assert copied(page) == wanted
    page.get_by_role("button", name="Copy as Python").first.click()
    page.get_by_role("status").get_by_text("the Python program").wait_for()
    assert copied(page).count("make_spec(") == 6
    assert not [job for job in looked.first_event()["jobs"] if "--seeds" in job["title"]]


def test_what_is_shown_is_exported_as_a_file_that_needs_no_network(
    looked: Served, visit: Visit, tmp_path: Path
) -> None:
    visit.view("Dreams")
    visit.page.locator(".pictures canvas").first.wait_for()
    with visit.page.expect_download() as downloading:
        visit.page.get_by_role("button", name="Export").click()
    path = tmp_path / "dreams.html"
    downloading.value.save_as(path)
    requests: list[str] = []
    context = visit.context.browser.new_context()  # type: ignore[union-attr]
    page = context.new_page()
    page.on("request", lambda request: requests.append(request.url))
    page.goto(path.as_uri())
    assert [url for url in requests if not url.startswith("data:")] == [path.as_uri()]
    assert page.locator("img.picture").count() > 0
    assert page.evaluate("[...document.images].every((i) => i.naturalWidth > 0)")
    assert page.locator("script").count() == 0
    context.close()


def test_without_the_token_the_page_says_where_it_is(browser: Browser, studio: Served) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(studio.address.partition("#")[0])
    page.get_by_text("Open the address from the terminal").wait_for()
    context.close()


VIEWS = {  # and a selector for their content
    "Live": ".runs",
    "Matrix": "svg .cell",
    "Dreams": ".classes",
    "Draw": ".answer",
    "Models": ".drop",
    "Compare": "svg circle",
    "Chosen": "[aria-label='The chosen runs']",
}
FAULTS = """async (rules) => {
  for (let i = 0; i < 2; i++) await new Promise(requestAnimationFrame);  // wait until changes are drawn
  const { violations } = await axe.run({ resultTypes: ["violations"], ...rules });
  return violations.map((v) => [v.id, v.nodes[0].html]);
}"""
COLOURS = {"runOnly": {"type": "tag", "values": ["cat.color"]}}  # all that differs between light and dark


@pytest.mark.parametrize("size", [LAPTOP, PHONE], ids=["laptop", "phone"])
def test_every_view_can_be_used_by_everybody(looked: Served, browser: Browser, axe: str, size: tuple[int, int]) -> None:
    opened = Visit(browser, looked, size)
    page = opened.page
    page.get_by_text("Start runs").click()
    page.get_by_label("Hidden units").wait_for()
    page.evaluate(axe)
    runs = [row["name"] for row in looked.first_event()["rows"] if row["state"] == "done"]
    for name, sign in VIEWS.items():
        if name == "Chosen":
            page.evaluate("(address) => { location.hash = address; }", f"#/compare/runs/{'/'.join(runs)}")
        else:
            opened.view(name)
        if name == "Draw":
            draw_nought(page)
        page.locator(sign).first.wait_for()
        assert (name, page.evaluate(FAULTS, {})) == (name, [])
        page.emulate_media(color_scheme="dark")
        assert (name, page.evaluate(FAULTS, COLOURS)) == (name, [])
        page.emulate_media(color_scheme="light")
        assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
    assert opened.complaints == []
    opened.context.close()
