"""How a model learns a task, forgets a class or merges two: on a draft, which the caller takes over or throws away."""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_consistent_length

from relive._util.errors import InputError
from relive._util.seeds import stream
from relive._util.threads import threads
from relive.classifier import changes, parameters, selfreport
from relive.classifier.bookkeeping import Array, Bookkeeping
from relive.classifier.choice import choose
from relive.classifier.features import Features
from relive.classifier.labels import digest_of, label_array, warn_of_many_labels
from relive.classifier.lessons import Lesson
from relive.classifier.training import OnTrainingStep, task_of, train
from relive.core.learner import Learner
from relive.core.scenarios import Scenario
from relive.methods import make_method, method_class

if TYPE_CHECKING:
    from relive.classifier.estimator import ContinualClassifier


def learn(
    draft: ContinualClassifier, X: Any, y: Any, task: Any, classes: Any = None, on_step: OnTrainingStep | None = None
) -> None:
    """Learn a task."""
    given = draft.get_params(deep=False)
    parameters.check(given)
    first = not draft.__sklearn_is_fitted__()
    data, y = draft._data(X, reset=first), label_array(y)
    check_consistent_length(data, y)
    warn_of_many_labels(y)
    if first:
        _begin(draft, data, y, given)
    parameters.check_unchanged(draft.structure_, given)
    parameters.check_method(given | {"method": draft.choice_.method})
    draft.features_.check(data)
    declared = y[:0] if classes is None or not len(classes) else np.unique(label_array(classes))
    books = draft.bookkeeping_.with_labels(np.unique(y), declared)
    new = books.new_task(y, task)
    with threads(parameters.thread_count(draft.n_jobs)):
        learner = _learner_for(draft, books.scenario_with(new.classes))
        held_out = float(draft.validation_fraction) if draft.early_stopping else 0.0
        samples = task_of(draft.features_.rows(data), new, held_out, stream(draft.seed_, f"held out {draft.n_tasks_}"))
        start = time.perf_counter()
        steps = train(learner, samples, draft.iterations, int(draft.n_iter_no_change), on_step)
        seconds = time.perf_counter() - start
        agreement = {} if first else selfreport.agreement(draft.learner_, learner, draft.seed_)
    lesson = Lesson(
        name=new.name,
        classes=new.labels,
        counts=new.counts,
        iterations=steps,
        seconds=seconds,
        learned_at=datetime.now(UTC).isoformat(timespec="seconds"),
        digest=digest_of(data, y),
        agreement={p: (n, agreed) for p, (n, agreed) in books.by_label(agreement).items()},
    )
    draft.bookkeeping_ = books.with_lesson(lesson, new.classes)
    draft.learner_ = learner


def _begin(draft: ContinualClassifier, data: Array, y: Array, given: dict[str, Any]) -> None:
    """Decide by the first task what is decided for good."""
    draft.features_ = Features.of(data, draft.likelihood)
    draft.bookkeeping_ = Bookkeeping(draft.scenario, y[:0], y[:0])
    draft.structure_ = parameters.structure_of(given)
    draft.choice_ = choose(given, draft.n_features_in_, draft.features_.likelihood)
    draft.notes_ = {}
    if draft.forgettable and not method_class(draft.choice_.method).can_forget:
        raise InputError(
            f"forgettable = True: method {draft.choice_.method!r} trains a network, from which nothing can be taken "
            "away again; methods in closed form can (discriminant, analytic, slda, ncm)"
        )


def forget(draft: ContinualClassifier, labels: Sequence[Any]) -> None:
    """Have classes be forgotten."""
    draft.bookkeeping_ = changes.forgotten(draft.bookkeeping_, labels)
    with threads(parameters.thread_count(draft.n_jobs)):
        draft.learner_ = copy.deepcopy(draft.learner_)
        draft.learner_.forget(draft.bookkeeping_.scenario_with())


def rename(draft: ContinualClassifier, old: Any, new: Any) -> None:
    """Have a class be called otherwise."""
    draft.bookkeeping_ = changes.renamed(draft.bookkeeping_, old, new)


def merge(draft: ContinualClassifier, labels: Sequence[Any], into: Any) -> None:
    """Make one class of several."""
    before = draft.bookkeeping_
    draft.bookkeeping_ = changes.merged(before, labels, into)
    first, *others = sorted({c for label in labels for c in changes.classes_of(before, label)})
    with threads(parameters.thread_count(draft.n_jobs)):
        draft.learner_ = copy.deepcopy(draft.learner_)
        for other in others:
            draft.learner_.merge(first, other)


def _learner_for(draft: ContinualClassifier, scenario: Scenario) -> Learner:
    """Return a learner that is ready for the scenario's last task; the one that is there stays as it is."""
    if not draft.__sklearn_is_fitted__():
        draft.seed_ = parameters.seed_from(draft.random_state)
        return new_learner(draft, scenario)
    learner = copy.deepcopy(draft.learner_)
    learner.grow(scenario, learning_rate=float(draft.learning_rate), batch_size=int(draft.batch_size))
    return learner


def new_learner(model: ContinualClassifier, scenario: Scenario) -> Learner:
    """Return a learner that has learned nothing, made as a model's was."""
    made = model.structure_
    return Learner(
        make_method(model.choice_.method, **(made["settings"] or {})),
        scenario,
        model.n_features_in_,
        learning_rate=float(model.learning_rate),
        batch_size=int(model.batch_size),
        seed=model.seed_,
        likelihood=model.features_.likelihood,
        device=model.device,
        **parameters.learner_arguments(made),
    )
