"""How good a model is on labelled samples: accuracy by class, confusions, calibration, and what has changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from relive._util.errors import InputError
from relive._util.statistics import mcnemar, wilson

Array = npt.NDArray[Any]
BINS = 10  # of confidence, in a reliability curve


@dataclass(frozen=True)
class Share:
    """How many of n were correct, with Wilson's 95 % interval of the share."""

    right: int
    n: int

    @property
    def share(self) -> float:
        """The share of correct answers."""
        return self.right / self.n

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % confidence interval of the true share."""
        return wilson(self.right, self.n)


@dataclass(frozen=True)
class Bin:
    """Answers of similar confidence: how many, their mean confidence, and how many were correct."""

    n: int
    confidence: float
    accuracy: float


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The results of an evaluation.

    Attributes
    ----------
    overall
        All samples together.
    by_class
        Each label in the data, in order, including those that the model has never learned.
    labels
        The rows and columns of the confusion matrix: the model's labels and those in the data, sorted.
    confusion
        (labels, labels) how many samples of a row's label were predicted as a column's.
    unknown
        Labels in the data that were never learned: they cannot be predicted correctly.
    confidence
        The mean probability of the answers.
    calibration_error
        The expected calibration error: the mean gap between confidence and accuracy over ten bins of confidence,
        weighted by the number of answers in each.
    reliability
        The bins that have answers.
    """

    overall: Share
    by_class: dict[Any, Share]
    labels: list[Any]
    confusion: Array
    unknown: list[Any]
    confidence: float
    calibration_error: float
    reliability: list[Bin]

    def to_json(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "accuracy": self.overall.share,
            "interval": list(self.overall.interval),
            "n": self.overall.n,
            "classes": [
                {"label": label, "accuracy": s.share, "interval": list(s.interval), "n": s.n}
                for label, s in self.by_class.items()
            ],
            "unknown": self.unknown,
            "confusion": {"labels": self.labels, "counts": self.confusion.tolist()},
            "confidence": self.confidence,
            "calibration_error": self.calibration_error,
            "reliability": [vars(b) for b in self.reliability],
        }


def evaluate(y: Array, answers: Array, confidence: Array, known: Array) -> Evaluation:
    """Compare predictions with the truth.

    Parameters
    ----------
    y
        (n,) the true labels, of the same type as the predictions.
    answers, confidence
        (n,) the predictions and their probabilities.
    known
        The labels that the model can predict.

    >>> y, said = np.array(["a", "a", "b", "c"]), np.array(["a", "b", "b", "b"])
    >>> done = evaluate(y, said, np.array([1.0, 0.5, 1.0, 1.0]), np.array(["a", "b"]))
    >>> done.overall.share, done.by_class["a"].share, done.unknown, round(done.calibration_error, 3)
    (0.5, 0.5, ['c'], 0.375)
    """
    if not len(y):
        raise InputError("there are no samples to evaluate on")
    right = y == answers
    labels = np.union1d(known, np.unique(y))
    row, column = np.searchsorted(labels, y), np.searchsorted(labels, answers)
    confusion = np.zeros((len(labels), len(labels)), dtype=np.int64)
    np.add.at(confusion, (row, column), 1)
    bins = reliability(confidence, right)
    return Evaluation(
        Share(int(right.sum()), len(y)),
        {c: Share(int(right[y == c].sum()), int((y == c).sum())) for c in np.unique(y).tolist()},
        labels.tolist(),
        confusion,
        np.setdiff1d(y, known).tolist(),
        float(confidence.mean()),
        calibration_error(bins),
        bins,
    )


def reliability(confidence: Array, right: Array) -> list[Bin]:
    """Return the answers by confidence, in bins of equal width from 0 to 1; empty bins are left out."""
    place = np.minimum((confidence * BINS).astype(int), BINS - 1)
    groups = [place == b for b in range(BINS) if (place == b).any()]
    return [Bin(int(g.sum()), float(confidence[g].mean()), float(right[g].mean())) for g in groups]


def calibration_error(bins: Sequence[Bin]) -> float:
    """Return the expected calibration error (Naeini et al. 2015, AAAI; Guo et al. 2017, ICML)."""
    n = sum(b.n for b in bins)
    return sum(b.n * abs(b.accuracy - b.confidence) for b in bins) / n


@dataclass(frozen=True)
class Change:
    """What changed between two models on the same samples.

    Attributes
    ----------
    label
        The class; None for all together.
    before, after
        The share that each got right.
    gained, lost
        How many only the second, and only the first, got right.
    p
        The two-sided p-value of McNemar's exact test: whether the changes go one way more than by chance.
    """

    label: Any
    before: Share
    after: Share
    gained: int
    lost: int
    p: float


def changes(y: Array, before: Array, after: Array) -> list[Change]:
    """Compare the answers of two models, all together first and then class by class."""
    was, is_ = before == y, after == y

    def change(label: Any, rows: Array) -> Change:
        gained, lost = int((is_ & ~was)[rows].sum()), int((was & ~is_)[rows].sum())
        n = int(rows.sum())
        return Change(
            label,
            Share(int(was[rows].sum()), n),
            Share(int(is_[rows].sum()), n),
            gained,
            lost,
            mcnemar(gained, lost),
        )

    return [change(None, np.ones(len(y), bool)), *(change(c, y == c) for c in np.unique(y).tolist())]
