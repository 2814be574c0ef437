"""What every learner of the benchmark can do, and the one rule by which inputs are scaled."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import numpy as np

from benchmarks.own_data.samples import Array

LIMIT = 10.0  # standardised features grow logarithmically from here: a later task may be far from the first


@dataclass(frozen=True)
class Setting:
    """What a learner is given beforehand.

    Attributes
    ----------
    seed
        Of its random numbers.
    classes
        All labels that will come; only scikit-learn's ``partial_fit`` needs them.
    shape
        Of a picture, if the features are its pixels.
    """

    seed: int
    classes: Array
    shape: tuple[int, ...] | None = None


class Learner(ABC):
    """Learns task after task, and can predict at any time."""

    @abstractmethod
    def learn(self, X: Array, y: Array) -> None:
        """Learn a task."""

    @abstractmethod
    def predict(self, X: Array) -> Array:
        """Return a label for each sample."""

    @property
    @abstractmethod
    def numbers_kept(self) -> int:
        """How many numbers it keeps from one task to the next.

        Parameters, statistics and stored samples count; of a symmetric matrix half. What a seed reproduces,
        what follows from the rest, and an optimizer's moments do not.
        """


@final
class Scaled(Learner):
    """A learner whose inputs are scaled: bytes and numbers in [0, 1] to [0, 1], others standardised by the first task.

    The rule is ContinualClassifier's for networks.
    """

    def __init__(self, learner: Learner) -> None:
        self.learner = learner
        self.mean = self.scale = np.zeros(0)

    def learn(self, X: Array, y: Array) -> None:
        if not len(self.mean):
            self.mean, self.scale = scaling(X)
        self.learner.learn(scaled(X, self.mean, self.scale), y)

    def predict(self, X: Array) -> Array:
        return self.learner.predict(scaled(X, self.mean, self.scale))

    @property
    def numbers_kept(self) -> int:
        return self.learner.numbers_kept + self.mean.size + self.scale.size


def scaling(X: Array) -> tuple[Array, Array]:
    """Return mean and scale of each feature, from a first task."""
    if X.dtype == np.uint8:
        return np.zeros(X.shape[1]), np.full(X.shape[1], 255.0)
    if X.min() >= 0 and X.max() <= 1:
        return np.zeros(X.shape[1]), np.ones(X.shape[1])
    mean, deviation = X.mean(0, dtype=np.float64), X.std(0, dtype=np.float64)
    return mean, np.where(deviation <= 1e-9 * np.abs(mean), 1.0, deviation)  # constant features keep their unit


def scaled(X: Array, mean: Array, scale: Array) -> Array:
    """Return samples as float64, bounded softly.

    >>> scaled(np.array([[3.0, 100.0]]), np.array([1.0, 0.0]), np.array([2.0, 1.0])).round(2).tolist()
    [[1.0, 33.03]]
    """
    standard = (X - mean) / scale
    beyond = LIMIT * np.log(np.maximum(np.abs(standard) / LIMIT, 1))
    bounded: Array = standard.clip(-LIMIT, LIMIT) + np.sign(standard) * beyond
    return bounded
