"""How a model learns a task, forgets a class or merges two: on a draft that the caller adopts or discards."""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.utils.validation import check_consistent_length
from torch import Tensor

from relive._util.errors import InputError
from relive._util.seeds import stream
from relive._util.threads import threads
from relive.classifier import changes, parameters, portraits
from relive.classifier.asked import Asked
from relive.classifier.asking import ask, label_probabilities
from relive.classifier.bookkeeping import GONE, Array, Bookkeeping
from relive.classifier.choice import choose
from relive.classifier.features import Features, warn_of_pixels
from relive.classifier.labels import digest_of, label_array, warn_of_many_labels
from relive.classifier.lessons import Lesson
from relive.classifier.training import OnTrainingStep, choose_tested, task_of, train
from relive.core.hooks import state_of
from relive.core.learner import Learner
from relive.core.scenarios import SCENARIOS, Scenario
from relive.data.tasks import Examples
from relive.methods import is_shipped, make_method, method_class

if TYPE_CHECKING:
    from relive.classifier.estimator import ContinualClassifier


def learn(
    draft: ContinualClassifier, X: Any, y: Any, task: Any, classes: Any = None, on_step: OnTrainingStep | None = None
) -> None:
    """Learn a task."""
    given = draft.get_params(deep=False)
    parameters.check(given)
    data, y = draft._data(X, reset=not draft.__sklearn_is_fitted__()), label_array(y)
    check_consistent_length(data, y)
    warn_of_many_labels(y)
    learn_samples(draft, data, y, task, declared_labels(y, classes), on_step)


def declared_labels(y: Array, classes: Any) -> Array:
    """Return the declared labels, if any."""
    return y[:0] if classes is None or not len(classes) else np.unique(label_array(classes))


def learn_samples(
    draft: ContinualClassifier, data: Array, y: Array, task: Any, declared: Array, on_step: OnTrainingStep | None
) -> None:
    """Learn a task given as arrays; a part of the samples may be held out for testing."""
    given, first = draft.get_params(deep=False), not draft.__sklearn_is_fitted__()
    if first:
        draft.seed_ = parameters.seed_from(draft.random_state)
    done = 0 if first else draft.n_tasks_
    tested = choose_tested(y, float(draft.holdout), stream(draft.seed_, f"tested {done}"))
    if first:
        _begin(draft, data[~tested], y, given)
    parameters.check_unchanged(draft.structure_, given)
    parameters.check_method(given | {"method": draft.choice_.method})
    draft.features_.check(data, bounded=draft.shape is not None or method_class(draft.choice_.method).takes_steps)
    books = _gathered(draft).with_labels(np.unique(y), declared)
    whole = books.new_task(y, task)
    new = replace(whole, target=whole.target[~tested], label=whole.label[~tested])
    with threads(parameters.thread_count(draft.n_jobs)):
        learner = _learner_for(draft, books.scenario_with(new.classes))
        learner.seen = len(books.tasks)
        validated = float(draft.validation_fraction) if draft.early_stopping and learner.method.takes_steps else 0.0
        samples = task_of(draft.features_.rows(data[~tested]), new, validated, stream(draft.seed_, f"held out {done}"))
        start = time.perf_counter()
        steps = train(learner, samples, draft.iterations, int(draft.n_iter_no_change), on_step)
        seconds = time.perf_counter() - start
        if not is_shipped(draft.choice_.method):
            parameters.check_no_samples(given, state_of(learner.method), samples.train)
        painted = portraits.with_task(
            () if first else draft.portraits_, learner, books, new, samples.train, draft.features_.bounded
        )
        asked = Asked.nothing() if first else draft.asked_
        if draft.calibrate:
            held_out = Examples(draft.features_.rows(data[tested]), torch.from_numpy(whole.target[tested]))
            usual = learner.method.usual_temperature(len(books.labels))
            asked = ask(replace(asked, usual=usual), learner, books, new, painted, samples, held_out, draft.seed_)
        test = _test(learner, books, draft.features_.inputs(data[tested]), whole.label[tested]) if tested.any() else {}
    lesson = Lesson(
        name=new.name,
        classes=new.labels,
        counts=new.counts,
        iterations=steps,
        seconds=seconds,
        learned_at=datetime.now(UTC).isoformat(timespec="seconds"),
        digest=digest_of(data, y),
        tested=test,
    )
    draft.bookkeeping_ = books.with_lesson(lesson, new.classes)
    draft.learner_, draft.asked_, draft.portraits_ = learner, asked, painted


def _gathered(draft: ContinualClassifier) -> Bookkeeping:
    """Return the books, with old lessons merged if the division into tasks does not matter."""
    scenario, fitted = SCENARIOS[draft.scenario], draft.__sklearn_is_fitted__()
    if scenario.needs_task or scenario.shares_units or not fitted or draft.learner_.method.heeds_tasks:
        return draft.bookkeeping_
    return draft.bookkeeping_.gathered()


def _test(learner: Learner, books: Bookkeeping, x: Tensor, label: Array) -> dict[int, tuple[int, int]]:
    """Return, for each label of held-out samples, how many there are and how many are predicted correctly."""
    right = label_probabilities(learner, books, x, learner.seen - 1).argmax(1) == label
    return {int(c): (int((label == c).sum()), int(right[label == c].sum())) for c in np.unique(label)}


def _begin(draft: ContinualClassifier, data: Array, y: Array, given: dict[str, Any]) -> None:
    """Decide from the first task what is fixed for good."""
    if draft.shape is not None and len(draft.shape) > 1 and draft.likelihood == "auto":
        warn_of_pixels(data)
    draft.features_ = Features.of(data, draft.likelihood)
    draft.bookkeeping_ = Bookkeeping(draft.scenario, y[:0], y[:0])
    draft.structure_ = parameters.structure_of(given)
    draft.choice_ = choose(given, draft.n_features_in_, draft.features_.likelihood)
    draft.notes_ = {}
    if draft.forgettable and not method_class(draft.choice_.method).can_forget:
        raise InputError(
            f"forgettable = True: method {draft.choice_.method!r} cannot erase a class completely; closed "
            "forms can (discriminant, analytic, slda, ncm)"
        )


def forget(draft: ContinualClassifier, labels: Sequence[Any]) -> None:
    """Forget classes."""
    draft.bookkeeping_ = changes.forgotten(draft.bookkeeping_, labels)
    with threads(parameters.thread_count(draft.n_jobs)):
        draft.learner_ = copy.deepcopy(draft.learner_)
        draft.learner_.forget(draft.bookkeeping_.scenario_with())
        draft.portraits_ = _asked_again(draft)
    draft.asked_ = draft.asked_.without(
        [c for c, position in enumerate(draft.bookkeeping_.meaning) if position == GONE]
    )


def rename(draft: ContinualClassifier, old: Any, new: Any) -> None:
    """Rename a class."""
    draft.bookkeeping_ = changes.renamed(draft.bookkeeping_, old, new)


def merge(draft: ContinualClassifier, labels: Sequence[Any], into: Any) -> None:
    """Merge several classes into one."""
    before = draft.bookkeeping_
    draft.bookkeeping_ = changes.merged(before, labels, into)
    first, *others = sorted({c for label in labels for c in changes.classes_of(before, label)})
    with threads(parameters.thread_count(draft.n_jobs)):
        draft.learner_ = copy.deepcopy(draft.learner_)
        for other in others:
            draft.learner_.merge(first, other)
        draft.portraits_ = _asked_again(draft)


def _asked_again(draft: ContinualClassifier) -> portraits.Portraits:
    return portraits.asked_again(draft.portraits_, draft.learner_, draft.bookkeeping_, draft.features_.bounded)


def _learner_for(draft: ContinualClassifier, scenario: Scenario) -> Learner:
    """Return a learner that is ready for the scenario's last task; the existing one is not changed."""
    if not draft.__sklearn_is_fitted__():
        return new_learner(draft, scenario)
    learner = copy.deepcopy(draft.learner_)
    learner.grow(scenario, learning_rate=float(draft.learning_rate), batch_size=int(draft.batch_size))
    return learner


def new_learner(model: ContinualClassifier, scenario: Scenario) -> Learner:
    """Return an untrained learner, created like a model's."""
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
