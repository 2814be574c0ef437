"""``relive evaluate``: on the same samples as ``relive predict``, with the same predictions."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

from relive import ContinualClassifier, load
from tests.cli.conftest import Command

X, Y = load_digits(return_X_y=True)
X = (X * 15).astype(np.uint8)


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two versions of a model, and test data; to be copied."""
    folder = tmp_path_factory.mktemp("learned")
    model = ContinualClassifier()
    for k, classes in enumerate(([0, 1], [2, 3])):
        learn = np.isin(Y[:900], classes)
        model.partial_fit(X[:900][learn], Y[:900][learn])
        model.save(folder / f"m{k}.safetensors")
    ask = np.isin(Y[900:], [0, 1, 2, 3, 4])
    np.savez(folder / "test.npz", X=X[900:][ask], y=Y[900:][ask])
    return folder


@pytest.fixture
def relive(relive: Command, learned: Path, home: Path) -> Command:
    """Commands in that folder."""
    shutil.copytree(learned, home, dirs_exist_ok=True)
    return relive


def test_table_and_json_say_what_the_model_says(relive: Command) -> None:
    model = load("m1.safetensors")
    data = np.load("test.npz")
    accuracy = model.score(data["X"], data["y"])
    code, out, _ = relive("evaluate", "m1.safetensors", "test.npz")
    assert code == 0
    assert f"accuracy     {100 * accuracy:.2f} %" in out
    assert "never seen   4: these cannot be predicted correctly" in out
    code, out, _ = relive("evaluate", "m1.safetensors", "test.npz", "--format", "json")
    said = json.loads(out)
    assert (code, said["accuracy"], said["unknown"]) == (0, accuracy, [4])
    assert said == model.evaluate(data["X"], data["y"]).to_json()


def test_what_changed_since_the_version_before(relive: Command) -> None:
    code, out, _ = relive("evaluate", "m1.safetensors", "test.npz", "--against", "m0.safetensors", "--format", "json")
    assert code == 0
    of_all, *by_class = json.loads(out)["changes"]
    assert of_all["gained"] > 50
    assert [round(change["before"]) for change in by_class] == [1, 1, 0, 0, 0]
    _, out, _ = relive("evaluate", "m1.safetensors", "test.npz", "--against", "m0.safetensors")
    assert f"{of_all['gained']} answers newly right, {of_all['lost']} newly wrong" in out


def test_the_page_is_one_file_without_script_and_with_names_escaped(relive: Command) -> None:
    Path("<b>.safetensors").write_bytes(Path("m1.safetensors").read_bytes())
    code, out, _ = relive("evaluate", "<b>.safetensors", "test.npz", "--page", "page.html")
    assert code == 0
    assert "page      page.html" in out
    page = Path("page.html").read_text()
    assert "<code>&lt;b&gt;.safetensors</code>" in page
    assert page.count("data:image/png;base64,") == 2
    for foreign in ("http://", "https://", "<script", "<b>"):
        assert foreign not in page


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--format", "xml"], "unknown format 'xml'"),
        (["--page", "page.txt"], "--page page.txt: give a file that ends with .html, in an existing directory"),
        (["--page", "no/page.html"], "--page no/page.html: give a file that ends with .html"),
        (["--against", "gone.safetensors"], "there is no model gone.safetensors"),
        (["--y", "labels"], "labels"),
    ],
)
def test_what_cannot_be_is_refused(relive: Command, options: list[str], message: str) -> None:
    code, out, err = relive("evaluate", "m1.safetensors", "test.npz", *options)
    assert (code, out) == (2, "")
    assert message in err
