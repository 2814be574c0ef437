"""``relive inspect`` as a user sees it: what is in a model, a picture of what it replays, and help."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from PIL import Image

from relive import load
from tests.cli.conftest import Command
from tests.cli.teaching import SMALL, M


def test_what_is_in_a_model(relive: Command, files: Path, made: Path) -> None:
    shutil.copy(made, M)
    relive("fit", M, files / "b.csv", "--task", "[bold]", "--keep", "1")
    code, out, err = relive("inspect", M, "--json")
    assert (code, err) == (0, "")
    about = json.loads(out)
    model = load(M)
    assert about["bytes"] == Path(M).stat().st_size
    assert about["parameters"] == model.get_params()
    assert (about["likelihood"], about["features"], about["image"]) == ("bernoulli", 64, None)
    assert about["feature_names"] == [f"pixel {i}" for i in range(64)]
    assert [task["name"] for task in about["tasks"]] == [0, "[bold]"]
    assert about["tasks"][1]["classes"] == [{"label": 2, "samples": 20}, {"label": 3, "samples": 20}]
    assert about["tasks"][1]["digest"] == model.lessons_[1].digest
    assert [c["label"] for c in about["classes"]] == [0, 1, 2, 3]
    assert [c["kept"] for c in about["classes"]] == [memory.kept for memory in model.report()]
    assert about["versions"]["torch"] == torch.__version__
    assert about["kept"] == [f"{M}.kept-1"]
    code, out, _ = relive("inspect", M)
    assert code == 0
    for text in ("method    rtf, scenario class, bernoulli inputs", "[bold]", "pixel 7 and 56 more", "hidden 16"):
        assert text in out
    code, _, err = relive("inspect", M, "--picture", "a.png")
    assert code == 2
    assert "was not trained on images" in err
    code, _, err = relive("inspect", "gone.safetensors")
    assert code == 2
    assert "there is no model gone.safetensors" in err


@pytest.mark.parametrize("options", [[], ["--scenario", "task"], ["--scenario", "domain", "--likelihood", "gaussian"]])
def test_a_picture_of_what_is_replayed(relive: Command, files: Path, options: list[str]) -> None:
    assert relive("fit", M, files / "a.npz", *SMALL, *options)[0] == 0
    code, out, _ = relive("inspect", M, "--picture", "replay.png")
    assert code == 0
    assert "picture   replay.png" in out
    with Image.open("replay.png") as picture:
        assert picture.size[0] > 1000
    code, _, err = relive("inspect", M, "--picture", "replay.svg")
    assert code == 2
    assert "ends with .png" in err


def test_a_method_that_generates_nothing_has_no_picture(relive: Command, files: Path) -> None:
    assert relive("fit", M, files / "a.npz", *SMALL, "--method", "none")[0] == 0
    code, _, err = relive("inspect", M, "--picture", "replay.png")
    assert code == 2
    assert "method 'none' generates nothing" in err


def test_a_pipe_shows_everything_in_any_encoding(home: Path, files: Path, made: Path, relive: Command) -> None:
    shutil.copy(made, M)
    long = "a name of a task that is longer than a line of a terminal " * 2 + "→"
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    assert relive("fit", M, files / "b.csv", "--task", long)[0] == 0
    done = subprocess.run(
        [sys.executable, "-m", "relive", "inspect", M],
        env=environment | {"PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert rb"\u2192" in done.stdout
    row = next(line for line in done.stdout.decode().splitlines() if line.startswith("a name"))
    assert "2 (20), 3 (20)" in row
    assert row.split()[-3] == "10", "iterations"


def test_help_answers_without_torch() -> None:
    program = """
import sys
from typer.testing import CliRunner
from relive.cli import app
for command in ("fit", "predict", "inspect", "rollback"):
    done = CliRunner().invoke(app, [command, "--help"])
    assert done.exit_code == 0 and "Example" in done.output, done.output
assert not {"torch", "sklearn", "pandas", "PIL", "matplotlib"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
