"""An empty store of runs for each test."""

from __future__ import annotations

from pathlib import Path

import pytest

from relive.experiments.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty one."""
    return Store(tmp_path / "runs")
