"""Asking a model about samples that it has not learned: which, when, and what is kept of the answers.

Samples that were held out (``holdout``, or for early stopping) were not learned anyway. A method in closed form needs
none: a copy takes some of a task's samples back (:meth:`relive.core.method.Method.unlearn`), and is asked about them;
the model itself has learned them all. A network that held nothing out is not asked: what it was trained on tells
nothing, and a part that is not trained on would cost accuracy. Its temperature is the one that is usual for the method.
Where noise hides single samples nothing is asked: scores that are kept would tell of them.

Each time, the output layer is solved once more. In tasks of fewer than 20 samples that would take longer than learning
them, so that a copy is asked only when as many samples were learned since as there were at the last time.
"""

from __future__ import annotations

import copy

import numpy as np
import torch
from torch import Tensor

from relive.classifier.answers import class_probabilities
from relive.classifier.asked import Array, Asked, strangeness_scores
from relive.classifier.bookkeeping import Bookkeeping, NewTask
from relive.core.learner import Learner
from relive.core.sources import Part
from relive.data.tasks import Examples, Task
from relive.methods.closed_form import CHUNK

SMALL = 20  # samples; tasks of fewer are asked about only now and then
SHARE, MOST = 0.2, 500  # of each class's samples; samples in all
BATCHES = 3  # of a large task, that these samples are among


def label_probabilities(learner: Learner, books: Bookkeeping, x: Tensor, task: int) -> Array:
    """Return the probability of every label, (n, labels), in the order in which they were met."""
    classes, p = class_probabilities(learner, x, task)
    by_label = np.zeros((len(x), len(books.labels)))
    np.add.at(by_label, np.ix_(np.arange(len(x)), np.array(books.meaning)[classes]), p.numpy())  # two may have one
    return by_label


def ask(
    before: Asked, learner: Learner, books: Bookkeeping, new: NewTask, task: Task, tested: Examples, seed: int
) -> Asked:
    """Return what was asked so far, and now that a task was learned.

    Parameters
    ----------
    before
        What was asked before.
    learner, books, new
        What has learned the task, what is known of labels with it, and what the task is.
    task
        What it learned, and held out for early stopping.
    tested
        What was held out to test it, its labels positions in the task's classes.
    seed
        Which samples are asked about, and of which scores are kept, is drawn from it.
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
    kinds = learner.novelty(x)
    scores = strangeness_scores(p, None if kinds is None else kinds.cpu().numpy(), len(books.labels))
    return before.with_more(p, np.array(books.meaning)[classes], classes, scores, learned, seed)


def _fold(target: Tensor, known: list[bool], rng: np.random.Generator) -> Tensor:
    """Return which samples to take back, (m,): a fifth of each class, 500 at most; a new class keeps at least one.

    Of a small task all samples of known classes are taken back: it is asked before it is learned. Of a large one they
    are of few batches, since the features of whole batches are computed again.
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
