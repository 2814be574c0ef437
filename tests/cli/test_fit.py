"""``relive fit``, ``predict``, ``inspect`` and ``rollback`` as a user meets them: real files, real processes."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from sklearn.datasets import load_digits

import relive
from relive.classifier.estimator import ContinualClassifier
from relive.classifier.history import locked
from relive.cli import main
from relive.core.optimizers import Adam
from tests.classifier.test_estimator import assert_same
from tests.classifier.test_history import dying_at

SMALL = ["--method", "rtf", "--hidden", "16", "--latent", "4", "--iterations", "10", "--learning-rate", "0.01"]
PARAMETERS: dict[str, Any] = {"method": "rtf", "hidden": 16, "latent": 4, "iterations": 10, "learning_rate": 0.01}
TASKS = {"a": (0, 1), "b": (2, 3), "c": (4, 5)}
M = "m.safetensors"
Run = Callable[..., tuple[int, str, str]]


def digits(*classes: int, n: int = 20) -> tuple[Any, Any]:
    """Some digits as bytes, and their labels."""
    x, y = load_digits(return_X_y=True)
    rows = np.concatenate([np.flatnonzero(y == c)[:n] for c in classes])
    return (x[rows] / 16 * 255).round().astype(np.uint8), y[rows]


@pytest.fixture(scope="module")
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


@pytest.fixture(scope="module")
def made(files: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that has learned the first task from CSV; to be copied."""
    path = tmp_path_factory.mktemp("made") / M
    x, y = digits(*TASKS["a"])
    table = pd.DataFrame(x / 255, columns=[f"pixel {i}" for i in range(64)])
    ContinualClassifier(**PARAMETERS).partial_fit(table, y).save(path)
    return path


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where commands are given."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(home: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Give a command in this process, for speed; return its exit code, stdout and stderr."""

    def given(*arguments: str | Path) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["relive", *map(str, arguments)])
        with pytest.raises(SystemExit) as exit_:
            main()
        out, err = capfd.readouterr()
        assert "Traceback" not in err
        return int(exit_.value.code or 0), out, err

    return given


def process(*arguments: str | Path, cwd: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "relive", *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "COLUMNS": "200"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def until(happened: Callable[[], object]) -> None:
    deadline = time.monotonic() + 90
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def all_bytes(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# ---- learning ----------------------------------------------------------------------------------------------------


def test_process_after_process_gives_the_bits_of_one_process(home: Path, files: Path, run: Run) -> None:
    assert run("fit", M, files / "a.csv", *SMALL)[0] == 0
    done = process("fit", M, files / "b.csv", "--task", "second", cwd=home)
    out, err = done.communicate(timeout=120)
    assert done.returncode == 0
    assert err.replace("\n", " ").startswith("note: replay misses 2, 3: what is not replayed is forgotten")  # ten steps
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
    stored = relive.load(M)
    assert_same(stored, whole)
    assert [lesson.name for lesson in stored.lessons_] == [0, "second"]
    assert [lesson.digest for lesson in stored.lessons_] == [lesson.digest for lesson in whole.lessons_]
    assert [file.name for file in home.iterdir()] == [M]


def test_the_method_is_chosen_and_said_with_its_reason(run: Run, files: Path) -> None:
    code, out, _ = run("fit", M, files / "a")  # pictures
    assert code == 0
    assert "method    discriminant, chosen: in closed form on random convolutions" in out
    assert ", in closed form\n" in out
    assert "as well as if all data had been kept" in out
    assert "dreamt" not in out
    code, out, _ = run("fit", M, files / "b")
    assert code == 0
    assert "chosen" not in out  # it was said
    _, out, _ = run("inspect", M)
    assert "learns    by discriminant in scenario class" in out
    assert "chosen: in closed form" in out
    assert run("fit", M, files / "c", "--method", "discriminant")[0] == 0
    code, _, err = run("fit", M, files / "c", "--method", "rtf")
    assert code == 2
    assert "--method rtf: m.safetensors was made with discriminant" in err
    assert run("fit", "ewc.safetensors", files / "a.csv", *SMALL, "--method", "ewc")[0] == 0
    assert "kept: an estimate of what is left" in run("inspect", "ewc.safetensors")[1]
    assert run("fit", "d.safetensors", files / "a.csv", *SMALL, "--method", "ewc", "--scenario", "domain")[0] == 0
    assert "only data can tell how well each class is remembered" in run("inspect", "d.safetensors")[1]


def test_every_kind_of_data_teaches_the_same(run: Run, files: Path, made: Path) -> None:
    for kind in (".csv", ".parquet", ".npz", ""):
        path = f"m{kind[1:]}.safetensors"
        size = [] if kind else ["--size", "8"]
        assert run("fit", path, files / f"a{kind}", *SMALL, *size)[0] == 0
        assert_same(relive.load(path), relive.load(made))
    assert relive.load("mcsv.safetensors").feature_names_in_[63] == "pixel 63"
    assert relive.load("mnpz.safetensors").notes_["image"] == [8, 8]
    pictures = relive.load("m.safetensors")
    assert pictures.notes_["image"] == [8, 8]
    assert pictures.classes_.tolist() == ["0", "1"]


def test_options_reach_the_model(run: Run, files: Path) -> None:
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
    assert run("fit", M, files / "a.csv", *options, *more)[0] == 0
    model = relive.load(M)
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
    again = [*options, *more, "--set", "xi=0.1"]  # the same once more is no contradiction, nor is a default
    assert run("fit", M, files / "b.csv", *again)[0] == 0


def test_how_it_learns_may_change_from_task_to_task(run: Run, files: Path, made: Path) -> None:
    shutil.copy(made, M)
    options = ["--iterations", "7", "--learning-rate", "0.02", "--batch-size", "16"]
    assert run("fit", M, files / "b.csv", *options)[0] == 0
    assert run("fit", M, files / "c.csv")[0] == 0
    there, x, y = relive.load(made), pd.read_csv(files / "b.csv"), digits(*TASKS["b"])[1]
    there.set_params(iterations=7, learning_rate=0.02, batch_size=16)
    there.partial_fit(x.drop(columns="label"), y)
    there.partial_fit(pd.read_csv(files / "c.csv").drop(columns="label"), digits(*TASKS["c"])[1])
    for name, tensor in relive.load(M).learner_.state().items():
        assert torch.equal(tensor, there.learner_.state()[name]), name


def test_the_label_s_column_is_remembered(run: Run, files: Path) -> None:
    for name in ("a", "b"):
        pd.read_csv(files / f"{name}.csv").rename(columns={"label": "digit"}).to_csv(f"{name}.csv", index=False)
    code, _, err = run("fit", M, "a.csv", *SMALL)
    assert code == 2
    assert "a.csv has no column 'label': it has 'pixel 0', 'pixel 1'" in err
    assert "call the column of labels 'label', or give relive fit, predict and evaluate its name with --label" in err
    assert run("fit", M, "a.csv", *SMALL, "--label", "digit")[0] == 0
    assert run("fit", M, "b.csv")[0] == 0
    code, out, err = run("predict", M, "a.csv")
    assert code == 0
    assert "accuracy" in err
    code, out, err = run("predict", M, "a.csv", "--label", "answer")
    assert (code, out) == (2, "")
    assert "has no column 'answer'" in err


def test_arrays_under_other_names(run: Run) -> None:
    x, y = digits(0, 1)
    np.savez("a.npz", data=x, target=y)
    assert run("fit", M, "a.npz", *SMALL, "--x", "data", "--y", "target")[0] == 0
    assert "accuracy" in run("predict", M, "a.npz")[2]


def test_colour_and_size_are_decided_at_first(run: Run) -> None:
    for name, shift in (("one", 0), ("two", 100)):
        for label in ("red", "blue"):
            (Path(name) / label).mkdir(parents=True)
            for i in range(3):
                pixels = np.zeros((9, 7, 3), dtype=np.uint8) + shift
                pixels[..., 0 if label == "red" else 2] = 100 + 20 * i
                Image.fromarray(pixels).save(Path(name) / label / f"{i}.jpg")
    code, _, err = run("fit", "grey.safetensors", "one", *SMALL)
    assert code == 0
    assert "pictures made grey, 9 × 7 → 28 × 28; --colour keeps colours, --size N is the size" in err
    assert "grey" not in run("fit", M, "one", *SMALL, "--size", "5", "--colour")[2]
    assert relive.load(M).notes_["image"] == [5, 5, 3]
    assert relive.load(M).n_features_in_ == 75
    before = Path(M).read_bytes()
    for options, message in (
        (["--size", "6"], f"--size 6: {M} was made with 5 × 5, and that cannot be changed"),
        (["--grey"], f"--grey: {M} was made with colour, and that cannot be changed"),
    ):
        code, _, err = run("fit", M, "two", *options)
        assert code == 2
        assert message in err
        assert Path(M).read_bytes() == before
    assert run("fit", M, "two", "--size", "5", "--colour")[0] == 0
    assert run("inspect", M, "--picture", "replay.png")[0] == 0
    with Image.open("replay.png") as picture:
        assert picture.format == "PNG"
    assert run("fit", "conv.safetensors", "one", *SMALL, "--size", "5", "--colour", "--encoder", "conv")[0] == 0
    assert relive.load("conv.safetensors").shape == (5, 5, 3)


# ---- networks and methods of one's own ---------------------------------------------------------------------------

OWN = """
from torch import nn

def make(shape, hidden, rng):
    return nn.Sequential(nn.Unflatten(1, (1, *shape)), nn.Conv2d(1, 2, 3), nn.Flatten(), nn.LazyLinear(hidden))
"""
REPLAY = f"{Path(__file__).parents[2] / 'examples' / 'own_method.py'}:ExperienceReplay"


def test_the_encoder_and_the_shape(run: Run, files: Path) -> None:
    """Pictures have a shape of their own; rows of a table are given one, and the network is the same."""
    for path, options in ((files / "a.npz", []), (files / "a.csv", ["--shape", "8x8"]), (files / "a", ["--size", "8"])):
        Path(M).unlink(missing_ok=True)
        assert run("fit", M, path, *SMALL, "--encoder", "conv", *options)[0] == 0
        model = relive.load(M)
        assert (model.encoder, model.shape) == ("conv", (8, 8))
        x, y = digits(*TASKS["a"])
        there = ContinualClassifier(encoder="conv", shape=(8, 8), **PARAMETERS).partial_fit(x, y)
        assert_same(model, there)
    assert run("fit", M, files / "b", "--encoder", "conv", "--shape", "8×8")[0] == 0
    assert relive.load(M).n_tasks_ == 2
    for options, message in (
        (["--encoder", "mlp"], f"--encoder mlp: {M} was made with conv, and that cannot be changed"),
        (["--shape", "4x16"], f"--shape 4x16: {M} was made with 8x8, and that cannot be changed"),
        (["--shape", "8by8"], "--shape 8by8: write it as HEIGHTxWIDTH"),
    ):
        code, _, err = run("fit", M, files / "c", *options)
        assert code == 2
        assert message in err


def test_shapes_that_cannot_be(run: Run, files: Path) -> None:
    for options, message in (
        (["--encoder", "conv"], "say what it is, such as shape=(28, 28), or relive fit --shape 28x28"),
        (["--encoder", "conv", "--shape", "7x7"], "an input of this shape has 49 numbers, not 64"),
        (["--encoder", "cov"], "unknown encoder 'cov': did you mean 'conv'?"),
        (["--shape", "0x8"], "--shape 0x8: write it as HEIGHTxWIDTH"),
        (["--shape", ""], "write it as HEIGHTxWIDTH"),
    ):
        code, _, err = run("fit", M, files / "a.csv", *SMALL, *options)
        assert code == 2
        assert message in err
        assert not Path(M).exists()


def test_code_of_one_s_own_is_run_if_that_is_allowed(run: Run, files: Path, home: Path) -> None:
    (home / "mine.py").write_text(OWN)
    assert run("fit", M, files / "a.npz", *SMALL, "--encoder", "mine.py:make", "--keep", "1")[0] == 0
    for words in (["fit", M, files / "b.npz"], ["predict", M, files / "a.npz"], ["inspect", M], ["rollback", M]):
        before = all_bytes(home)
        code, out, err = run(*words)
        assert (code, out) == (2, "")
        assert re.search(rf"{M}(.kept-1)? names code of your own, mine.py:make, which loading it would run", err)
        assert "--allow-code" in err
        assert all_bytes(home) == before
        assert run(*words, "--allow-code")[0] == 0
    assert relive.load(M, allow_code=True).n_tasks_ == 1


def test_real_samples_are_stored_only_if_that_is_allowed(run: Run, files: Path, made: Path) -> None:
    learn = ["fit", M, files / "a.npz", *SMALL, "--method", REPLAY, "--set", "size=10"]
    code, _, err = run(*learn)
    assert code == 2
    assert "keeps data of earlier tasks: real samples would be in the model, and in its file" in err
    assert "relive fit --allow-stored-data" in err
    assert not Path(M).exists()
    code, out, _ = run(*learn, "--allow-stored-data")
    assert code == 0
    assert "REAL SAMPLES of the tasks learned are in this file" in out
    code, out, _ = run("fit", M, files / "b.npz", "--allow-code")
    assert code == 0
    assert "REAL SAMPLES" in out
    assert "REAL SAMPLES" in run("inspect", M, "--allow-code")[1]
    about = json.loads(run("inspect", M, "--allow-code", "--json")[1])
    assert about["holds_data"]
    assert about["parameters"]["allow_stored_data"]
    assert "data      no sample is in this file" in run("inspect", made)[1]
    assert not json.loads(run("inspect", made, "--json")[1])["holds_data"]


# ---- what is refused ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--method", "ewc"], "--method ewc: m.safetensors was made with rtf, and that cannot be changed"),
        (["--scenario", "task"], "--scenario task: m.safetensors was made with class"),
        (["--hidden", "1"], "--hidden 1: m.safetensors was made with 16"),
        (["--latent", "5"], "--latent 5: m.safetensors was made with 4"),
        (["--likelihood", "gaussian"], "--likelihood gaussian: m.safetensors was made with bernoulli"),
        (["--fidelity", "as_run"], "--fidelity as_run: m.safetensors was made with as_written"),
        (["--seed", "1"], "--seed 1: m.safetensors was made with 0"),
        (["--set", "c=1"], "RtF has no settings"),
        (["--size", "8"], "--size, --colour and --grey are for folders of pictures"),
        (["--threads", "100000"], "threads = 100000: this machine has"),
    ],
)
def test_another_value_for_a_model_that_is_there(
    run: Run, home: Path, files: Path, made: Path, options: list[str], message: str
) -> None:
    shutil.copy(made, M)
    before = all_bytes(home)
    code, out, err = run("fit", M, files / "b.csv", *options)
    assert (code, out) == (2, "")
    assert message in err
    assert all_bytes(home) == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.drop(columns="pixel 7"), "has no column 'pixel 7', which this model has learned from"),
        (lambda t: t.rename(columns={"pixel 7": "p7"}), "it has a column 'p7' that the model does not know"),
        (lambda t: t.assign(when=1), "has a column 'when' that this model has not learned from: leave it out"),
        (lambda t: t[t.columns[::-1]], "in another order: feature 1 is 'pixel 63', but for this model it is 'pixel 0'"),
        (lambda t: t.assign(**{"pixel 3": "red"}), "column 'pixel 3' of b.csv is not numeric: row 1 has 'red'"),
        (
            lambda t: t.assign(**{"pixel 3": None}),
            "column 'pixel 3' of b.csv has 40 missing values, the first in row 1",
        ),
        (lambda t: t.assign(**{"pixel 3": 7.0}), "X has values from 0 to 7, but this model takes inputs for numbers"),
        (lambda t: t.assign(label="x"), "labels are strings ('x'), but those known so far are numbers"),
        (lambda t: t.assign(label=[i + 0.5 for i in range(len(t))]), "'label' of b.csv has 0.5 in row 1: labels are"),
        (
            lambda t: t.assign(label=["7", *["A1"] * 39]),
            "labels are strings ('A1'), but those known so far are numbers",
        ),
        (lambda t: t.drop(columns="label"), "b.csv has no column 'label'"),
        (lambda t: t[:0], "b.csv has no rows"),
    ],
)
def test_data_that_do_not_fit(
    run: Run,
    home: Path,
    files: Path,
    made: Path,
    change: Callable[[pd.DataFrame], pd.DataFrame],
    message: str,
) -> None:
    shutil.copy(made, M)
    change(pd.read_csv(files / "b.csv")).to_csv("b.csv", index=False)
    before = all_bytes(home)
    code, out, err = run("fit", M, "b.csv", "--keep", "1")
    assert (code, out) == (2, "")
    assert message in err
    assert all_bytes(home) == before


def test_other_kinds_of_data_for_a_model_that_is_there(run: Run, home: Path, files: Path, made: Path) -> None:
    shutil.copy(made, M)
    assert run("fit", M, files / "b.npz")[0] == 0  # by position, as it has no names
    code, _, err = run("fit", M, files / "c")
    assert code == 2
    assert "is a folder, but this model has not learned from pictures" in err
    np.savez("d.npz", X=np.zeros((4, 5)), y=[0, 1, 0, 1])
    code, _, err = run("fit", M, "d.npz")
    assert code == 2
    assert "d.npz has 5 features, but this model has learned from 64" in err
    assert run("fit", "p.safetensors", files / "a", *SMALL, "--size", "8")[0] == 0
    np.savez("e.npz", X=np.zeros((4, 4, 16), np.uint8), y=["0", "1", "0", "1"])
    code, _, err = run("fit", "p.safetensors", "e.npz")
    assert code == 2
    assert "e.npz has pictures of 4 × 16 pixels, but this model's are 8 × 8 pixels" in err


def test_places_where_no_model_can_be(run: Run, home: Path, files: Path) -> None:
    (home / "folder.safetensors").mkdir()
    (home / "other.safetensors").write_bytes(b"not a model")
    before = all_bytes(home)
    for model, message in (
        ("nowhere/m.safetensors", "there is no directory nowhere"),
        ("folder.safetensors", "is a folder: MODEL is a file"),
        ("data.csv", "does not end with .safetensors: name the model first and then the data"),
        ("other.safetensors", "other.safetensors is not a relive model: it is not a safetensors file"),
    ):
        code, out, err = run("fit", model, files / "a.csv", *SMALL)
        assert (code, out) == (1 if model.startswith("other") else 2, "")  # what is damaged is no misuse
        assert message in err
    for options, message in (
        (["--method", "rft"], "unknown method 'rft': did you mean 'rtf'?"),
        (["--set", "c"], "write it as NAME=VALUE"),
        (["--hidden", "0"], "hidden = 0: it must be a whole number of at least 1"),
        (["--fidelity", "as_told"], "fidelity = 'as_told'"),
    ):
        code, out, err = run("fit", M, files / "a.csv", *options)
        assert (code, out) == (2, "")
        assert message in err
    code, _, err = run("fit", M, "gone.csv")
    assert code == 2
    assert "there is no file or folder gone.csv" in err
    assert all_bytes(home) == before


def test_an_unreadable_picture_is_named(run: Run, home: Path, files: Path) -> None:
    shutil.copytree(files / "a", "a")
    (home / "a" / "1" / "bad.png").write_bytes(b"nothing")
    code, _, err = run("fit", M, "a", *SMALL)
    assert code == 1
    assert "1/bad.png: it is not a picture of a known format" in err
    assert not Path(M).exists()


def test_the_same_data_again(run: Run, home: Path, files: Path, made: Path) -> None:
    shutil.copy(made, M)
    pd.read_csv(files / "a.csv")[::-1].to_csv("a.csv", index=False)  # in another order they are the same data
    before = all_bytes(home)
    code, _, err = run("fit", M, "a.csv", "--task", "new name")
    assert code == 2
    assert f"{M} has learned a.csv already: as task 0, at 20" in err
    assert "Give --again" in err
    assert all_bytes(home) == before
    assert run("fit", M, "a.csv", "--again")[0] == 0
    assert relive.load(M).n_tasks_ == 2


def test_two_at_a_time(run: Run, home: Path, files: Path, made: Path) -> None:
    shutil.copy(made, M)
    before = Path(M).read_bytes()
    Path("link.safetensors").symlink_to(M)
    with locked(Path(M)):
        for arguments in (["fit", M, files / "b.csv"], ["fit", "link.safetensors", files / "b.csv"], ["rollback", M]):
            code, out, err = run(*arguments)
            assert (code, out) == (2, "")
            assert "is being changed by another process: wait for it, or stop it" in err
    assert Path(M).read_bytes() == before
    assert run("fit", "link.safetensors", files / "b.csv")[0] == 0
    assert Path("link.safetensors").is_symlink()
    assert relive.load(M).n_tasks_ == 2


# ---- being stopped -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("there", [True, False])
def test_an_interrupt_leaves_the_file_as_it_was_and_says_so(home: Path, files: Path, there: bool) -> None:
    if there:
        ContinualClassifier(**PARAMETERS).partial_fit(*digits(0, 1)).set_params(iterations=10**6).save(M)
    before = all_bytes(home)
    child = process(
        "fit", M, files / "b.npz", *([] if there else ["--method", "rtf", "--iterations", "1000000"]), cwd=home
    )
    until((home / f".{M}.lock").exists)
    time.sleep(1)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=60)
    assert (child.returncode, out) == (130, "")
    assert err == (f"stopped. {M} is as it was.\n" if there else "stopped. Nothing was stored.\n")
    assert all_bytes(home) == before


def test_killed_at_any_moment_the_model_is_whole(home: Path, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before each change to the disk in turn, and amid the training."""
    ContinualClassifier(**PARAMETERS).partial_fit(*digits(*TASKS["a"])).save(M)
    shutil.copy(M, "first")
    monkeypatch.setattr(sys, "argv", ["relive", "fit", M, str(files / "b.npz"), "--keep", "2", "--quiet"])
    before = relive.load(M)
    after = relive.load(M).partial_fit(*digits(*TASKS["b"]))

    learned = 0
    for k in range(60):
        died = dying_at(k, main, *([(Adam, "step")] if k % 3 == 0 else []))
        model = relive.load(M)
        assert model.n_tasks_ in (1, 2)
        assert_same(model, before if model.n_tasks_ == 1 else after)
        if model.n_tasks_ == 2:
            learned += 1
            shutil.copy("first", M)
            Path(f"{M}.kept-1").unlink(missing_ok=True)
        if not died:
            break
    assert k > 8
    assert learned > 1


# ---- earlier versions --------------------------------------------------------------------------------------------


def test_earlier_versions_and_rolling_back(run: Run, home: Path, files: Path, made: Path) -> None:
    shutil.copy(made, M)
    versions = [Path(M).read_bytes()]
    for name, options in (("b", ["--keep", "2"]), ("c", []), ("a", ["--again"])):  # --keep is remembered
        assert run("fit", M, files / f"{name}.csv", "--task", name, *options)[0] == 0
        versions.append(Path(M).read_bytes())
    assert all_bytes(home) == {M: versions[3], f"{M}.kept-1": versions[2], f"{M}.kept-2": versions[1]}
    code, out, _ = run("rollback", M)
    assert code == 0
    assert re.search(rf"model     {M}: 3 tasks, \d+ classes \(tasks: 0, b, c\)\n", out)
    assert f"undone    {M}.undone" in out
    assert all_bytes(home) == {M: versions[2], f"{M}.kept-1": versions[1], f"{M}.undone": versions[3]}
    code, _, err = run("rollback", M)
    assert (code, err) == (0, "")
    assert all_bytes(home) == {M: versions[1], f"{M}.undone": versions[3], f"{M}.undone-2": versions[2]}
    code, _, err = run("rollback", M)
    assert code == 2
    assert f"there is no earlier version of {M}" in err
    (home / f"{M}.kept-1").write_bytes(b"damaged")
    before = all_bytes(home)
    code, _, err = run("rollback", M)
    assert code == 1
    assert f"{M}.kept-1 is not a relive model" in err
    assert all_bytes(home) == before


def test_a_version_of_before_keep_says_so(run: Run, files: Path, made: Path) -> None:
    shutil.copy(made, M)
    assert run("fit", M, files / "b.csv", "--keep", "2")[0] == 0
    code, _, err = run("rollback", M)
    assert code == 0
    assert "this version is of before --keep was given" in err
    code, _, err = run("rollback", "nothing.safetensors")
    assert code == 2
    assert "there is no model nothing.safetensors" in err


def test_a_damaged_version_takes_no_place_even_after_a_kill(run: Run, home: Path, made: Path) -> None:
    """A kill while a version is kept leaves one that is the model itself; the one before it is what comes back."""
    for name in (M, f"{M}.kept-1"):
        shutil.copy(made, name)
    Path(f"{M}.kept-2").write_bytes(made.read_bytes()[:3000])
    code, _, err = run("rollback", M)
    assert code == 1
    assert "is cut short" in err
    assert Path(M).read_bytes() == made.read_bytes()
    assert not list(home.glob("*.undone"))


# ---- answering ---------------------------------------------------------------------------------------------------


def test_answers_are_the_model_s_own(run: Run, files: Path, made: Path) -> None:
    model = relive.load(made)
    x, y = digits(*TASKS["a"])
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        labels, probabilities = model.predict(x / 255), model.predict_proba(x / 255)
    code, out, err = run("predict", made, files / "a.csv", "--proba")
    assert code == 0
    rows = list(csv.reader(io.StringIO(out)))
    assert rows[0] == ["label", "p_0", "p_1"]
    assert [int(row[0]) for row in rows[1:]] == labels.tolist()
    assert np.array([row[1:] for row in rows[1:]], float) == pytest.approx(probabilities, abs=1e-5)  # without torch
    right = int((labels == y).sum())
    assert err == f"accuracy {100 * right / 40:.2f} % ({right} of 40)\n"
    code, out, err = run("predict", made, files / "a-plain.csv", "--format", "json", "--proba")
    assert (code, err) == (0, "")
    answers = json.loads(out)
    assert [answer["label"] for answer in answers] == labels.tolist()
    said = np.array([list(answer["proba"].values()) for answer in answers])
    assert said == pytest.approx(probabilities, abs=1e-5)
    for kind in (".parquet", ".npz"):
        _, out, _ = run("predict", made, files / f"a{kind}")
        assert out.split() == ["label", *map(str, labels.tolist())]


def test_answers_in_a_file(run: Run, home: Path, files: Path, made: Path) -> None:
    assert run("predict", made, files / "a-plain.csv", "--output", "out.json") == (0, "", "")
    assert len(json.loads((home / "out.json").read_text())) == 40
    assert run("predict", made, files / "a-plain.csv", "-o", "out.txt", "--format", "csv")[0] == 0
    assert (home / "out.txt").read_text().startswith("label\n")
    shutil.copy(files / "a.csv", "a.csv")
    before = all_bytes(home)
    for options, message in (
        (["--output", "out.text"], "out.text ends neither with .csv nor with .json: say which with --format"),
        (["--output", "a.csv"], "--output a.csv would take the place of what is read"),
        (["--output", "nowhere/a.csv"], "there is no directory nowhere"),
        (["--format", "cvs"], "unknown format 'cvs': did you mean 'csv'?"),
        (["--task", "x", "--task-column", "y"], "give either --task or --task-column, not both"),
        (["--task", "x"], "in Class-IL the task is not given, leave it out"),
    ):
        code, out, err = run("predict", made, "a.csv", *options)
        assert (code, out) == (2, "")
        assert message in err
    assert all_bytes(home) == before


def test_unusual_samples_are_refused_on_request(run: Run) -> None:
    x, y = digits(0, 1, 2, 3, n=60)
    strange, _ = digits(7, n=30)
    np.savez("learn.npz", X=x, y=y)
    np.savez("ask.npz", X=np.concatenate([x[:60], strange, 255 - strange]), y=np.repeat([0, 7], [60, 60]))
    assert run("fit", M, "learn.npz", "--method", "slda", "--holdout", "0")[0] == 0
    code, out, err = run("predict", M, "ask.npz", "--reject", "5%")
    labels = out.split()[1:]
    assert code == 0
    assert labels[-30:] == ["unknown"] * 30
    assert labels[:60].count("unknown") < 10
    assert f"({labels.count('unknown')} of 120)" in err
    assert run("predict", M, "ask.npz", "--reject", "0.05")[1] == out
    as_json = json.loads(run("predict", M, "ask.npz", "--reject", "5%", "--format", "json")[1])
    assert [str(row["label"]) for row in as_json] == labels
    for wrong in ("few", "0", "200%"):
        code, out, err = run("predict", M, "ask.npz", "--reject", wrong)
        assert (code, out) == (2, "")
        assert "0.05" in err
    assert run("fit", "n.safetensors", "learn.npz", "--holdout", "0", *SMALL)[0] == 0
    code, out, err = run("predict", "n.safetensors", "ask.npz", "--reject", "5%")
    assert (code, out) == (2, "")
    assert "holdout" in err


def test_what_is_odd_is_said(run: Run, files: Path, made: Path) -> None:
    x, _ = digits(7, n=3)
    np.savez("odd.npz", X=x, y=[7, 7, 7])
    code, out, err = run("predict", made, "odd.npz")
    assert code == 0
    assert len(out.split()) == 4
    assert "accuracy 0.00 % (0 of 3)" in err
    assert "note: the model has never met 7" in err
    np.savez("wide.npz", X=x.astype(int), y=[7, 7, 7])
    for command in ("fit", "predict"):
        code, out, err = run(command, made, "wide.npz")
        assert (code, out) == (2, "")
        assert "wide.npz: X has values from 0 to 255, but this model takes inputs for numbers in [0, 1]" in err
        assert "relive fit --likelihood gaussian" in err
    assert "accuracy" in run("predict", made, files / "a.npz")[2]
    code, _, err = run("predict", "gone.safetensors", files / "a.csv")
    assert code == 2
    assert "there is no model gone.safetensors" in err


def test_classes_of_few_samples_are_warned_of_until_there_are_more(run: Run, home: Path) -> None:
    x, y = digits(0, 1)
    rows = np.concatenate([np.flatnonzero(y == 0)[:10], np.flatnonzero(y == 1)[:4]])
    np.savez(home / "few.npz", X=x[rows], y=y[rows])
    code, _, err = run("fit", M, "few.npz", "--method", "slda")
    assert code == 0
    assert "note: fewer than 10 samples of 1: what is kept of so few can give single samples away" in err
    more = np.flatnonzero(y == 1)[4:10]
    np.savez(home / "more.npz", X=x[more], y=y[more])
    assert run("fit", M, "more.npz")[2] == ""


def test_labels_are_of_the_model_s_kind(run: Run, files: Path) -> None:
    table = pd.read_csv(files / "a.csv")
    table.assign(label=table.label.map({0: "01", 1: "x"})).to_csv("first.csv", index=False)
    assert run("fit", M, "first.csv", *SMALL)[0] == 0
    table[:20].assign(label="01").to_csv("only.csv", index=False)
    assert "never met" not in run("predict", M, "only.csv")[2]
    pd.read_csv(files / "b.csv").to_csv("second.csv", index=False)  # labels 2 and 3
    assert run("fit", M, "second.csv")[0] == 0
    assert relive.load(M).labels_.tolist() == ["01", "x", "2", "3"]
    table.assign(label="").to_csv("open.csv", index=False)
    code, out, err = run("predict", M, "open.csv")
    assert (code, len(out.split()), err) == (0, 41, "")


def test_truth_is_no_number(run: Run, files: Path) -> None:
    table = pd.read_csv(files / "a.csv")
    table.assign(label=table.label == 1).to_csv("truth.csv", index=False)
    assert run("fit", M, "truth.csv", *SMALL)[0] == 0
    assert "note: the model has never met 0, 1" in run("predict", M, files / "a.csv")[2]
    assert "never met" not in run("predict", M, "truth.csv")[2]


@pytest.mark.filterwarnings("default")
def test_a_warning_is_a_note(run: Run, files: Path) -> None:
    shutil.copytree(files / "a", "a")
    Path("a/0/photo.heic").write_bytes(b"")
    code, _, err = run("fit", M, "a", *SMALL, "--size", "8")
    assert code == 0
    assert err.startswith(
        "note: a has files that are no pictures of a known kind, 1 in all, such as 0/photo.heic: they"
    )
    assert len(err.splitlines()) == err.count("note: ")


def test_pictures_are_answered_by_their_names(run: Run, files: Path) -> None:
    assert run("fit", M, files / "a", *SMALL, "--size", "8")[0] == 0
    _, out, err = run("predict", M, files / "a")
    rows = list(csv.reader(io.StringIO(out)))
    assert rows[0] == ["file", "label"]
    assert [row[0] for row in rows[1:3]] == ["0/000.png", "0/001.png"]
    model = relive.load(M)
    assert [row[1] for row in rows[1:]] == model.predict(digits(*TASKS["a"])[0]).tolist()
    assert "of 40)" in err
    _, out, err = run("predict", M, files / "a" / "1")  # no sub-folders: no labels
    assert out.startswith("file,label\n020.png,")
    assert err == ""
    assert "of 40)" in run("predict", M, files / "a.npz")[2]  # numbers there, strings here


def test_the_task_is_given_in_task_il(run: Run, files: Path) -> None:
    assert run("fit", M, files / "a.csv", *SMALL, "--scenario", "task")[0] == 0
    assert run("fit", M, files / "b.csv", "--task", "second")[0] == 0
    code, _, err = run("predict", M, files / "b.csv")
    assert code == 2
    assert "where the task is given: --task NAME, one of 0, second, or --task-column COLUMN" in err
    for task, labels in (("0", {"0", "1"}), ("second", {"2", "3"})):
        _, out, _ = run("predict", M, files / "b.csv", "--task", task)
        assert set(out.split()[1:]) <= labels
    tables = [pd.read_csv(files / f"{name}.csv").assign(when=task) for name, task in (("a", "0"), ("b", "second"))]
    pd.concat(tables).to_csv("both.csv", index=False)
    code, out, err = run("predict", M, "both.csv", "--task-column", "when")
    assert code == 0
    assert set(out.split()[1:41]) <= {"0", "1"}
    assert set(out.split()[41:]) <= {"2", "3"}
    assert run("fit", M, files / "c.csv", "--task", "007")[0] == 0
    pd.concat(tables).assign(when="007").to_csv("both.csv", index=False)
    assert set(run("predict", M, "both.csv", "--task-column", "when")[1].split()[1:]) <= {"4", "5"}
    code, _, err = run("predict", M, files / "b.csv", "--task", "third")
    assert code == 2
    assert "task 'third' was never learned: known are 0, 'second', '007'" in err
    for name in ("second", "0"):  # a task without a name is asked for by its number
        code, _, err = run("fit", M, files / "c.csv", "--task", name, "--again")
        assert code == 2
        assert f"task '{name}' was learned already" in err


# ---- inspecting --------------------------------------------------------------------------------------------------


def test_what_is_in_a_model(run: Run, files: Path, made: Path) -> None:
    shutil.copy(made, M)
    run("fit", M, files / "b.csv", "--task", "[bold]", "--keep", "1")
    code, out, err = run("inspect", M, "--json")
    assert (code, err) == (0, "")
    about = json.loads(out)
    model = relive.load(M)
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
    code, out, _ = run("inspect", M)
    assert code == 0
    for text in ("learns    by rtf in scenario class, bernoulli inputs", "[bold]", "pixel 7 and 56 more", "hidden 16"):
        assert text in out
    code, _, err = run("inspect", M, "--picture", "a.png")
    assert code == 2
    assert "has not learned from pictures" in err
    code, _, err = run("inspect", "gone.safetensors")
    assert code == 2
    assert "there is no model gone.safetensors" in err


@pytest.mark.parametrize("options", [[], ["--scenario", "task"], ["--scenario", "domain", "--likelihood", "gaussian"]])
def test_a_picture_of_what_is_replayed(run: Run, files: Path, options: list[str]) -> None:
    assert run("fit", M, files / "a.npz", *SMALL, *options)[0] == 0
    code, out, _ = run("inspect", M, "--picture", "replay.png")
    assert code == 0
    assert "picture   replay.png" in out
    with Image.open("replay.png") as picture:
        assert picture.size[0] > 1000
    code, _, err = run("inspect", M, "--picture", "replay.svg")
    assert code == 2
    assert "ends with .png" in err


def test_a_method_that_generates_nothing_has_no_picture(run: Run, files: Path) -> None:
    assert run("fit", M, files / "a.npz", *SMALL, "--method", "none")[0] == 0
    code, _, err = run("inspect", M, "--picture", "replay.png")
    assert code == 2
    assert "method 'none' generates nothing" in err


def test_a_pipe_shows_everything_in_any_encoding(home: Path, files: Path, made: Path, run: Run) -> None:
    shutil.copy(made, M)
    long = "a name of a task that is longer than a line of a terminal " * 2 + "→"
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    assert run("fit", M, files / "b.csv", "--task", long)[0] == 0
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
