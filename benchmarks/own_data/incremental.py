"""The incremental learners of scikit-learn and River, with their default settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

import numpy as np
from sklearn.naive_bayes import GaussianNB

from benchmarks.own_data.learner import Learner, Setting
from benchmarks.own_data.samples import Array


@final
class PartialFit(Learner):
    """A learner of scikit-learn that has ``partial_fit``; it is given all classes beforehand, as it requires.

    Parameters
    ----------
    model
        With its seed.
    setting
        The classes, and the seed of the order of samples.
    passes
        Passes over each task.
    numbers
        How many numbers the model keeps.
    """

    def __init__(self, model: Any, setting: Setting, passes: int, numbers: Callable[[Any], int]) -> None:
        self.model, self.passes, self.numbers = model, passes, numbers
        self.classes, self.random = setting.classes, np.random.default_rng(setting.seed)

    def learn(self, X: Array, y: Array) -> None:
        for _ in range(self.passes):
            order = self.random.permutation(len(y))
            self.model.partial_fit(X[order], y[order], classes=self.classes)

    def predict(self, X: Array) -> Array:
        labels: Array = self.model.predict(X)
        return labels

    @property
    def numbers_kept(self) -> int:
        return self.numbers(self.model)


def of_linear(model: Any) -> int:
    """Return the weights of a linear model."""
    return int(model.coef_.size + model.intercept_.size)


def of_network(model: Any) -> int:
    """Return the weights of an MLPClassifier."""
    return sum(weights.size for weights in (*model.coefs_, *model.intercepts_))


def of_naive_bayes(model: GaussianNB) -> int:
    """Return counts, means and variances."""
    return int(model.class_count_.size + model.theta_.size + model.var_.size)


@final
class OneByOne(Learner):
    """A learner of River, which takes one sample at a time, each once."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def learn(self, X: Array, y: Array) -> None:
        for sample, label in zip(X.tolist(), y.tolist(), strict=True):
            self.model.learn_one(dict(enumerate(sample)), label)

    def predict(self, X: Array) -> Array:
        answers = (self.model.predict_one(dict(enumerate(sample))) for sample in X.tolist())
        return np.array([-1 if label is None else label for label in answers])

    @property
    def numbers_kept(self) -> int:
        """The size in memory, in numbers of eight bytes."""
        return int(self.model._raw_memory_usage) // 8
