"""``relive forget``, ``rename`` and ``merge`` as a user sees them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits, load_iris

import relive as toolkit
from relive.classifier.history import locked
from tests.cli.conftest import Command

M = "m.safetensors"


@pytest.fixture
def model(relive: Command) -> Command:
    """A model of three flowers in the folder, and the commands to change it."""
    x, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    pd.DataFrame(x).assign(label=names).to_csv("flowers.csv", index=False)
    assert relive("fit", M, "flowers.csv", "--set", "numbers=1e4", "--forgettable").code == 0
    return relive


def test_forgetting_says_what_is_left_and_which_files_still_know(model: Command) -> None:
    said = model("forget", M, "virginica", "--keep", "1")
    assert said.code == 0
    assert "never learned it" in said.out
    assert "setosa, versicolor" in said.out
    assert f"{M}.kept-1" in said.err
    assert toolkit.load(M).classes_.tolist() == ["setosa", "versicolor"]
    assert toolkit.load(f"{M}.kept-1").classes_.tolist() == ["setosa", "versicolor", "virginica"]
    assert model("rollback", M).code == 0
    assert len(toolkit.load(M).classes_) == 3
    assert f"{M}.undone" in model("forget", M, "setosa").err, "it knows setosa"


@pytest.mark.parametrize(
    ("options", "words"),
    [(("--set", "numbers=1e4"), "its spread remains"), (("--method", "none", "--iterations", "3"), "is not erased")],
)
def test_what_is_not_erased_is_said(model: Command, options: tuple[str, ...], words: str) -> None:
    assert model("fit", "other.safetensors", "flowers.csv", *options).code == 0
    assert words in model("forget", "other.safetensors", "setosa").out


def test_forgetting_says_what_it_does_not_know_of_a_method_of_one_s_own(model: Command) -> None:
    Path("mine.py").write_text("from relive import Method\n\nclass Mine(Method):\n    takes_steps = False\n")
    assert model("fit", "mine.safetensors", "flowers.csv", "--method", "mine.py:Mine").code == 0
    said = model("forget", "mine.safetensors", "setosa", "--allow-code")
    assert "is up to the method's own `forget`" in said.out


def test_renaming_and_merging_are_in_the_history(model: Command) -> None:
    assert model("rename", M, "setosa", "iris setosa").code == 0
    assert model("merge", M, "versicolor", "virginica", "--into", "other").code == 0
    about = json.loads(model("inspect", M, "--json").out)
    assert [(c["what"], c["labels"], c["into"]) for c in about["changes"]] == [
        ("rename", ["setosa"], "iris setosa"),
        ("merge", ["versicolor", "virginica"], "other"),
    ]
    assert {c["label"]: c["n_samples"] for c in about["classes"]} == {"iris setosa": 50, "other": 100}
    shown = model("inspect", M).out
    assert "renamed setosa to iris setosa" in shown
    assert "merged versicolor, virginica into other" in shown


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("forget", M, "virginika"), "did you mean 'virginica'"),
        (("forget", M, "setosa", "versicolor", "virginica"), "at least one class"),
        (("rename", M, "setosa", "virginica"), "already"),
        (("merge", M, "setosa", "--into", "x"), "at least two"),
        (("forget", "none.safetensors", "setosa"), "there is no model"),
    ],
)
def test_what_cannot_be_is_told_and_the_file_stays(model: Command, words: tuple[str, ...], message: str) -> None:
    before = Path(M).read_bytes()
    said = model(*words)
    assert (said.code, message in said.err) == (2, True), said.err
    assert Path(M).read_bytes() == before


def test_labels_that_are_numbers_are_named_by_numbers(model: Command) -> None:
    x, y = load_iris(return_X_y=True)
    pd.DataFrame(x).assign(label=y).to_csv("numbers.csv", index=False)
    assert model("fit", "n.safetensors", "numbers.csv", "--method", "ncm").code == 0
    assert model("rename", "n.safetensors", "0", "7").code == 0
    assert toolkit.load("n.safetensors").classes_.tolist() == [1, 2, 7]
    assert "is not a number" in model("rename", "n.safetensors", "7", "seven").err


def test_a_file_that_another_changes_is_left_alone(model: Command) -> None:
    with locked(Path(M)):
        said = model("rename", M, "setosa", "x")
    assert said.code == 2
    assert "another process" in said.err


def test_a_tenth_of_a_large_task_is_tested_unless_it_is_not_to_be(relive: Command) -> None:
    x, y = load_digits(return_X_y=True)
    x, y = x[:300], y[:300]
    np.savez("d.npz", X=x / 16, y=y)
    np.savez("few.npz", X=x[:150] / 16, y=y[:150])
    said = relive("fit", M, "d.npz", "--method", "ncm")
    n = sum(int(0.1 * (y == c).sum()) for c in range(10))
    assert re.search(rf"tested    \d+\.\d % on {n} held-out samples", said.out)
    task = json.loads(relive("inspect", M, "--json").out)["tasks"][0]
    assert (sum(c["samples"] for c in task["tested"]), task["samples"]) == (n, 300 - n)
    assert f"% of {n}" in relive("inspect", M).out
    assert "\ntested    " not in relive("fit", M, "few.npz").out
    assert "\ntested    " in relive("fit", M, "few.npz", "--holdout", "0.2", "--again").out
    assert "\ntested    " in relive("fit", M, "few.npz", "--again").out, "options are remembered"
    assert "\ntested    " not in relive("fit", M, "d.npz", "--again", "--holdout", "0").out


def test_samples_wait_in_the_file_only_if_they_may(relive: Command) -> None:
    x, y = load_digits(return_X_y=True)
    np.savez("first.npz", X=x[:50] / 16, y=y[:50])
    np.savez("ten.npz", X=x[50:60] / 16, y=y[50:60])
    small = ("--method", "rtf", "--hidden", "16", "--latent", "4", "--iterations", "5")
    assert relive("fit", M, "first.npz", *small, "--consolidate-every", "20").code == 0
    refused = relive("fit", M, "ten.npz")
    assert (refused.code, "10 samples are waiting" in refused.err) == (2, True)
    waiting = relive("fit", M, "ten.npz", "--allow-stored-data")
    assert "waiting   10 samples of 20" in waiting.out
    assert "REAL SAMPLES" in relive("inspect", M).out
    learned = relive("fit", M, "ten.npz", "--again")
    assert "learned   task 1" in learned.out
    assert "REAL SAMPLES" not in relive("inspect", M).out
