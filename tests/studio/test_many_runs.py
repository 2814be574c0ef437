"""The studio in a real browser on existing runs: the paper's, thousands, and new ones every second."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from relive.experiments.resultfile import signed, to_bytes
from relive.experiments.store import RESULT, Store
from tests.report.fake import paper_like, result_of, spec_of
from tests.studio.served import serving, until
from tests.studio.visiting import PHONE, Visit

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.slow


def test_the_papers_tables_have_verdicts_and_the_headline_first(browser: Browser, tmp_path: Path) -> None:
    store = Store(tmp_path / "theirs")
    for result in paper_like("split", 1):
        if result.spec.method in ("none", "rtf"):
            store.save(result, [])
    with serving(tmp_path, store.root) as served:
        opened = Visit(browser, served, PHONE)
        page = opened.view("Compare")
        page.get_by_role("button", name="The paper").click()
        row = page.get_by_role("row", name="RtF").first
        row.wait_for()
        cells = row.locator("td").all_inner_texts()
        assert [cell.split("paper ")[1][:5] for cell in cells] == ["92.56", "97.31", "99.66"]
        assert all("in range" in cell for cell in cells)
        box = page.get_by_role("columnheader", name="Class-IL").bounding_box()
        assert box is not None
        assert box["x"] + 60 < PHONE[0]
        assert opened.complaints == []
        opened.context.close()


def test_five_thousand_runs_are_usable_within_a_second_and_scroll_smoothly(browser: Browser, tmp_path: Path) -> None:
    store, like = Store(tmp_path / "runs"), result_of(spec_of("split", "class", "rtf", 1, iters=100))
    for seed in range(5000):  # as Store.save does, without waiting for the disk
        spec = replace(like.spec, seed=seed)
        store.directory(spec).mkdir(parents=True)
        (store.directory(spec) / RESULT).write_bytes(to_bytes(signed(replace(like, spec=spec).to_json())))
    with serving(tmp_path) as served:
        until(lambda: served.first_event()["ready"], every=1)
        opened = Visit(browser, served, address="about:blank")
        metrics = opened.context.new_cdp_session(opened.page)
        metrics.send("Performance.enable", {"timeDomain": "threadTicks"})  # CPU time: the machine may be busy

        def seconds() -> float:
            found = metrics.send("Performance.getMetrics")["metrics"]
            return float(next(metric["value"] for metric in found if metric["name"] == "TaskDuration"))

        before, asked = seconds(), time.process_time()
        opened.page.goto(served.address)
        opened.page.get_by_text("5,000 of 5,000 runs").wait_for()
        assert seconds() - before + time.process_time() - asked < 1
        assert opened.page.locator(".runs tbody tr").count() < 60
        before = seconds()
        opened.page.evaluate(
            """async () => {
              for (let i = 0; i < 100; i++) {
                document.querySelector(".runs").scrollTop += 1500;
                await new Promise(requestAnimationFrame);
              }
            }"""
        )
        assert (seconds() - before) / 100 < 1 / 30  # for each frame
        assert opened.complaints == []
        opened.context.close()


def test_a_page_that_is_left_open_does_not_grow(browser: Browser, tmp_path: Path) -> None:
    like = result_of(spec_of("split", "class", "rtf", 1, iters=100))
    with serving(tmp_path) as served:
        opened = Visit(browser, served)
        opened.page.get_by_text("See a network forget").wait_for()
        metrics = opened.context.new_cdp_session(opened.page)

        def finish(first: int, last: int) -> float:
            """Finish runs while the page is open, and return the bytes of memory it then uses."""
            for seed in range(first, last):
                spec = replace(like.spec, seed=seed)
                served.places.store.directory(spec).mkdir(parents=True)
                content = to_bytes(signed(replace(like, spec=spec).to_json()))
                (served.places.store.directory(spec) / RESULT).write_bytes(content)
            opened.page.get_by_text(f"{last} of {last} runs").wait_for()
            metrics.send("HeapProfiler.collectGarbage")
            return float(metrics.send("Runtime.getHeapUsage")["usedSize"])

        rounds = [finish(100 * k, 100 * (k + 1)) for k in range(5)]
        assert rounds[-1] - rounds[0] < 400 * 5000  # little more than a row per run
        opened.context.close()
