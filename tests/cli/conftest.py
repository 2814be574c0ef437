"""Commands run in the test's process, which saves each of them the seconds of importing torch."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from relive import ContinualClassifier
from relive.cli import main
from tests.cli.teaching import PARAMETERS, TASKS, M, digits
from tests.experiments.small import InProcess


class Said(NamedTuple):
    """A command's exit code, stdout and stderr."""

    code: int
    out: str
    err: str


Command = Callable[..., Said]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where commands run: an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def relive(home: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Command:
    """Run a command; it may show a traceback only if ``traceback`` is set."""

    def command(*words: str | Path, traceback: bool = False) -> Said:
        monkeypatch.setattr(sys, "argv", ["relive", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capfd.readouterr()
        assert ("Traceback" in err) == traceback
        return Said(int(ended.value.code or 0), out, err)

    return command


@pytest.fixture
def no_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sweeps do their runs in the test's process."""
    monkeypatch.setattr("relive.experiments.engines.LocalEngine", lambda workers: InProcess())


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same three tasks as CSV, Parquet, NPZ and folders of PNG files."""
    home = tmp_path_factory.mktemp("files")
    for name, classes in TASKS.items():
        x, y = digits(*classes)
        table = pd.DataFrame(x / 255, columns=[f"pixel {i}" for i in range(64)]).assign(label=y)
        table.to_csv(home / f"{name}.csv", index=False)
        table.drop(columns="label").to_csv(home / f"{name}-plain.csv", index=False)
        table.to_parquet(home / f"{name}.parquet")
        np.savez(home / f"{name}.npz", X=x.reshape(-1, 8, 8), y=y)
        for i, (pixels, label) in enumerate(zip(x, y, strict=True)):
            (home / name / str(label)).mkdir(parents=True, exist_ok=True)
            Image.fromarray(pixels.reshape(8, 8)).save(home / name / str(label) / f"{i:03}.png")
    return home


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that has learned the first task from CSV; to be copied."""
    path = tmp_path_factory.mktemp("made") / M
    x, y = digits(*TASKS["a"])
    table = pd.DataFrame(x / 255, columns=[f"pixel {i}" for i in range(64)])
    ContinualClassifier(**PARAMETERS).partial_fit(table, y).save(path)
    return path
