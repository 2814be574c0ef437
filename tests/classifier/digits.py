"""Digits as rows of numbers in [0, 1], small models that learn them, and a check that two models are the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_digits

from relive.classifier.estimator import ContinualClassifier
from relive.methods import METHODS

X, Y = load_digits(return_X_y=True)
X = X / 16
SMALL: dict[str, Any] = {"hidden": 24, "latent": 6, "iterations": 30, "learning_rate": 0.01}
TINY = SMALL | {"iterations": 8}
CELLS = [
    (method, scenario)
    for method, facts in METHODS.items()
    for scenario in facts.scenarios
    if not facts.keeps_data and not facts.needs_earlier_tasks
]

SETTINGS: dict[str, dict[str, float]] = {"xdg": {"proportion": 0.5}} | {
    method: {"numbers": 3e4}  # fewer random features than by default
    for method, facts in METHODS.items()
    if any(setting.name == "numbers" for setting in facts.settings)
}


def rows(*classes: int, n: int = 40) -> tuple[Any, Any]:
    """Return the first samples of some classes, and their labels."""
    chosen = np.concatenate([np.flatnonzero(c == Y)[:n] for c in classes])
    return X[chosen], Y[chosen]


def assert_same(one: ContinualClassifier, other: ContinualClassifier) -> None:
    """Compare two models bit by bit."""
    a, b = one.learner_.state(), other.learner_.state()
    assert a.keys() == b.keys()
    assert [name for name in a if not torch.equal(a[name], b[name])] == []
