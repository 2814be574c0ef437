"""The memory of a studio page that is left open over 500 finished runs, while another finishes every minute.

python -m benchmarks.studio_open --minutes 60

Once a minute a visitor looks at one more view and goes back to the live one. Then the page's garbage is collected, and
its JavaScript heap, DOM nodes and event listeners and the server's resident memory are measured.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import cycle
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from benchmarks.common import ROOT
from benchmarks.studio import Watchers, serve
from relive.experiments.execute import run
from relive.experiments.spec import make_spec
from relive.experiments.store import Store

RUNS = 500  # finished before the page is opened
VIEWS = ("Matrix", "Dreams", "Draw", "Models", "Compare")


def main() -> None:
    """Measure once a minute, and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=int, default=60)
    parser.add_argument("--output", type=Path, default=ROOT / "reproduction/studio-open.json")
    options = parser.parse_args()
    like = run(make_spec("split", "class", "none", dataset="digits", iters=50)).result
    figures = []
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "runs")
        for seed in range(RUNS):
            store.save(replace(like, spec=replace(like.spec, seed=seed)), [])
        port, server = serve(store.root)
        try:
            with opened(f"http://127.0.0.1:{port}/#token={Watchers.token}") as page:
                for minute, view in zip(range(options.minutes + 1), cycle(VIEWS), strict=False):
                    seen = RUNS + minute
                    page.get_by_text(f"{seen} of {seen} runs").wait_for()
                    figures.append({"minute": minute, **measured(page), "server": resident(server.pid)})
                    print(json.dumps(figures[-1]), flush=True)
                    options.output.write_text(json.dumps(figures, indent=1) + "\n")
                    store.save(replace(like, spec=replace(like.spec, seed=seen)), [])
                    page.get_by_role("link", name=view, exact=True).click()
                    time.sleep(50 if minute < options.minutes else 0)
                    page.get_by_role("link", name="Live", exact=True).click()
                    time.sleep(10 if minute < options.minutes else 0)
        finally:
            server.kill()
            server.wait()


@contextmanager
def opened(address: str) -> Iterator[Page]:
    """Open a page in Debian's Chromium."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page = browser.new_page()
        page.set_default_timeout(60_000)
        page.goto(address)
        yield page
        browser.close()


def measured(page: Page) -> dict[str, int]:
    """Return the bytes of the JavaScript heap after a garbage collection, and the DOM's nodes and listeners."""
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    heap = int(session.send("Runtime.getHeapUsage")["usedSize"])
    counters = session.send("Memory.getDOMCounters")
    session.detach()
    return {"heap": heap, "nodes": counters["nodes"], "listeners": counters["jsEventListeners"]}


def resident(pid: int) -> int:
    """Return the resident memory of a process, in bytes."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096


if __name__ == "__main__":
    main()
