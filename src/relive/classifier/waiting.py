"""Samples that wait in memory until there are enough of them to be learned as one task (``consolidate_every``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_consistent_length

from relive._util.errors import InputError
from relive.classifier import parameters
from relive.classifier.bookkeeping import Array
from relive.classifier.choice import choose
from relive.classifier.features import Features
from relive.classifier.labels import joined, label_array
from relive.classifier.learning import declared_labels, learn, learn_samples
from relive.classifier.training import OnTrainingStep
from relive.core.scenarios import SCENARIOS
from relive.methods import method_class

if TYPE_CHECKING:
    from relive.classifier.estimator import ContinualClassifier


@dataclass(frozen=True, eq=False)
class Waiting:
    """Samples, their labels, and labels declared with them."""

    data: Array
    y: Array
    declared: Array

    def __len__(self) -> int:
        return len(self.y)

    def with_more(self, other: Waiting) -> Waiting:
        """Return these samples followed by others, without changing any of them."""
        if (self.data.dtype == np.uint8) != (other.data.dtype == np.uint8):
            raise InputError("X has bytes in one batch and other numbers in another: use the same type for all of them")
        labels = joined(np.unique(self.y), np.unique(other.y))  # refuses labels of two kinds
        y = np.concatenate([self.y.astype(labels.dtype), other.y.astype(labels.dtype)])
        return Waiting(np.concatenate([self.data, other.data]), y, joined(self.declared, other.declared))


def take(draft: ContinualClassifier, X: Any, y: Any, task: Any, classes: Any, on_step: OnTrainingStep | None) -> None:
    """Learn samples, or let them wait for more."""
    given = draft.get_params(deep=False)
    parameters.check(given)
    if not draft.pending_ and (draft.consolidate_every is None or not _takes_steps(draft, X, given)):
        learn(draft, X, y, task, classes, on_step)
        return
    scenario = SCENARIOS[draft.scenario]
    if scenario.needs_task or task is not None:
        raise InputError(
            f"consolidate_every = {draft.consolidate_every}: tasks are formed from the samples collected so "
            f"far, so a task cannot be given ({f'task = {task!r}' if task is not None else scenario.title}): "
            "leave one of the two out"
        )
    data = draft._data(X, reset=not draft.pending_ and not draft.__sklearn_is_fitted__())
    y = label_array(y)
    check_consistent_length(data, y)
    more = Waiting(data, y, declared_labels(y, classes))
    if draft.__sklearn_is_fitted__():
        draft.features_.check(data)
        draft.bookkeeping_.with_labels(np.unique(y), more.declared)  # refuses labels of another kind
    draft.waiting_ = more if draft.waiting_ is None else draft.waiting_.with_more(more)
    if draft.pending_ >= int(draft.consolidate_every or 1):
        consolidate(draft, on_step)


def consolidate(draft: ContinualClassifier, on_step: OnTrainingStep | None = None) -> None:
    """Learn the waiting samples as one task."""
    waiting = draft.waiting_
    if waiting is not None:
        draft.waiting_ = None
        learn_samples(draft, waiting.data, waiting.y, None, waiting.declared, on_step)


def check_none(model: ContinualClassifier) -> None:
    """Refuse to change classes while samples wait that may belong to them."""
    if model.pending_:
        raise InputError(f"{model.pending_} samples are waiting to be learned: call consolidate() first")


def _takes_steps(draft: ContinualClassifier, X: Any, given: dict[str, Any]) -> bool:
    """Return whether a model learns by steps, so that larger tasks help; a closed form does not."""
    if draft.__sklearn_is_fitted__():
        return draft.learner_.method.takes_steps
    data = draft._data(X, reset=True)
    likelihood = Features.of(data, draft.likelihood).likelihood if given["method"] == "auto" else ""
    return method_class(choose(given, data.shape[1], likelihood).method).takes_steps
