"""``relive predict`` as a user sees it: the model's predictions, and messages about odd samples."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from relive import load
from tests.cli.conftest import Command
from tests.cli.teaching import SMALL, TASKS, M, all_bytes, digits


def test_answers_are_the_model_s_own(relive: Command, files: Path, made: Path) -> None:
    model = load(made)
    x, y = digits(*TASKS["a"])
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        labels, probabilities = model.predict(x / 255), model.predict_proba(x / 255)
    code, out, err = relive("predict", made, files / "a.csv", "--proba")
    assert code == 0
    rows = list(csv.reader(io.StringIO(out)))
    assert rows[0] == ["label", "p_0", "p_1"]
    assert [int(row[0]) for row in rows[1:]] == labels.tolist()
    assert np.array([row[1:] for row in rows[1:]], float) == pytest.approx(probabilities, abs=1e-5)  # without torch
    right = int((labels == y).sum())
    assert err == f"accuracy {100 * right / 40:.2f} % ({right} of 40)\n"
    code, out, err = relive("predict", made, files / "a-plain.csv", "--format", "json", "--proba")
    assert (code, err) == (0, "")
    answers = json.loads(out)
    assert [answer["label"] for answer in answers] == labels.tolist()
    said = np.array([list(answer["proba"].values()) for answer in answers])
    assert said == pytest.approx(probabilities, abs=1e-5)
    for kind in (".parquet", ".npz"):
        _, out, _ = relive("predict", made, files / f"a{kind}")
        assert out.split() == ["label", *map(str, labels.tolist())]


def test_answers_in_a_file(relive: Command, home: Path, files: Path, made: Path) -> None:
    assert relive("predict", made, files / "a-plain.csv", "--output", "out.json") == (0, "", "")
    assert len(json.loads((home / "out.json").read_text())) == 40
    assert relive("predict", made, files / "a-plain.csv", "-o", "out.txt", "--format", "csv")[0] == 0
    assert (home / "out.txt").read_text().startswith("label\n")
    shutil.copy(files / "a.csv", "a.csv")
    before = all_bytes(home)
    for options, message in (
        (["--output", "out.text"], "out.text ends with neither .csv nor .json: choose one with --format"),
        (["--output", "a.csv"], "--output a.csv would overwrite an input file"),
        (["--output", "nowhere/a.csv"], "there is no directory nowhere"),
        (["--format", "cvs"], "unknown format 'cvs': did you mean 'csv'?"),
        (["--task", "x", "--task-column", "y"], "give either --task or --task-column, not both"),
        (["--task", "x"], "in Class-IL the task is not given; leave it out"),
    ):
        code, out, err = relive("predict", made, "a.csv", *options)
        assert (code, out) == (2, "")
        assert message in err
    assert all_bytes(home) == before


def test_unusual_samples_are_refused_on_request(relive: Command) -> None:
    x, y = digits(0, 1, 2, 3, n=60)
    strange, _ = digits(7, n=30)
    np.savez("learn.npz", X=x, y=y)
    np.savez("ask.npz", X=np.concatenate([x[:60], strange, 255 - strange]), y=np.repeat([0, 7], [60, 60]))
    assert relive("fit", M, "learn.npz", "--method", "slda", "--holdout", "0")[0] == 0
    code, out, err = relive("predict", M, "ask.npz", "--reject", "5%")
    labels = out.split()[1:]
    assert code == 0
    assert labels[-30:] == ["unknown"] * 30
    assert labels[:60].count("unknown") < 10
    assert f"({labels.count('unknown')} of 120)" in err
    assert relive("predict", M, "ask.npz", "--reject", "0.05")[1] == out
    as_json = json.loads(relive("predict", M, "ask.npz", "--reject", "5%", "--format", "json")[1])
    assert [str(row["label"]) for row in as_json] == labels
    for wrong in ("few", "0", "200%", "5"):
        code, out, err = relive("predict", M, "ask.npz", "--reject", wrong)
        assert (code, out) == (2, "")
        assert f"--reject {wrong}: it must be a share between 0 and 1, such as 5% or 0.05" in err
    assert relive("fit", "n.safetensors", "learn.npz", "--holdout", "0", *SMALL)[0] == 0
    code, out, err = relive("predict", "n.safetensors", "ask.npz", "--reject", "5%")
    assert (code, out) == (2, "")
    assert "holdout" in err


def test_few_held_out_scores_are_said_to_be_few(relive: Command, files: Path, made: Path) -> None:
    x, y = digits(0, 1, n=40)
    np.savez("few.npz", X=x, y=y)
    assert relive("fit", M, "few.npz", "--method", "slda", "--holdout", "0").code == 0
    said = relive("predict", M, "few.npz", "--reject", "10%")
    assert said.code == 0
    assert "note: this model has only 16 held-out scores: it may refuse many more or fewer than 10%" in said.err
    assert "held-out scores" not in relive("predict", M, "few.npz").err


def test_columns_are_matched_by_name(relive: Command, files: Path, made: Path) -> None:
    table = pd.read_csv(files / "a.csv")
    table[table.columns[::-1]].to_csv("turned.csv", index=False)
    said = relive("predict", made, "turned.csv", "--proba")
    assert said.out == relive("predict", made, files / "a.csv", "--proba").out
    assert "note: turned.csv has its columns in another order than this model: they are matched by name" in said.err


def test_data_given_as_the_model(relive: Command, files: Path, made: Path) -> None:
    for command in ("predict", "evaluate", "fit"):
        said = relive(command, files / "a.csv", made)
        assert said.code == 2
        assert "a.csv is not a model but data: give the model first, then the data" in said.err


def test_what_is_odd_is_said(relive: Command, files: Path, made: Path) -> None:
    x, _ = digits(7, n=3)
    np.savez("odd.npz", X=x, y=[7, 7, 7])
    code, out, err = relive("predict", made, "odd.npz")
    assert code == 0
    assert len(out.split()) == 4
    assert "accuracy 0.00 % (0 of 3)" in err
    assert "note: the model does not know 7" in err
    np.savez("wide.npz", X=x.astype(int), y=[7, 7, 7])
    for command in ("fit", "predict"):
        code, out, err = relive(command, made, "wide.npz")
        assert (code, out) == (2, "")
        assert "wide.npz: X has values from 0 to 255, but this model expects inputs in [0, 1]" in err
        assert "relive fit --likelihood gaussian" in err
    assert "accuracy" in relive("predict", made, files / "a.npz")[2]
    code, _, err = relive("predict", "gone.safetensors", files / "a.csv")
    assert code == 2
    assert "there is no model gone.safetensors" in err


def test_labels_are_of_the_model_s_kind(relive: Command, files: Path) -> None:
    table = pd.read_csv(files / "a.csv")
    table.assign(label=table.label.map({0: "01", 1: "x"})).to_csv("first.csv", index=False)
    assert relive("fit", M, "first.csv", *SMALL)[0] == 0
    table[:20].assign(label="01").to_csv("only.csv", index=False)
    assert "does not know" not in relive("predict", M, "only.csv")[2]
    pd.read_csv(files / "b.csv").to_csv("second.csv", index=False)  # labels 2 and 3
    assert relive("fit", M, "second.csv")[0] == 0
    assert load(M).labels_.tolist() == ["01", "x", "2", "3"]
    table.assign(label="").to_csv("open.csv", index=False)
    code, out, err = relive("predict", M, "open.csv")
    assert (code, len(out.split()), err) == (0, 41, "")


def test_truth_is_no_number(relive: Command, files: Path) -> None:
    table = pd.read_csv(files / "a.csv")
    table.assign(label=table.label == 1).to_csv("truth.csv", index=False)
    assert relive("fit", M, "truth.csv", *SMALL)[0] == 0
    assert "note: the model does not know 0, 1" in relive("predict", M, files / "a.csv")[2]
    assert "does not know" not in relive("predict", M, "truth.csv")[2]


def test_pictures_are_answered_by_their_names(relive: Command, files: Path) -> None:
    assert relive("fit", M, files / "a", *SMALL, "--size", "8")[0] == 0
    _, out, err = relive("predict", M, files / "a")
    rows = list(csv.reader(io.StringIO(out)))
    assert rows[0] == ["file", "label"]
    assert [row[0] for row in rows[1:3]] == ["0/000.png", "0/001.png"]
    model = load(M)
    assert [row[1] for row in rows[1:]] == model.predict(digits(*TASKS["a"])[0]).tolist()
    assert "of 40)" in err
    _, out, err = relive("predict", M, files / "a" / "1")  # no sub-folders, so no labels
    assert out.startswith("file,label\n020.png,")
    assert err == ""
    assert "of 40)" in relive("predict", M, files / "a.npz")[2]  # numbers in the file, strings in the model


def test_the_task_is_given_in_task_il(relive: Command, files: Path) -> None:
    assert relive("fit", M, files / "a.csv", *SMALL, "--scenario", "task")[0] == 0
    assert relive("fit", M, files / "b.csv", "--task", "second")[0] == 0
    code, _, err = relive("predict", M, files / "b.csv")
    assert code == 2
    assert "which needs the task: pass --task NAME, one of 0, second, or --task-column COLUMN" in err
    for task, labels in (("0", {"0", "1"}), ("second", {"2", "3"})):
        _, out, _ = relive("predict", M, files / "b.csv", "--task", task)
        assert set(out.split()[1:]) <= labels
    tables = [pd.read_csv(files / f"{name}.csv").assign(when=task) for name, task in (("a", "0"), ("b", "second"))]
    pd.concat(tables).to_csv("both.csv", index=False)
    code, out, err = relive("predict", M, "both.csv", "--task-column", "when")
    assert code == 0
    assert set(out.split()[1:41]) <= {"0", "1"}
    assert set(out.split()[41:]) <= {"2", "3"}
    assert relive("fit", M, files / "c.csv", "--task", "007")[0] == 0
    pd.concat(tables).assign(when="007").to_csv("both.csv", index=False)
    assert set(relive("predict", M, "both.csv", "--task-column", "when")[1].split()[1:]) <= {"4", "5"}
    code, _, err = relive("predict", M, files / "b.csv", "--task", "third")
    assert code == 2
    assert "task 'third' was never learned; known tasks: 0, 'second', '007'" in err
    for name in ("second", "0"):  # a task without a name is chosen by its number
        code, _, err = relive("fit", M, files / "c.csv", "--task", name, "--again")
        assert code == 2
        assert f"task '{name}' was already learned" in err
