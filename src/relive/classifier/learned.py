"""The prediction interface of every model: of the estimator, and of the predictor without torch.

A model returns probabilities at temperature 1 and novelty scores; calibration and rejection
follow from these here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from relive._util.errors import ReliveError
from relive.classifier.asked import Asked, strangeness_scores
from relive.classifier.bookkeeping import Array, Bookkeeping, read_only
from relive.classifier.calibration import tempered
from relive.classifier.labels import with_unknown
from relive.classifier.lessons import Change, Lesson


class Learned(ABC):
    """A trained model that can predict."""

    bookkeeping_: Bookkeeping
    asked_: Asked

    @abstractmethod
    def _answers(self, X: Any, task: Any) -> Array:
        """Return the probability of every class of ``classes_`` at temperature 1, (n, classes)."""

    def _sound(self, X: Any, task: Any) -> Array:
        """Return what ``_answers`` does, checked to be probabilities."""
        answers = self._answers(X, task)
        if not np.isfinite(answers).all() or bool((answers.sum(1) < 0.5).any()):
            raise ReliveError(
                "this model cannot predict these samples: its numbers overflow, because they are too large or "
                "were modified"
            )
        return answers

    @abstractmethod
    def _novelty(self, X: Any) -> Array | None:
        """Return how unlike everything learned samples are, (n, kinds); None if the method cannot tell."""

    def predict_proba(self, X: Any, task: Any = None) -> Array:
        """Return the probability of every class of ``classes_``, (n_samples, n_classes).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            What to classify.
        task
            In Task-IL, the task whose classes to choose from: a name, or one per sample. Otherwise not given.
        """
        return tempered(self._sound(X, task), self.temperature_)

    def predict(self, X: Any, task: Any = None, *, reject: float | None = None) -> Array:
        """Return the most likely class of every sample, (n_samples,).

        Parameters
        ----------
        X, task
            As in :meth:`predict_proba`.
        reject
            Answer "unknown" for samples less typical than all but this share of samples like those learned:
            ``"unknown"`` if labels are strings, −1 if they are numbers, as in scikit-learn's outlier detectors,
            None if they are booleans. Without it the answer is always a class.
        """
        probabilities, refused = self.judged(X, task, reject)
        labels: Array = self.classes_[probabilities.argmax(1)]
        return labels if reject is None else with_unknown(labels, refused, self.labels_)

    def judged(self, X: Any, task: Any = None, reject: float | None = None) -> tuple[Array, Array]:
        """Return the probabilities of :meth:`predict_proba`, and which samples are rejected, (n_samples,) bool."""
        raw = self._sound(X, task)
        share = 0.0 if reject is None else self.asked_.check_share(reject)
        refused = self._familiarity(X, raw) < share if share else np.zeros(len(raw), dtype=bool)
        return tempered(raw, self.temperature_), refused

    def familiarity(self, X: Any, task: Any = None) -> Array:
        """Return how typical samples are, (n_samples,): the share of samples like those learned that are no more so.

        It is low for samples of unknown classes (:mod:`relive.classifier.asked`). ``task`` as in
        :meth:`predict_proba`.
        """
        return self._familiarity(X, self._sound(X, task))

    def _familiarity(self, X: Any, probabilities: Array) -> Array:
        return self.asked_.familiarity(strangeness_scores(probabilities, self._novelty(X), len(self.labels_)))

    @property
    def temperature_(self) -> float:
        """The temperature that logits are divided by to calibrate probabilities."""
        return self.asked_.temperature

    @property
    def classes_(self) -> Array:
        """The labels seen so far, and those declared, sorted; read-only."""
        return self.bookkeeping_.classes

    @property
    def labels_(self) -> Array:
        """The labels seen so far, in the order in which they were first seen; read-only."""
        return read_only(self.bookkeeping_.labels)

    @property
    def lessons_(self) -> tuple[Lesson, ...]:
        """What is remembered about each task."""
        return self.bookkeeping_.lessons

    @property
    def n_tasks_(self) -> int:
        """How many tasks were learned."""
        return sum(lesson.batches for lesson in self.lessons_)

    @property
    def changes_(self) -> tuple[Change, ...]:
        """The changes made to classes after they were learned."""
        return self.bookkeeping_.changes
