"""A path for a model file, and a file with a small model in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from relive.classifier.estimator import ContinualClassifier
from tests.classifier.digits import TINY, rows


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a model may be saved."""
    return tmp_path / "model.safetensors"


@pytest.fixture(scope="session")
def small_model() -> ContinualClassifier:
    """A model of two tasks, for tests of saving."""
    model = ContinualClassifier("rtf", **TINY | {"hidden": 5, "latent": 2})
    return model.partial_fit(*rows(0, 1)).partial_fit(*rows(2))


@pytest.fixture
def saved(path: Path, small_model: ContinualClassifier) -> Path:
    """The file of a model of two tasks."""
    small_model.save(path)
    return path
