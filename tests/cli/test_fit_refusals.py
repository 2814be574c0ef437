"""``relive fit`` refuses what is impossible, says why, and leaves every file unchanged."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from relive import load
from tests.cli.conftest import Command
from tests.cli.teaching import SMALL, M, all_bytes


def test_shapes_that_cannot_be(relive: Command, files: Path) -> None:
    for options, message in (
        (["--encoder", "conv"], "set it, such as shape=(28, 28), or relive fit --shape 28x28"),
        (["--encoder", "conv", "--shape", "7x7"], "an input of this shape has 49 numbers, not 64"),
        (["--encoder", "cov"], "unknown encoder 'cov': did you mean 'conv'?"),
        (["--shape", "0x8"], "--shape 0x8: write it as HEIGHTxWIDTH"),
        (["--shape", ""], "write it as HEIGHTxWIDTH"),
    ):
        code, _, err = relive("fit", M, files / "a.csv", *SMALL, *options)
        assert code == 2
        assert message in err
        assert not Path(M).exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--method", "ewc"], "--method ewc: m.safetensors was created with rtf, which cannot be changed"),
        (["--scenario", "task"], "--scenario task: m.safetensors was created with class"),
        (["--hidden", "1"], "--hidden 1: m.safetensors was created with 16"),
        (["--latent", "5"], "--latent 5: m.safetensors was created with 4"),
        (["--likelihood", "gaussian"], "--likelihood gaussian: m.safetensors was created with bernoulli"),
        (["--fidelity", "as_run"], "--fidelity as_run: m.safetensors was created with as_written"),
        (["--seed", "1"], "--seed 1: m.safetensors was created with 0"),
        (["--set", "c=1"], "RtF has no settings"),
        (["--size", "8"], "--size, --colour and --grey are for folders of images"),
        (["--threads", "100000"], "threads = 100000: this machine only has"),
    ],
)
def test_another_value_for_a_model_that_is_there(
    relive: Command, home: Path, files: Path, made: Path, options: list[str], message: str
) -> None:
    shutil.copy(made, M)
    before = all_bytes(home)
    code, out, err = relive("fit", M, files / "b.csv", *options)
    assert (code, out) == (2, "")
    assert message in err
    assert all_bytes(home) == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.drop(columns="pixel 7"), "has no column 'pixel 7', which this model was trained on"),
        (lambda t: t.rename(columns={"pixel 7": "p7"}), "it has a column 'p7' that the model does not know"),
        (lambda t: t.assign(when=1), "has a column 'when' that this model was not trained on: leave it out"),
        (lambda t: t.assign(**{"pixel 3": "red"}), "column 'pixel 3' of b.csv is not numeric: row 1 has 'red'"),
        (
            lambda t: t.assign(**{"pixel 3": None}),
            "column 'pixel 3' of b.csv has 40 missing values, the first in row 1",
        ),
        (lambda t: t.assign(**{"pixel 3": 7.0}), "X has values from 0 to 7, but this model expects inputs"),
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
    relive: Command,
    home: Path,
    files: Path,
    made: Path,
    change: Callable[[pd.DataFrame], pd.DataFrame],
    message: str,
) -> None:
    shutil.copy(made, M)
    change(pd.read_csv(files / "b.csv")).to_csv("b.csv", index=False)
    before = all_bytes(home)
    code, out, err = relive("fit", M, "b.csv", "--keep", "1")
    assert (code, out) == (2, "")
    assert message in err
    assert all_bytes(home) == before


def test_other_kinds_of_data_for_a_model_that_is_there(relive: Command, home: Path, files: Path, made: Path) -> None:
    shutil.copy(made, M)
    assert relive("fit", M, files / "b.npz")[0] == 0  # by position, since it has no names
    code, _, err = relive("fit", M, files / "c")
    assert code == 2
    assert "is a folder, but this model was not trained on images" in err
    np.savez("d.npz", X=np.zeros((4, 5)), y=[0, 1, 0, 1])
    code, _, err = relive("fit", M, "d.npz")
    assert code == 2
    assert "d.npz has 5 features, but this model was trained on 64" in err
    assert relive("fit", "p.safetensors", files / "a", *SMALL, "--size", "8")[0] == 0
    np.savez("e.npz", X=np.zeros((4, 4, 16), np.uint8), y=["0", "1", "0", "1"])
    code, _, err = relive("fit", "p.safetensors", "e.npz")
    assert code == 2
    assert "e.npz has images of 4 × 16 pixels, but this model's are 8 × 8 pixels" in err


def test_places_where_no_model_can_be(relive: Command, home: Path, files: Path) -> None:
    (home / "folder.safetensors").mkdir()
    (home / "other.safetensors").write_bytes(b"not a model")
    before = all_bytes(home)
    for model, message in (
        ("nowhere/m.safetensors", "there is no directory nowhere"),
        ("folder.safetensors", "is a folder: MODEL is a file"),
        ("data.csv", "data.csv is not a model but data: give the model first, then the data"),
        ("data.txt", "does not end with .safetensors: give the model first, then the data"),
        ("other.safetensors", "other.safetensors is not a relive model: it is not a safetensors file"),
    ):
        code, out, err = relive("fit", model, files / "a.csv", *SMALL)
        assert (code, out) == (1 if model.startswith("other") else 2, "")  # a damaged file is not a usage error
        assert message in err
    for options, message in (
        (["--method", "rft"], "unknown method 'rft': did you mean 'rtf'?"),
        (["--set", "c"], "write it as NAME=VALUE"),
        (["--hidden", "0"], "hidden = 0: it must be a whole number of at least 1"),
        (["--fidelity", "as_told"], "fidelity = 'as_told'"),
    ):
        code, out, err = relive("fit", M, files / "a.csv", *options)
        assert (code, out) == (2, "")
        assert message in err
    code, _, err = relive("fit", M, "gone.csv")
    assert code == 2
    assert "there is no file or folder gone.csv" in err
    assert all_bytes(home) == before


def test_an_unreadable_picture_is_named(relive: Command, home: Path, files: Path) -> None:
    shutil.copytree(files / "a", "a")
    (home / "a" / "1" / "bad.png").write_bytes(b"nothing")
    code, _, err = relive("fit", M, "a", *SMALL)
    assert code == 1
    assert "1/bad.png: it is not an image of a supported format" in err
    assert not Path(M).exists()


def test_the_same_data_again(relive: Command, home: Path, files: Path, made: Path) -> None:
    shutil.copy(made, M)
    pd.read_csv(files / "a.csv")[::-1].to_csv("a.csv", index=False)  # the order does not matter: the same data
    before = all_bytes(home)
    code, _, err = relive("fit", M, "a.csv", "--task", "new name")
    assert code == 2
    assert f"{M} has already learned a.csv: as task 0, at 20" in err
    assert "Pass --again" in err
    assert all_bytes(home) == before
    assert relive("fit", M, "a.csv", "--again")[0] == 0
    assert load(M).n_tasks_ == 2
