"""The rule behind method="auto": what it chooses, when it decides, and that a model keeps its choice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relive import ContinualClassifier, load
from relive._util.errors import InputError
from relive._util.tensorfile import FileError, read_tensors, write_tensors
from relive.classifier.choice import choose
from relive.classifier.modelheader import KIND, VERSION
from tests.classifier.digits import SMALL, assert_same, rows

RULE = [  # scenario, encoder, shape; the method
    ("class", None, None, "discriminant"),
    ("class", None, (8, 8), "discriminant"),
    ("task", None, None, "discriminant"),
    ("task", None, (8, 8), "discriminant"),
    ("domain", None, (8, 8), "discriminant"),
    ("domain", None, None, "domains"),
    ("class", "mlp", None, "rtf"),
    ("domain", "conv", (8, 8), "rtf"),
]


@pytest.mark.parametrize(("scenario", "encoder", "shape", "method"), RULE)
def test_the_rule_as_it_is_written(scenario: str, encoder: str | None, shape: Any, method: str) -> None:
    model = ContinualClassifier(scenario=scenario, encoder=encoder, shape=shape, **SMALL)
    assert model.method == "auto"
    x, y = rows(0, 1)
    model.partial_fit(x, y)
    assert model.choice_.method == method == type(model.learner_.method).facts.name
    assert model.choice_.reason


@pytest.mark.slow
def test_it_is_decided_once_and_learns_what_the_method_itself_learns(tmp_path: Path) -> None:
    auto, named = ContinualClassifier(shape=(8, 8)), ContinualClassifier("discriminant", shape=(8, 8))
    for classes in ((0, 1), (2, 3), (4, 5)):
        auto.partial_fit(*rows(*classes))
        named.partial_fit(*rows(*classes))
        auto.save(tmp_path / "auto.safetensors")
        auto = load(tmp_path / "auto.safetensors")
        assert_same(auto, named)
    assert (auto.method, auto.choice_.method, named.choice_.reason) == ("auto", "discriminant", "")
    x, y = rows(0, 1, 2, 3, 4, 5)
    np.testing.assert_array_equal(auto.predict_proba(x), named.predict_proba(x))
    assert auto.score(x, y) > 0.95


@pytest.mark.parametrize(
    ("n_inputs", "likelihood", "settings", "method"),
    [
        (1280, "gaussian", None, "slda"),
        (512, "gaussian", None, "discriminant"),
        (2001, "gaussian", None, "discriminant"),
        (784, "bernoulli", None, "discriminant"),
        (1280, "gaussian", {"numbers": 1e5}, "discriminant"),  # which slda does not have
    ],
)
def test_features_of_a_network_are_taken_as_they_are(
    n_inputs: int, likelihood: str, settings: Any, method: str
) -> None:
    assert choose(ContinualClassifier(settings=settings).get_params(), n_inputs, likelihood).method == method


def test_rows_that_may_be_pictures_are_asked_about() -> None:
    given = ContinualClassifier().get_params()
    assert "shape=(28, 28)" in choose(given, 784, "bernoulli").reason
    for n_inputs, likelihood in ((784, "gaussian"), (783, "bernoulli"), (4, "bernoulli")):
        assert "shape" not in choose(given, n_inputs, likelihood).reason


def test_settings_are_those_of_the_method_that_is_chosen() -> None:
    small = ContinualClassifier(settings={"numbers": 1e5}).partial_fit(*rows(0, 1))
    large = ContinualClassifier().partial_fit(*rows(0, 1))
    assert small.learner_.net.n_features < large.learner_.net.n_features
    with pytest.raises(InputError, match="unknown setting of Discriminant 'lam'"):
        ContinualClassifier(settings={"lam": 1.0}).partial_fit(*rows(0, 1))


def test_a_model_of_before_keeps_its_method(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    model = ContinualClassifier("ewc", **SMALL).partial_fit(*rows(0, 1))
    model.save(path)
    _rewrite(path, lambda header: header.pop("choice"))
    old = load(path)
    assert (old.choice_.method, old.choice_.reason) == ("ewc", "")
    assert_same(old.partial_fit(*rows(2, 3)), model.partial_fit(*rows(2, 3)))


@pytest.mark.parametrize(
    "choice", [{"method": "si", "reason": ""}, {"method": "rtf", "reason": 1}, {"method": "rtf"}, {}, [], "rtf"]
)
def test_a_file_with_another_choice_than_its_method_is_refused(choice: Any, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    ContinualClassifier("ewc", **SMALL).partial_fit(*rows(0, 1)).save(path)
    _rewrite(path, lambda header: header.update(choice=choice))
    with pytest.raises(FileError):
        load(path)


def test_code_that_a_choice_names_is_not_run(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    ContinualClassifier().partial_fit(*rows(0, 1)).save(path)
    (tmp_path / "mine.py").write_text("raise RuntimeError('was run')")
    _rewrite(path, lambda header: header.update(choice={"method": f"{tmp_path}/mine.py:M", "reason": ""}))
    with pytest.raises(InputError, match="refers to user code"):
        load(path)


def _rewrite(path: Path, change: Any) -> None:
    """Change a file's header."""
    header, tensors = read_tensors(path, KIND, VERSION)
    header = json.loads(json.dumps(header))
    change(header)
    write_tensors(path, KIND, VERSION, header, tensors)
