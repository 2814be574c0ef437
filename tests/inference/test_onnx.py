"""ONNX files give the estimator's predictions in onnxruntime, for every method that can be exported."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

from relive.classifier.estimator import ContinualClassifier
from relive.inference.onnxfile import write_onnx
from relive.inference.operators import OPERATORS
from relive.inference.predictor import predictor_of
from tests.inference.models import CELLS, PIXELS, TORCH_ONLY, Array, learned, questions, rounding, saved

SUPPORTED = [(m, s) for m, s in CELLS if m not in TORCH_ONLY]


def exported(model: ContinualClassifier, folder: Path) -> onnxruntime.InferenceSession:
    write_onnx(predictor_of(saved(model, folder / "model")), folder / "model.onnx")
    return onnxruntime.InferenceSession(folder / "model.onnx", providers=["CPUExecutionProvider"])


def assert_same_answers(model: ContinualClassifier, folder: Path, x: Array, task: Any) -> None:
    session = exported(model, folder)
    given = {"samples": x}
    if task:
        names = json.loads(session.get_modelmeta().custom_metadata_map["tasks"])
        given["task"] = np.array([names.index(name) for name in task])
    labels, found = session.run(["label", "probabilities"], given)
    expected = model.predict_proba(x, task)
    assert (abs(found - expected) <= 1e-5 + rounding(model, x, task)).all()
    assert labels.tolist() == model.predict(x, task).tolist()


@pytest.mark.slow
@pytest.mark.parametrize("likelihood", ["bernoulli", "gaussian"])
@pytest.mark.parametrize(("method", "scenario"), SUPPORTED)
def test_every_method_answers_the_same_in_onnxruntime(
    method: str, scenario: str, likelihood: str, tmp_path: Path
) -> None:
    model = learned(method, scenario, likelihood)
    assert_same_answers(model, tmp_path, *questions(model))


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(8, 8), (17, 20), (9, 9, 3), (3, 9, 11)])
@pytest.mark.parametrize(("method", "encoder"), [("none", "conv"), ("analytic", "random"), ("none", "random-flat")])
def test_every_encoder_gives_the_same_features(method: str, encoder: str, shape: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    patterns = rng.uniform(0.3, 0.7, (3, int(np.prod(shape))))
    y = np.arange(150) % 3
    x = patterns[y] + rng.uniform(-0.3, 0.3, (150, patterns.shape[1]))
    model = ContinualClassifier(method, encoder=encoder, shape=shape, hidden=1100, iterations=5).partial_fit(x, y)
    assert_same_answers(model, tmp_path, x, None)


@pytest.mark.parametrize(
    "labels", [np.array([True, False]), np.array([2**62, -5]), np.array([3.0, 1.0]), np.array([7, 9], np.uint8)]
)
def test_labels_of_every_kind(labels: Any, tmp_path: Path) -> None:
    model = ContinualClassifier("slda").partial_fit(PIXELS[:60] / 16, labels[np.arange(60) % 2])
    assert_same_answers(model, tmp_path, PIXELS[:60] / 16, None)


@pytest.mark.slow
def test_every_operator_is_used_by_some_model(tmp_path: Path) -> None:
    """There is no operator that no model needs."""
    models = [learned(method, scenario, "gaussian") for method, scenario in SUPPORTED]
    models += [learned("none", "class", encoder="conv", shape=(8, 8))]
    models += [learned("analytic", "class", encoder="random", shape=(8, 8))]
    colours = np.random.default_rng(0).random((30, 243))
    models += [ContinualClassifier("analytic", shape=(9, 9, 3)).partial_fit(colours, np.arange(30) % 2)]
    used = {
        operation.operator
        for i, model in enumerate(models)
        for operation in predictor_of(saved(model, tmp_path / str(i))).graph.operations
    }
    assert used == set(OPERATORS)


@pytest.mark.slow
def test_the_command_writes_a_file_or_says_why_not(tmp_path: Path) -> None:
    good = saved(learned("discriminant", "class"), tmp_path / "model")
    other = saved(learned("generative-classifier", "class"), tmp_path / "other")

    def relive(*words: str) -> tuple[int, str]:
        done = subprocess.run([sys.executable, "-m", "relive", "export", *words], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    code, said = relive(str(good), str(tmp_path / "good.onnx"))
    assert (code, said.startswith("written   ")) == (0, True)
    assert onnxruntime.InferenceSession(tmp_path / "good.onnx").get_inputs()[0].shape == ["n", 64]
    code, said = relive(str(other), str(tmp_path / "other.onnx"))
    assert code == 2
    assert "cannot be exported: method 'generative-classifier'" in said
    assert relive(str(good), str(tmp_path / "good.txt"))[0] == 2
    script = "import sys, relive.cli; sys.modules['onnx'] = None; relive.cli.main()"
    done = subprocess.run([sys.executable, "-c", script, "export", "x", "x.onnx"], capture_output=True, text=True)
    assert "relive export needs onnx, which is not installed: pip install 'relive[onnx]'" in done.stderr
