"""User-defined data sets and protocols on the command line: run, compared, listed, or refused before anything else."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import Command

PROTOCOL = """
from relive import Protocol
from relive.data.protocols import transformed

def make(data, n_tasks, seed, fidelity):
    return transformed(data, [lambda x, k=k: x.roll(k, 1) for k in range(n_tasks)], [str(k) for k in range(n_tasks)])

ROLLED = Protocol("rolled", make, title="Rolled", preset={"tasks": 2, "iters": 3})
"""


pytestmark = pytest.mark.usefixtures("no_workers")


@pytest.fixture
def relive(relive: Command) -> Command:
    """Commands in a folder with a data set of colour pictures, one of features, and a protocol."""
    rng = np.random.default_rng(0)
    y = np.tile(np.arange(4), 10)
    np.savez("colour.npz", X=rng.integers(0, 256, (40, 4, 6, 3), dtype=np.uint8), y=y)
    np.savez("features.npz", X=rng.normal(size=(40, 5)), y=y)
    Path("mine.py").write_text(PROTOCOL)
    return relive


def test_a_run_on_a_file(relive: Command) -> None:
    run = ("run", "--dataset", "colour.npz", "--tasks", "2", "--iters", "3")
    done = relive(*run)
    assert (done.code, "average accuracy" in done.out) == (0, True)
    assert "every fifth sample of each class is held out" in done.err
    (directory,) = Path("runs").iterdir()
    assert directory.name.startswith("split-class-rtf-colour.npz-seed0-")
    assert (directory / "replay.png").exists()
    sources = json.loads((directory / "spec.json").read_text())["sources"]
    assert list(sources) == ["colour.npz"]
    again = relive(*run)
    assert (again.code, "this run was already done" in again.err) == (0, True)


def test_features_have_no_pictures_of_what_is_replayed(relive: Command) -> None:
    assert relive("run", "--dataset", "features.npz", "--tasks", "2", "--iters", "3", "-q").code == 0
    (directory,) = Path("runs").iterdir()
    assert [path.name for path in directory.glob("*.png")] == ["accuracy.png"]


@pytest.mark.parametrize("command", [["run"], ["compare", "--method", "none", "--workers", "1"]])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--dataset", "features.npz", "--tasks", "3"], "features.npz has 4 classes, and a split needs tasks of equal"),
        (["--dataset", "features.npz", "--protocol", "rotated"], "which cannot be rotated as images"),
        (["--dataset", "none.npz"], "there is no file or folder none.npz"),
        (["--dataset", "mine.py"], "name the function in it"),
        (["--dataset", "digits", "--protocol", "mine.py:make"], "a protocol must be a relive.Protocol"),
        (["--dataset", "digits", "--protocol", "mine.py:OTHER"], "has no 'OTHER'"),
        (["--dataset", "digits", "--protocol", "rotatet"], "did you mean 'rotated'"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_written(
    relive: Command, command: list[str], options: list[str], message: str
) -> None:
    done = relive(*command, *options)
    assert (done.code, message in done.err) == (2, True), done.err
    assert not Path("runs").exists()


def test_a_comparison_on_a_protocol_of_one_s_own_and_what_shows_it(relive: Command) -> None:
    words = ["--dataset", "colour.npz", "--protocol", "mine.py:ROLLED", "--method", "none", "--method", "si"]
    title = "colour.npz, Rolled, 2 tasks of 3 iterations"
    assert title in relive("compare", *words, "--seeds", "2", "-q").out
    for name in ("Rolled", "mine.py:ROLLED"):
        assert title in relive("table", "--protocol", name).out
    assert relive("table").code == 0
    assert relive("report").code == 0
    page = Path("report.html").read_text()
    assert "Rolled" in page
    assert "colour.npz" in page


def test_tables_of_a_protocol_that_the_paper_does_not_have(relive: Command) -> None:
    options = ["--dataset", "digits", "--protocol", "rotated", "--tasks", "2", "--iters", "3", "--method", "none"]
    assert relive("run", *options, "-q").code == 0
    shown = relive("table", "--protocol", "rotated", "--format", "markdown")
    assert shown.out.startswith("**digits, rotated, 2 tasks of 3 iterations**")
    for words, message in (
        (["table", "--protocol", "rotated", "--format", "latex"], "the paper has no table for rotated"),
        (["table", "--protocol", "rotated", "--tuned"], "the paper has no table for rotated"),
        (["table", "--protocol", "rotated", "--later"], "the paper has no table for rotated"),
        (["table", "--protocol", "rottated"], "did you mean 'rotated'"),
        (["paper", "--protocol", "rotated"], "unknown protocol of the paper 'rotated'"),
        (["grid", "--protocol", "rotated", "--method", "si"], "unknown protocol of the paper 'rotated'"),
    ):
        refused = relive(*words)
        assert (refused.code, message in refused.err) == (2, True), refused.err


def test_help_lists_what_is_registered(relive: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    out = " ".join(relive("run", "--help").out.replace("│", " ").split())
    for words in (
        "split, permuted, rotated, blurred, or your own",
        "mnist, fashion-mnist, digits; or your own",
        "my.npz",
    ):
        assert words in out


def test_methods_with_encoders_of_their_own_are_compared(relive: Command) -> None:
    learners = ("--method", "none", "--method", "analytic")
    words = ("--dataset", "colour.npz", "--tasks", "2", "--iters", "3", *learners, "--seeds", "2", "-q")
    done = relive("compare", *words)
    assert done.code == 0, done.err
    assert [line.split()[0] for line in done.out.splitlines() if "±" in line and "−" not in line[:20]][:2] == [
        "None",
        "Analytic",
    ]
    assert Path("runs/figures/compare-learning.png").exists()


def test_several_values_of_a_setting_are_compared(relive: Command) -> None:
    words = [
        "--dataset",
        "digits",
        "--tasks",
        "2",
        "--iters",
        "3",
        "--method",
        "none",
        "--method",
        "si",
        "--seeds",
        "1",
    ]
    done = relive("compare", *words, "--scenario", "task", "--set", "c=10, 2", "--format", "json", "-q")
    entries = [(entry["title"], entry["settings"].get("c")) for entry in json.loads(done.out)["entries"]]
    assert entries == [("None", None), ("SI (c = 2)", 2.0), ("SI (c = 10)", 10.0)]
    twice = relive("compare", *words, "--set", "c=2,2.0,3")
    assert (twice.code, "setting c has the value 2 twice" in twice.err) == (2, True)
    assert "setting c = '' is not a number" in relive("compare", *words, "--set", "c=2,").err


def test_figures_that_cannot_be_written_are_refused_before_anything_runs(
    relive: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    words = ["--dataset", "digits", "--tasks", "2", "--iters", "3", "--method", "none", "--seeds", "1"]
    said = relive("compare", *words, "--figures", "file/figures")
    assert (said.code, "choose another folder with --figures" in said.err) == (2, True)
    assert not Path("runs").exists()
    assert "with --output" in relive("report", "--output", "file/report.html").err
    monkeypatch.setattr("os.access", lambda path, mode: False)  # the tests may run as root, who may write anywhere
    assert "cannot write to figures: choose another" in relive("compare", *words, "--figures", "figures").err


def test_a_setting_that_no_method_has_is_refused(relive: Command) -> None:
    assert (
        "unknown setting 'lamda': none has no settings" in relive("compare", "--method", "none", "--set", "lamda=1").err
    )
    said = relive("compare", "--method", "none", "--method", "ewc", "--set", "lamda=1").err
    assert "unknown setting 'lamda': did you mean 'lam'" in said


FORGETFUL = """
import torch
from relive.core.method import Method

class Forgetful(Method):
    def __init__(self):
        self.sums = torch.zeros(2)

    def after_step(self, theta, gradient):
        self.sums += 1

    def regularize(self, theta, gradient):
        pass
"""


@pytest.mark.slow
def test_what_only_a_worker_can_notice_is_said_and_the_rest_is_said_once(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(FORGETFUL)
    words = ["--dataset", "digits", "--tasks", "2", "--iters", "3", "--seeds", "2", "--method", "mine.py:Forgetful"]
    command = [sys.executable, "-m", "relive", "compare", *words]
    said = " ".join(subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stderr.split())
    assert "Forgetful changed sums while learning, but its state() returns nothing" in said
    assert said.count("Forgetful.regularize is not a hook") == 1


def test_sizes_are_options_of_run_and_compare(relive: Command) -> None:
    sizes = ("--learning-rate", "0.01", "--hidden", "7", "--batch-size", "5", "--latent", "3")
    words = ("--dataset", "digits", "--iters", "2", "--tasks", "2", *sizes, "-q")
    assert relive("run", "--method", "rtf", "--seed", "1", *words).code == 0
    assert relive("compare", "--method", "rtf", "--seeds", "1", *words).code == 0
    (spec,) = [json.loads(path.read_text()) for path in Path("runs").glob("*/spec.json")]
    assert [spec[name] for name in ("learning_rate", "hidden", "batch_size", "latent")] == [0.01, 7, 5, 3]


def test_what_is_meant_for_another_command_is_said(relive: Command) -> None:
    for words, message in (
        (
            ["fit", "m.safetensors", "mine.py:load"],
            "loaders are for relive run and compare, give a file or folder here",
        ),
        (["run", "--method", "mine.py"], "mine.py is a file: name the method in it, as mine.py:Mine"),
        (["run", "--encoder", "mine.py"], "mine.py is a file: name the encoder in it, as mine.py:make"),
    ):
        refused = relive(*words)
        assert (refused.code, message in refused.err) == (2, True), refused.err


def test_methods_that_are_named_are_listed_alone(relive: Command) -> None:
    Path("own.py").write_text("from relive import Method\nclass Mine(Method):\n    'What it does.'\n")
    assert list(json.loads(relive("methods", "own.py:Mine", "--json").out)) == ["own.py:Mine"]
    listed = relive("methods", "own.py:Mine").out
    assert "What it does" in listed
    assert "rtf" not in listed
