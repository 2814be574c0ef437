"""Scoring a model on samples that it has not learned: which samples, when, and what is kept.

Samples that were held out (``holdout``, or for early stopping) were not learned anyway. A closed-form method needs no
held-out samples: a copy unlearns some of a task's samples (:meth:`relive.core.method.Method.unlearn`) and is scored on
them; the model itself has learned them all. A network that held nothing out is not scored: its training samples say
nothing, and holding some out would cost accuracy. It uses its method's usual temperature. With noise that hides single
samples nothing is scored either: stored scores would reveal them.

Each round solves the output layer once more. For tasks of fewer than 20 samples that would take longer than learning
them, so they are scored only once as many samples have been learned since the last round as before it.
"""

from __future__ import annotations

import copy

import numpy as np
import torch
from torch import Tensor

from relive.classifier import portraits
from relive.classifier.answers import class_probabilities
from relive.classifier.asked import Array, Asked, strangeness_scores
from relive.classifier.bookkeeping import Bookkeeping, NewTask
from relive.classifier.portraits import Portraits
from relive.core.learner import Learner
from relive.core.sources import Part
from relive.data.tasks import Examples, Task
from relive.methods.closed_form import CHUNK

SMALL = 20  # samples; smaller tasks are scored only now and then
SHARE, MOST = 0.2, 500  # share of each class's samples; samples in all
BATCHES = 3  # of a large task, from which these samples are taken


def label_probabilities(learner: Learner, books: Bookkeeping, x: Tensor, task: int) -> Array:
    """Return the probability of every label, (n, labels), in the order in which labels were first seen."""
    classes, p = class_probabilities(learner, x, task)
    by_label = np.zeros((len(x), len(books.labels)))
    np.add.at(by_label, np.ix_(np.arange(len(x)), np.array(books.meaning)[classes]), p.numpy())  # two may have one
    return by_label


def novelty_of(learner: Learner, painted: Portraits, x: Tensor) -> Array | None:
    """Return how unlike everything learned inputs are, (n, kinds), by the method or portraits; None if neither can."""
    kinds = learner.novelty(x)
    return portraits.novelty(painted, x.cpu().numpy()) if kinds is None else kinds.cpu().numpy()


def ask(
    before: Asked,
    learner: Learner,
    books: Bookkeeping,
    new: NewTask,
    painted: Portraits,
    task: Task,
    tested: Examples,
    seed: int,
) -> Asked:
    """Return the scores so far, including those of a task that was just learned.

    Parameters
    ----------
    before
        The scores so far.
    learner, books, new, painted
        The learner that learned the task, the books with its labels, the task, and the portraits with its classes.
    task
        The samples that it learned, and those held out for early stopping.
    tested
        The samples held out for testing; their labels are positions in the task's classes.
    seed
        Determines which samples are scored and which scores are kept.
    """
    if learner.method.hides_samples:
        return before
    counts = dict.fromkeys(range(len(books.labels)), 0)
    for lesson in books.lessons:
        counts |= {p: counts[p] + n for p, n in zip(lesson.classes, lesson.counts, strict=True)}
    learned = sum(counts.values()) + len(task.train)
    held_out = tested if len(tested) else task.test
    if not len(held_out):
        if not learner.method.can_unlearn or (len(task.train) < SMALL and learned < 2 * before.learned):
            return before
        together = not (learner.scenario.needs_task or learner.scenario.shares_units)
        known = [together and counts[books.meaning[c]] > 0 for c in new.classes]
        chosen = _fold(task.train.labels, known, np.random.default_rng([seed, learned]))
        if not len(chosen):
            return before
        held_out = task.train.take(chosen)
        learner = copy.deepcopy(learner)
        learner.unlearn(Part(learner.seen - 1, task.train), chosen)
    x, classes = held_out.inputs(slice(None)), np.array(new.classes)[held_out.labels.cpu().numpy()]
    p = label_probabilities(learner, books, x, learner.seen - 1)
    scores = strangeness_scores(p, novelty_of(learner, painted, x), len(books.labels))
    return before.with_more(p, np.array(books.meaning)[classes], classes, scores, learned, seed)


def _fold(target: Tensor, known: list[bool], rng: np.random.Generator) -> Tensor:
    """Return which samples to unlearn, (m,): a fifth of each class, 500 at most; a new class keeps at least one.

    For a small task, all samples of known classes: it is scored before it is learned. For a large one they come from
    few batches, since the features of whole batches are computed again.
    """
    y = target.cpu().numpy()
    share = min(SHARE, MOST / len(y))
    batches = rng.permutation(-(-len(y) // CHUNK))[:BATCHES]
    among = np.isin(np.arange(len(y)) // CHUNK, batches)
    chosen = []
    for c in np.unique(y):
        mine = rng.permutation(np.flatnonzero((y == c) & among))
        whole = len(y) < SMALL and known[c]
        n = int((y == c).sum())
        chosen.append(mine[: len(mine) if whole else min(int(share * n + 0.5), n - 1)])
    return torch.from_numpy(np.sort(np.concatenate(chosen))).to(target.device)
