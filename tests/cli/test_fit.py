"""``relive fit`` as a user sees it: every kind of data, user-defined networks and methods."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from relive import ContinualClassifier, load
from tests.classifier.digits import assert_same
from tests.cli.conftest import Command
from tests.cli.teaching import PARAMETERS, SMALL, TASKS, M, all_bytes, digits, process


def test_process_after_process_gives_the_bits_of_one_process(home: Path, files: Path, relive: Command) -> None:
    assert relive("fit", M, files / "a.csv", *SMALL)[0] == 0
    done = process("fit", M, files / "b.csv", "--task", "second", cwd=home)
    out, err = done.communicate(timeout=120)
    assert done.returncode == 0
    assert err.replace("\n", " ").startswith(
        "note: 2, 3 missing from replay: what is not replayed is forgotten"
    )  # ten steps
    assert "learned   task second in" in out
    assert "classes   2 (20), 3 (20)" in out
    assert f"model     {M}, " in out
    assert ": 2 tasks, 4 classes" in out
    rows = [line.split() for line in out.splitlines() if line[:1].isdecimal()]
    assert [row[:3] for row in rows] == [
        ["0", "20", "0"],
        ["1", "20", "0"],
        ["2", "20", "second"],
        ["3", "20", "second"],
    ]
    whole = ContinualClassifier(**PARAMETERS)
    for name, task in (("a", None), ("b", "second")):
        x, y = digits(*TASKS[name])
        whole.partial_fit(x / 255, y, task)
    stored = load(M)
    assert_same(stored, whole)
    assert [lesson.name for lesson in stored.lessons_] == [0, "second"]
    assert [lesson.digest for lesson in stored.lessons_] == [lesson.digest for lesson in whole.lessons_]
    assert [file.name for file in home.iterdir()] == [M]


def test_the_method_is_chosen_and_said_with_its_reason(relive: Command, files: Path) -> None:
    code, out, _ = relive("fit", M, files / "a")  # pictures
    assert code == 0
    assert "method    discriminant, chosen: closed form on random convolutions" in out
    assert ", in closed form\n" in out
    assert "as well as if all data had been kept" in out
    assert "replayed" not in out
    code, out, _ = relive("fit", M, files / "b")
    assert code == 0
    assert "chosen" not in out  # already reported
    _, out, _ = relive("inspect", M)
    assert "method    discriminant, scenario class" in out
    assert "chosen: closed form" in out
    assert relive("fit", M, files / "c", "--method", "discriminant")[0] == 0
    code, _, err = relive("fit", M, files / "c", "--method", "rtf")
    assert code == 2
    assert "--method rtf: m.safetensors was created with discriminant" in err
    assert relive("fit", "ewc.safetensors", files / "a.csv", *SMALL, "--method", "ewc")[0] == 0
    assert "kept: estimated share of what was recognised then" in relive("inspect", "ewc.safetensors")[1]
    assert relive("fit", "d.safetensors", files / "a.csv", *SMALL, "--method", "ewc", "--scenario", "domain")[0] == 0
    assert "without data there is no telling how well each class is remembered" in relive("inspect", "d.safetensors")[1]


def test_every_kind_of_data_teaches_the_same(relive: Command, files: Path, made: Path) -> None:
    for kind in (".csv", ".parquet", ".npz", ""):
        path = f"m{kind[1:]}.safetensors"
        size = [] if kind else ["--size", "8"]
        assert relive("fit", path, files / f"a{kind}", *SMALL, *size)[0] == 0
        assert_same(load(path), load(made))
    assert load("mcsv.safetensors").feature_names_in_[63] == "pixel 63"
    assert load("mnpz.safetensors").notes_["image"] == [8, 8]
    pictures = load("m.safetensors")
    assert pictures.notes_["image"] == [8, 8]
    assert pictures.classes_.tolist() == ["0", "1"]


def test_options_reach_the_model(relive: Command, files: Path) -> None:
    options = ["--method", "si", "--scenario", "task", "--set", "c=0.5", "--seed", "7", "--batch-size", "9"]
    more = [
        "--likelihood",
        "gaussian",
        "--fidelity",
        "as_run",
        "--early-stopping",
        "--hidden",
        "8",
        "--iterations",
        "60",
    ]
    assert relive("fit", M, files / "a.csv", *options, *more)[0] == 0
    model = load(M)
    given = {
        "method": "si",
        "scenario": "task",
        "settings": {"c": 0.5},
        "batch_size": 9,
        "random_state": 7,
        "likelihood": "gaussian",
        "fidelity": "as_run",
        "early_stopping": True,
        "hidden": 8,
        "latent": 100,
    }
    assert {name: getattr(model, name) for name in given} == given
    assert model.lessons_[0].iterations <= 60
    again = [*options, *more, "--set", "xi=0.1"]  # repeating an option is not a conflict, nor is giving a default
    assert relive("fit", M, files / "b.csv", *again)[0] == 0


def test_how_it_learns_may_change_from_task_to_task(relive: Command, files: Path, made: Path) -> None:
    shutil.copy(made, M)
    options = ["--iterations", "7", "--learning-rate", "0.02", "--batch-size", "16"]
    assert relive("fit", M, files / "b.csv", *options)[0] == 0
    assert relive("fit", M, files / "c.csv")[0] == 0
    there, x, y = load(made), pd.read_csv(files / "b.csv"), digits(*TASKS["b"])[1]
    there.set_params(iterations=7, learning_rate=0.02, batch_size=16)
    there.partial_fit(x.drop(columns="label"), y)
    there.partial_fit(pd.read_csv(files / "c.csv").drop(columns="label"), digits(*TASKS["c"])[1])
    for name, tensor in load(M).learner_.state().items():
        assert torch.equal(tensor, there.learner_.state()[name]), name


def test_the_label_s_column_is_remembered(relive: Command, files: Path) -> None:
    for name in ("a", "b"):
        pd.read_csv(files / f"{name}.csv").rename(columns={"label": "digit"}).to_csv(f"{name}.csv", index=False)
    code, _, err = relive("fit", M, "a.csv", *SMALL)
    assert code == 2
    assert "a.csv has no column 'label': it has 'pixel 0', 'pixel 1'" in err
    assert "call the label column 'label', or pass its name to relive fit, predict and evaluate with --label" in err
    assert relive("fit", M, "a.csv", *SMALL, "--label", "digit")[0] == 0
    assert relive("fit", M, "b.csv")[0] == 0
    code, out, err = relive("predict", M, "a.csv")
    assert code == 0
    assert "accuracy" in err
    code, out, err = relive("predict", M, "a.csv", "--label", "answer")
    assert (code, out) == (2, "")
    assert "has no column 'answer'" in err


def test_arrays_under_other_names(relive: Command) -> None:
    x, y = digits(0, 1)
    np.savez("a.npz", data=x, target=y)
    assert relive("fit", M, "a.npz", *SMALL, "--x", "data", "--y", "target")[0] == 0
    assert "accuracy" in relive("predict", M, "a.npz")[2]


def test_colour_and_size_are_decided_at_first(relive: Command) -> None:
    for name, shift in (("one", 0), ("two", 100)):
        for label in ("red", "blue"):
            (Path(name) / label).mkdir(parents=True)
            for i in range(3):
                pixels = np.zeros((9, 7, 3), dtype=np.uint8) + shift
                pixels[..., 0 if label == "red" else 2] = 100 + 20 * i
                Image.fromarray(pixels).save(Path(name) / label / f"{i}.jpg")
    code, _, err = relive("fit", "grey.safetensors", "one", *SMALL)
    assert code == 0
    assert "images made grey, 9 × 7 → 28 × 28; use --colour to keep colours, --size N to set the size" in err
    assert "grey" not in relive("fit", M, "one", *SMALL, "--size", "5", "--colour")[2]
    assert load(M).notes_["image"] == [5, 5, 3]
    assert load(M).n_features_in_ == 75
    before = Path(M).read_bytes()
    for options, message in (
        (["--size", "6"], f"--size 6: {M} was created with 5 × 5, which cannot be changed"),
        (["--grey"], f"--grey: {M} was created with colour, which cannot be changed"),
    ):
        code, _, err = relive("fit", M, "two", *options)
        assert code == 2
        assert message in err
        assert Path(M).read_bytes() == before
    assert relive("fit", M, "two", "--size", "5", "--colour")[0] == 0
    assert relive("inspect", M, "--picture", "replay.png")[0] == 0
    with Image.open("replay.png") as picture:
        assert picture.format == "PNG"
    assert relive("fit", "conv.safetensors", "one", *SMALL, "--size", "5", "--colour", "--encoder", "conv")[0] == 0
    assert load("conv.safetensors").shape == (5, 5, 3)


OWN = """
from torch import nn

def make(shape, hidden, rng):
    return nn.Sequential(nn.Unflatten(1, (1, *shape)), nn.Conv2d(1, 2, 3), nn.Flatten(), nn.LazyLinear(hidden))
"""
REPLAY = f"{Path(__file__).parents[2] / 'examples' / 'own_method.py'}:ExperienceReplay"


def test_the_encoder_and_the_shape(relive: Command, files: Path) -> None:
    """Pictures have a shape; rows of a table are given one, and the network is the same."""
    for path, options in ((files / "a.npz", []), (files / "a.csv", ["--shape", "8x8"]), (files / "a", ["--size", "8"])):
        Path(M).unlink(missing_ok=True)
        assert relive("fit", M, path, *SMALL, "--encoder", "conv", *options)[0] == 0
        model = load(M)
        assert (model.encoder, model.shape) == ("conv", (8, 8))
        x, y = digits(*TASKS["a"])
        there = ContinualClassifier(encoder="conv", shape=(8, 8), **PARAMETERS).partial_fit(x, y)
        assert_same(model, there)
    assert relive("fit", M, files / "b", "--encoder", "conv", "--shape", "8×8")[0] == 0
    assert load(M).n_tasks_ == 2
    for options, message in (
        (["--encoder", "mlp"], f"--encoder mlp: {M} was created with conv, which cannot be changed"),
        (["--shape", "4x16"], f"--shape 4x16: {M} was created with 8x8, which cannot be changed"),
        (["--shape", "8by8"], "--shape 8by8: write it as HEIGHTxWIDTH"),
    ):
        code, _, err = relive("fit", M, files / "c", *options)
        assert code == 2
        assert message in err


def test_code_of_one_s_own_is_run_if_that_is_allowed(relive: Command, files: Path, home: Path) -> None:
    (home / "mine.py").write_text(OWN)
    assert relive("fit", M, files / "a.npz", *SMALL, "--encoder", "mine.py:make", "--keep", "1")[0] == 0
    for words in (["fit", M, files / "b.npz"], ["predict", M, files / "a.npz"], ["inspect", M], ["rollback", M]):
        before = all_bytes(home)
        code, out, err = relive(*words)
        assert (code, out) == (2, "")
        assert re.search(rf"{M}(.kept-1)? refers to user code, mine.py:make, which would run when it is loaded", err)
        assert "--allow-code" in err
        assert all_bytes(home) == before
        assert relive(*words, "--allow-code")[0] == 0
    assert load(M, allow_code=True).n_tasks_ == 1


def test_real_samples_are_stored_only_if_that_is_allowed(relive: Command, files: Path, made: Path) -> None:
    learn = ["fit", M, files / "a.npz", *SMALL, "--method", REPLAY, "--set", "size=10"]
    code, _, err = relive(*learn)
    assert code == 2
    assert "stores samples of earlier tasks, in the model and in its file" in err
    assert "relive fit --allow-stored-data" in err
    assert not Path(M).exists()
    code, out, _ = relive(*learn, "--allow-stored-data")
    assert code == 0
    assert "REAL SAMPLES are in this file" in out
    code, out, _ = relive("fit", M, files / "b.npz", "--allow-code")
    assert code == 0
    assert "REAL SAMPLES" in out
    assert "REAL SAMPLES" in relive("inspect", M, "--allow-code")[1]
    about = json.loads(relive("inspect", M, "--allow-code", "--json")[1])
    assert about["holds_data"]
    assert about["parameters"]["allow_stored_data"]
    assert "data      no samples are stored in this file" in relive("inspect", made)[1]
    assert not json.loads(relive("inspect", made, "--json")[1])["holds_data"]


def test_classes_of_few_samples_are_warned_of_until_there_are_more(relive: Command, home: Path) -> None:
    x, y = digits(0, 1)
    rows = np.concatenate([np.flatnonzero(y == 0)[:10], np.flatnonzero(y == 1)[:4]])
    np.savez(home / "few.npz", X=x[rows], y=y[rows])
    code, _, err = relive("fit", M, "few.npz", "--method", "slda")
    assert code == 0
    assert "note: fewer than 10 samples of 1: with so few, the model may reveal individual samples" in err
    more = np.flatnonzero(y == 1)[4:10]
    np.savez(home / "more.npz", X=x[more], y=y[more])
    assert relive("fit", M, "more.npz")[2] == ""


@pytest.mark.filterwarnings("default")
def test_a_warning_is_a_note(relive: Command, files: Path) -> None:
    shutil.copytree(files / "a", "a")
    Path("a/0/photo.heic").write_bytes(b"")
    code, _, err = relive("fit", M, "a", *SMALL, "--size", "8")
    assert code == 0
    assert err.startswith(
        "note: a has files that are not images of a supported format, 1 in all, such as 0/photo.heic: they"
    )
    assert len(err.splitlines()) == err.count("note: ")


def numbered(n: int = 30) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    x, ids = rng.normal(size=(n, 2)), rng.permutation(1000)[:n]
    return pd.DataFrame({"size": x[:, 0], "id": ids, "weight": x[:, 1], "label": ["a", "b"] * (n // 2)})


def test_a_column_of_ids_is_named_and_can_be_left_out(relive: Command, tmp_path: Path) -> None:
    table = numbered()
    table.to_csv("may.csv", index=False)
    said = relive("fit", M, "may.csv")
    assert "column 'id' of may.csv has a different whole number in every row" in said.err
    assert "leave it out with --ignore id" in said.err
    once = relive("fit", "n.safetensors", "may.csv", "--ignore", "id")
    assert (once.code, "whole number" in once.err) == (0, False)
    later = table.assign(id=[f"no {i}" for i in table["id"]], label=["c", "d"] * 15)  # no numbers at all
    later.to_csv("june.csv", index=False)
    assert relive("fit", "n.safetensors", "june.csv", "--ignore", "id").code == 0
    assert load("n.safetensors").notes_["fit"]["ignore"] == ["id"]  # it is remembered, once
    answers = relive("predict", "n.safetensors", "june.csv")
    assert answers.code == 0
    later.drop(columns="id").to_csv("plain.csv", index=False)
    assert relive("predict", "n.safetensors", "plain.csv").out == answers.out
    assert list(load("n.safetensors").feature_names_in_) == ["size", "weight"]
    for words, message in (
        (["may.csv", "--ignore", "ids"], "unknown column 'ids': did you mean 'id'?"),
        (["x.npz", "--ignore", "id"], "x.npz has no named columns"),
    ):
        np.savez("x.npz", X=np.eye(4), y=[0, 1, 0, 1])
        wrong = relive("fit", "o.safetensors", *words)
        assert (wrong.code, message in wrong.err) == (2, True)
        assert not (tmp_path / "o.safetensors").exists()
    table = table.assign(id=table["id"] // 100)  # some occur twice: not an id
    table.to_csv("other.csv", index=False)
    assert "whole number" not in relive("fit", "p.safetensors", "other.csv").err


def test_a_label_that_differs_in_case_only_is_pointed_out(relive: Command) -> None:
    numbered().drop(columns="id").to_csv("may.csv", index=False)
    numbered().drop(columns="id").assign(label=["A", "c"] * 15).to_csv("june.csv", index=False)
    assert relive("fit", M, "may.csv").code == 0
    said = relive("fit", M, "june.csv")
    assert said.code == 0
    assert "'A' is learned as a new class, next to 'a'; relive merge makes one class of two" in said.err
    assert "'c' is learned" not in said.err


def test_without_names_columns_are_said_to_be_matched_by_position(relive: Command) -> None:
    table = numbered().drop(columns="id")
    ContinualClassifier("slda").fit(table[["size", "weight"]].to_numpy(), table["label"]).save(M)
    table.to_csv("may.csv", index=False)
    assert (
        "this model knows no column names: the columns of may.csv are matched by position"
        in relive("predict", M, "may.csv").err
    )


def test_a_value_that_would_spoil_the_scaling_is_pointed_out(relive: Command) -> None:
    table = numbered().drop(columns="id")
    table.to_csv("may.csv", index=False)
    assert "far from all others" not in relive("fit", M, "may.csv").err
    table.assign(weight=[*table["weight"][:-1], 1e30]).to_csv("june.csv", index=False)
    said = relive("fit", "n.safetensors", "june.csv").err
    assert "column 'weight' of june.csv has a value far from all others, first in row 30" in said
