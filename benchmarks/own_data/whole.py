"""Everything at once: learners that keep all samples, and train from scratch before they predict."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, final

import numpy as np

from benchmarks.own_data.learner import Learner, scaled, scaling
from benchmarks.own_data.samples import Array
from relive import ContinualClassifier


@final
class AllAtOnce(Learner):
    """A classifier fitted to all samples, scaled by the common rule, but with the statistics of all samples.

    Parameters
    ----------
    fit
        Takes all samples, their labels and the number of samples of each task, and returns a predictor.
    scale
        Whether to scale; not needed for a model that does so itself.
    """

    def __init__(self, fit: Callable[[Array, Array, list[int]], Any], scale: bool = True) -> None:
        self.fit, self.scale = fit, scale
        self.kept: list[tuple[Array, Array]] = []
        self.model: Any = None

    def learn(self, X: Array, y: Array) -> None:
        self.kept.append((X, y))
        self.model = None

    def predict(self, X: Array) -> Array:
        if self.model is None:
            data, labels = (np.concatenate(parts) for parts in zip(*self.kept, strict=True))
            if self.scale:
                self.by = scaling(data)
                data = scaled(data, *self.by)
            self.model = self.fit(data, labels, [len(y) for _, y in self.kept])
        answer: Array = self.model.predict(scaled(X, *self.by) if self.scale else X)
        return answer

    @property
    def numbers_kept(self) -> int:
        """The samples; models fitted to them are not counted."""
        return sum(X.size + y.size for X, y in self.kept)


def same_network(seed: int) -> Callable[[Array, Array, list[int]], Any]:
    """Fit the network of relive's methods, with as many steps as all tasks together would have had."""

    def fit(X: Array, y: Array, sizes: list[int]) -> Any:
        steps = sum(min(max(math.ceil(20 * n / 128), 500), 5000) for n in sizes)
        return ContinualClassifier("none", iterations=steps, random_state=seed).fit(X, y)

    return fit


def of_sklearn(model: Any) -> Callable[[Array, Array, list[int]], Any]:
    """Fit a classifier of scikit-learn."""
    return lambda X, y, sizes: model.fit(X, y)
