"""Commands in the test's own process, which spares each of them the seconds that torch takes to import."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from relive.cli import main
from tests.experiments.small import InProcess


class Said(NamedTuple):
    """What a command left: its exit code, and what it printed where."""

    code: int
    out: str
    err: str


Command = Callable[..., Said]


@pytest.fixture
def relive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Command:
    """Give a command in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def command(*words: str | Path) -> Said:
        monkeypatch.setattr(sys, "argv", ["relive", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capfd.readouterr()
        assert ended.value.code == 1 or "Traceback" not in err  # a run that failed is shown with its own
        return Said(int(ended.value.code or 0), out, err)

    return command


@pytest.fixture
def no_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sweeps do their runs in the test's own process."""
    monkeypatch.setattr("relive.experiments.engines.LocalEngine", lambda workers: InProcess())
