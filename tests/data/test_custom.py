"""User-defined data sets, from a file, a folder or a function: nothing is lost, and invalid ones are refused."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image

from relive._util.errors import DataError, InputError, ReliveError
from relive.data.catalogue import DATASETS, DatasetFacts
from relive.data.datasets.custom import digest_of_custom
from relive.data.datasets.dataset import Dataset
from relive.data.datasets.sources import load_data

Array = npt.NDArray[Any]


def pictures(n: int = 12, shape: tuple[int, ...] = (4, 6, 3)) -> Array:
    return np.random.default_rng(0).integers(0, 256, (n, *shape), dtype=np.uint8)


def save(path: Path, **arrays: Array) -> str:
    np.savez(path, **arrays)  # type: ignore[arg-type]
    return str(path)


def draw(folder: Path, name: str, pixels: Array) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(folder / name)


def test_every_fifth_of_each_class_is_held_out_and_that_is_said(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    x, y = pictures(21), np.array(["b", "a", "c"] * 7)
    name = save(tmp_path / "my.npz", X=x, y=y)
    data = load_data(name)
    assert "every fifth sample of each class is held out for testing, 3 of 21" in capfd.readouterr().err
    assert (data.name, data.classes, data.n_classes, data.top) == (name, ("a", "b", "c"), 3, 255)
    np.testing.assert_array_equal(data.test_inputs, x[12:15])  # the fifth of each class
    assert data.test_labels.tolist() == [1, 0, 2]
    np.testing.assert_array_equal(data.train_inputs, np.delete(x, [12, 13, 14], axis=0))
    load_data(name, quiet=True)
    assert capfd.readouterr() == ("", "")


def test_of_few_samples_the_last_is_held_out(tmp_path: Path) -> None:
    data = load_data(save(tmp_path / "my.npz", X=pictures(5), y=np.array([0, 1, 0, 1, 1])), quiet=True)
    np.testing.assert_array_equal(data.test_inputs, pictures(5)[[2, 4]])


@pytest.mark.parametrize("x", ["X", "x"])
def test_a_file_may_have_its_own_test_part(tmp_path: Path, capfd: pytest.CaptureFixture[str], x: str) -> None:
    parts = {f"{x}_train": pictures(6), f"{x}_test": pictures(4)}
    y = {"y_train": np.array([7, 9] * 3), "y_test": np.array([9, 7, 7, 9])}
    data = load_data(save(tmp_path / "my.npz", **parts, **y))
    assert data.classes == ("7", "9")
    assert (data.train_labels.tolist(), data.test_labels.tolist()) == ([0, 1] * 3, [1, 0, 0, 1])
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("x", "shape", "top", "likelihood"),
    [
        (pictures(), (4, 6, 3), 255, "bernoulli"),
        (pictures().astype(float), (4, 6, 3), 255, "bernoulli"),  # integers of a picture are bytes
        (pictures(shape=(4, 6, 1)), (4, 6), 255, "bernoulli"),
        (pictures() // 128, (4, 6, 3), 1, "bernoulli"),
        (pictures(shape=(5,)) / 255, (5,), 255, "bernoulli"),
        (pictures(shape=(5,)) * 100.0, (5,), 255, "gaussian"),
        (pictures() - 300.0, (4, 6, 3), 255, "gaussian"),
    ],
)
def test_what_inputs_are_taken_for(tmp_path: Path, x: Array, shape: tuple[int, ...], top: int, likelihood: str) -> None:
    data = load_data(save(tmp_path / "my.npz", X=x, y=np.array([0, 1] * 6)), quiet=True)
    assert (data.shape, data.top, data.likelihood) == (shape, top, likelihood)
    if likelihood == "gaussian":  # standardised only when tasks are created
        np.testing.assert_array_equal(data.train_inputs, np.delete(x, [8, 9], axis=0))
    else:
        assert data.train_inputs.dtype == (np.float32 if (x % 1).any() else np.uint8)


def test_a_folder_of_pictures_keeps_size_and_colour(tmp_path: Path) -> None:
    for i, pixels in enumerate(pictures(10)):
        draw(tmp_path / "my" / ("cat" if i % 2 else "dog"), f"{i}.png", pixels)
    data = load_data(str(tmp_path / "my"), quiet=True)
    assert (data.shape, data.classes, len(data.train_labels), len(data.test_labels)) == (
        (4, 6, 3),
        ("cat", "dog"),
        8,
        2,
    )
    np.testing.assert_array_equal(data.test_inputs, pictures(10)[[9, 8]])


def test_a_folder_with_train_and_test(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for part, n in (("train", 3), ("test", 2)):
        for name in "ab":
            for i, pixels in enumerate(pictures(n, (3, 5))):
                draw(tmp_path / part / name, f"{i}.png", pixels)
    data = load_data(str(tmp_path))
    assert (data.shape, len(data.train_labels), len(data.test_labels)) == ((3, 5), 6, 4)
    assert capfd.readouterr() == ("", "")


def test_pictures_of_many_sizes_are_brought_to_one_and_that_is_said(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in "ab":
        for side in (5, 9):
            draw(tmp_path / name, f"{side}.png", pictures(1, (side, side))[0])
    assert load_data(str(tmp_path)).shape == (28, 28)
    assert "its images are of 2 sizes, and are resized to 28 × 28" in capfd.readouterr().err


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_table(tmp_path: Path, ending: str) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    table = pandas.DataFrame({"a": np.arange(10) * 3.0, "label": ["x", "y"] * 5, "b": np.arange(10)[::-1] * 1.0})
    path = tmp_path / f"my.{ending}"
    table.to_csv(path, index=False) if ending == "csv" else table.to_parquet(path)
    data = load_data(str(path), quiet=True)
    assert (data.shape, data.classes, data.likelihood) == ((2,), ("x", "y"), "gaussian")


PROGRAM = """
import numpy as np
from relive import Dataset
x, y = np.arange(40.0).reshape(10, 4) / 40, np.array([3, 5] * 5)
def pair(): return x, y
def four(): return x, y, x[:2], y[:2]
def whole(): return Dataset("any", x, (y - 3) // 2, x, (y - 3) // 2, classes=("three", "five"))
def nothing(): return None
def ragged(): return [x[:2], x[:3]], [0, 1]
def needs(path): return x, y
def lonely(): return Dataset("any", x, y * 0, x, y * 0)
def gap(): return Dataset("any", x, y, x, y)
def ints(): return Dataset("any", (x * 40).astype(int), (y - 3) // 2, x, (y - 3) // 2)
NUMBER = 3
"""


@pytest.mark.parametrize(
    ("function", "classes", "tests"),
    [("pair", ("3", "5"), 2), ("four", ("3", "5"), 2), ("whole", ("three", "five"), 10)],
)
def test_a_function_that_loads(tmp_path: Path, function: str, classes: tuple[str, ...], tests: int) -> None:
    (tmp_path / "mine.py").write_text(PROGRAM)
    name = f"{tmp_path}/mine.py:{function}"
    data = load_data(name, quiet=True)
    assert (data.name, data.classes, len(data.test_labels)) == (name, classes, tests)
    assert data.train_inputs.dtype == np.float32
    assert data.likelihood == "bernoulli"
    assert data.digest == digest_of_custom(name) == data.sha256[:12]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("nothing", "returned NoneType: a loader must return X and y"),
        ("ragged", "X of .*mine.py:ragged is not an array: its parts have different shapes"),
        ("needs", "must be a function without arguments"),
        ("NUMBER", "is 3: a loader must be a function"),
        ("lonely", "has one class, '0': at least 2"),
        ("gap", "has nothing to learn from of class '0'"),
        ("ints", "train_inputs has type int64: give bytes"),
        ("other", "has no 'other'; it has: pair, four"),
    ],
)
def test_a_function_that_does_not_load(tmp_path: Path, function: str, message: str) -> None:
    (tmp_path / "mine.py").write_text(PROGRAM)
    with pytest.raises(InputError, match=message):
        load_data(f"{tmp_path}/mine.py:{function}")


Y = np.array([0, 1] * 3)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": pictures(6)}, "has the arrays X: a data set must have X and y"),
        ({"data": pictures(6), "y": Y}, "has the arrays data, y: a data set must have X and y"),
        ({"X": pictures(6), "y": Y[:4]}, r"has shape \(4,\): it must have one value for each of the 6 samples"),
        ({"X": pictures(6), "y": Y * 0}, "has one class, '0': at least 2 are needed"),
        ({"X": pictures(6), "y": np.array([0, 0, 0, 0, 0, 1])}, "has 1 sample of class '1'"),
        ({"X": pictures(6), "y": Y * 0.5}, "labels are classes"),
        ({"X": pictures(6, (4,)) * np.nan, "y": Y}, "missing or infinite"),
        ({"X_train": pictures(6), "y_train": Y}, "has no array 'X_test'"),
        (
            {"X_train": pictures(6), "y_train": Y, "X_test": pictures(6), "y_test": Y + 1},
            "tests with class '2', but has no training samples of it",
        ),
        (
            {"X_train": pictures(6), "y_train": Y, "X_test": pictures(6), "y_test": Y * 0},
            "has nothing to test with of class '1'",
        ),
        (
            {"X_train": pictures(6), "y_train": Y, "X_test": pictures(6, (4, 4)), "y_test": Y},
            r"inputs of shape \(4, 6, 3\), but test inputs of shape \(4, 4\)",
        ),
    ],
)
def test_arrays_that_are_no_data_set(tmp_path: Path, arrays: dict[str, Array], message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_data(save(tmp_path / "my.npz", **arrays))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("none.npz", "there is no file or folder"),
        ("text.txt", "has an unsupported format: give a .csv, .parquet or .npz file"),
        ("broken.npz", "is damaged or not a NumPy file"),
        ("program.py", r"name the function in it that returns the data, as .*program.py:load"),
        ("empty", "has neither images nor sub-folders"),
    ],
)
def test_what_is_no_data(tmp_path: Path, name: str, message: str) -> None:
    for file in ("text.txt", "broken.npz", "program.py"):
        (tmp_path / file).write_text("nothing")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ReliveError, match=message):
        load_data(str(tmp_path / name))


def test_a_digest_is_of_names_and_contents(tmp_path: Path) -> None:
    for i, pixels in enumerate(pictures(4)):
        draw(tmp_path / "one" / "ab"[i % 2], f"{i}.png", pixels)
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    one, two = str(tmp_path / "one"), str(tmp_path / "two")
    assert digest_of_custom(one) == digest_of_custom(two)
    (tmp_path / "two" / ".hidden").touch()
    assert digest_of_custom(one) == digest_of_custom(two)
    (tmp_path / "two" / "a" / "0.png").rename(tmp_path / "two" / "b" / "0.png")
    assert digest_of_custom(one) != digest_of_custom(two)
    draw(tmp_path / "one" / "a", "0.png", pictures(9)[8])
    assert digest_of_custom(one) != digest_of_custom(two)


def test_a_data_set_of_an_installed_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here a registered one; its digest is checked if its facts have one."""
    facts = DatasetFacts("small-digits", "Small digits", "relive.data.datasets.digits:load")
    monkeypatch.setitem(DATASETS._own, "small-digits", facts)
    data = load_data("small-digits")
    assert (data.name, data.digest) == ("small-digits", "")
    for sha256 in (data.sha256, "0" * 64):
        changed = DatasetFacts(facts.name, facts.title, facts.home, sha256=(sha256,))
        monkeypatch.setitem(DATASETS._own, "small-digits", changed)
        if sha256 == data.sha256:
            load_data("small-digits")
        else:
            with pytest.raises(DataError, match=f"expected SHA-256 {sha256}, found {data.sha256}"):
                load_data("small-digits")


def test_the_digest_of_a_data_set_is_of_all_it_holds(tiny: Dataset) -> None:
    again = Dataset("other", tiny.train_inputs, tiny.train_labels, tiny.test_inputs, tiny.test_labels)
    assert again.sha256 == tiny.sha256
    assert Dataset("tiny", tiny.train_inputs, tiny.train_labels, tiny.test_inputs, tiny.test_labels, 16).sha256 != (
        tiny.sha256
    )
