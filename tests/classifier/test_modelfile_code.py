"""Model files and code: only code that the caller allows is run, and user-defined networks are found again."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import relive
from relive._util.errors import InputError, ReliveError
from relive._util.tensorfile import FileError, read_tensors, write_tensors
from relive.classifier.estimator import ContinualClassifier
from relive.classifier.modelfile import load
from relive.classifier.modelheader import KIND, VERSION
from tests.classifier.digits import TINY, X, assert_same, rows


def test_no_pickle_is_loaded_anywhere() -> None:
    """Search the whole package for anything that would unpickle a file."""
    forbidden = re.compile(
        r"torch\.load\b|joblib|allow_pickle=True|\b(import|from) (pickle|dill|cloudpickle|shelve|marshal)\b"
    )
    for source in Path(relive.__file__).parent.rglob("*.py"):
        assert not forbidden.search(source.read_text()), source


OWN_NETWORK = """
from torch import nn

def make(shape, hidden, rng):
    return nn.Sequential(nn.Linear(64, hidden), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Dropout(0.2))
"""


def taught(stored: ContinualClassifier, path: Path) -> ContinualClassifier:
    """Train on three tasks, with a save and load in between, next to a model that is never saved."""
    whole = ContinualClassifier(**stored.get_params())
    for classes in [(0, 1), (2, 3), (1, 4)]:
        whole.partial_fit(*rows(*classes))
        stored.partial_fit(*rows(*classes)).save(path)
        stored = load(path, allow_code=True)
        assert_same(whole, stored)
        np.testing.assert_array_equal(whole.predict_proba(X[:9]), stored.predict_proba(X[:9]))
    assert stored.get_params() == whole.get_params()
    return stored


@pytest.mark.parametrize("method", ["none", "ewc", "si", "lwf", "dgr", "rtf"])
def test_a_convolutional_model(method: str, path: Path) -> None:
    model = taught(ContinualClassifier(method, encoder="conv", shape=(8, 8), **TINY), path)
    assert "net.encoder.conv2.weight" in model.learner_.state()
    assert load(path).shape == (8, 8)
    with pytest.raises(InputError, match=r"shape was \(8, 8\) when this model was created"):
        model.set_params(shape=None).partial_fit(*rows(5))


@pytest.mark.parametrize("method", ["ewc", "rtf"])
def test_a_network_of_one_s_own(method: str, path: Path, tmp_path: Path) -> None:
    """Its buffers are kept; its code runs only if the caller says so."""
    (tmp_path / "mine.py").write_text(OWN_NETWORK)
    address = f"{tmp_path / 'mine.py'}:make"
    model = taught(ContinualClassifier(method, encoder=address, **TINY), path)
    assert int(model.learner_.state()["net.encoder.1.num_batches_tracked"]) == 24
    with pytest.raises(InputError, match=r"refers to user code, .*mine.py:make, which .* allow_code=True"):
        load(path)


@pytest.mark.parametrize("parameter", ["method", "encoder"])
def test_a_file_cannot_have_code_run(parameter: str, path: Path, tmp_path: Path) -> None:
    ContinualClassifier("none", **TINY).partial_fit(*rows(0, 1)).save(path)
    (tmp_path / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    header, tensors = read_tensors(path, KIND, VERSION)
    wrong: list[Any] = [f"{tmp_path / 'evil.py'}:make", "os:abort", 3, ["os:abort"], {}]
    for value in wrong:
        changed = header | {"parameters": header["parameters"] | {parameter: value}}
        write_tensors(path, KIND, VERSION, changed, tensors)
        with pytest.raises(ReliveError):
            load(path)
        assert not (tmp_path / "ran").exists()


def test_a_function_cannot_be_stored(path: Path) -> None:
    from relive.networks import mlp_of

    model = ContinualClassifier("rtf", encoder=mlp_of(20, 10), **TINY).partial_fit(*rows(0, 1))
    with pytest.raises(InputError, match="cannot be saved: a model file holds no code"):
        model.save(path)
    assert not path.exists()


def test_a_convolution_needs_the_shape() -> None:
    with pytest.raises(InputError, match=r"shape is \(64,\): set it, such as shape=\(28, 28\)"):
        ContinualClassifier(encoder="conv", **TINY).partial_fit(*rows(0, 1))
    wrong: list[Any] = [5, "8x8", (8.0, 8)]
    for shape in wrong:
        with pytest.raises(InputError, match="it must be whole numbers"):
            ContinualClassifier(shape=shape, **TINY).partial_fit(*rows(0, 1))
    with pytest.raises(InputError, match="an input of this shape has 49 numbers, not 64"):
        ContinualClassifier(shape=(7, 7), **TINY).partial_fit(*rows(0, 1))


def test_code_beside_a_model_is_found_from_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    home.mkdir()
    elsewhere.mkdir()
    (home / "own.py").write_text(
        "from torch import nn\ndef make(shape, hidden, rng):\n    return nn.Linear(shape[0], hidden)\n"
    )
    monkeypatch.chdir(home)
    ContinualClassifier("none", encoder="own.py:make", iterations=2).partial_fit(*rows(0, 1)).save("m.safetensors")
    monkeypatch.chdir(elsewhere)
    model = load("../home/m.safetensors", allow_code=True)
    model.partial_fit(*rows(2)).save("again.safetensors")
    assert load("again.safetensors", allow_code=True).n_tasks_ == 2
    (home / "own.py").rename(home / "other.py")
    with pytest.raises(
        FileError, match=r"there is no file own.py, neither in .*elsewhere nor next to the model, .*own"
    ):
        load("../home/m.safetensors", allow_code=True)
