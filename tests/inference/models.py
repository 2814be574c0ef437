"""Small models of every kind, trained once per test process."""

from __future__ import annotations

import copy
import functools
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.datasets import load_digits
from torch import Tensor

from relive.classifier.estimator import ContinualClassifier
from relive.classifier.features import Features
from relive.methods import METHODS
from relive.methods.domains import Domains

Array = npt.NDArray[Any]
CELLS = [(m, s) for m, facts in METHODS.items() for s in facts.scenarios if not facts.needs_earlier_tasks]
TORCH_ONLY = {"generative-classifier"}  # always computed by torch
CLOSED_FORMS = ("ncm", "slda", "analytic", "discriminant", "domains")
PIXELS, DIGITS = load_digits(return_X_y=True)
TASKS = ((0, 1), (2, 3), (1, 4))  # a class returns


def samples(likelihood: str) -> Array:
    """Digits as numbers in [0, 1], or of any range, some of them far from the first task's."""
    x: Array = PIXELS / 16
    if likelihood == "gaussian":
        x = 16_000 * x + np.arange(64)
        x[::7, ::5] *= 50
    return x


@functools.cache
def learned(
    method: str,
    scenario: str,
    likelihood: str = "bernoulli",
    encoder: str | None = None,
    shape: Any = None,
    **more: Any,
) -> ContinualClassifier:
    """Return a model that has learned three small tasks, with string labels, and one class still to come."""
    settings = (
        {"numbers": 3e4} if method in ("analytic", "discriminant", "domains") else None
    )  # fewer features than samples
    model = ContinualClassifier(
        method,
        scenario,
        settings=settings,
        encoder=encoder,
        shape=shape,
        likelihood=likelihood,
        allow_stored_data=METHODS[method].keeps_data,
        **{"hidden": 24, "latent": 6, "iterations": 30, "learning_rate": 0.01} | more,
    )
    x, names = samples(likelihood), np.array([f"digit {d}" for d in DIGITS])
    for k, classes in enumerate(TASKS):
        rows = np.concatenate([np.flatnonzero(c == DIGITS)[:40] for c in classes])
        model.partial_fit(x[rows], names[rows], task=f"t{k}", classes=np.array(["digit 9"]))
    return model


def questions(model: ContinualClassifier, n: int = 200) -> tuple[Array, Any]:
    """Return test samples, and the task of each where it must be given."""
    x = samples(model.features_.likelihood)[-n:]
    return x, [f"t{i % 3}" for i in range(n)] if model.scenario == "task" else None


def saved(model: ContinualClassifier, path: Path) -> Path:
    """Return the file of a model."""
    model.save(path)
    return path


class Doubled(Features):
    """Inputs in float64."""

    def inputs(self, data: Array) -> Tensor:
        return super().inputs(data).double()


def rounding(model: ContinualClassifier, x: Array, task: Any) -> Array:
    """Bound on torch's float32 error where logits are large and cancel: closed forms, against float64."""
    if model.learner_.method.takes_steps:
        return np.zeros(1)
    exact = copy.deepcopy(model)
    exact.learner_.net.double()
    for domain in exact.learner_.method.domains_ if isinstance(exact.learner_.method, Domains) else []:
        domain.net.double()
    exact.features_ = Doubled(exact.features_.likelihood, exact.features_.mean, exact.features_.scale)
    off: Array = abs(model.predict_proba(x, task) - exact.predict_proba(x, task)).max(keepdims=True)
    assert off < 1e-4
    return off
