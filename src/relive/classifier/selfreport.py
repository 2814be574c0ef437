"""How well a model remembers, by its own account: no data of earlier tasks are there to ask."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from relive.classifier.lessons import Lesson, Name

if TYPE_CHECKING:
    from relive.core.learner import Learner

ASKED = 1000  # replayed samples that a model is asked about


@dataclass(frozen=True)
class Memory:
    """How well a class is remembered, as far as this can be known without its data.

    Attributes
    ----------
    label
        The class.
    tasks
        Names of the tasks that had samples of it.
    n_samples
        How many, in all.
    agreement
        Share of replayed samples of it on which the model says what it said before the last task; None where nothing
        of it was replayed, or nothing came after it.
    kept
        The product of these shares over all tasks since it was last taught: an estimate of what is left. None if it
        was not replayed in one of them.
    dreamt
        Its share of what the model would replay now. A class that is no longer dreamt of will be forgotten.
    """

    label: Any
    tasks: tuple[Name, ...]
    n_samples: int
    agreement: float | None
    kept: float | None
    dreamt: float | None


def agreement(before: Learner, after: Learner, seed: int) -> dict[int, tuple[int, int]]:
    """Ask a learner as it was before a task and as it is after it about the same samples, replayed by the first.

    Returns
    -------
    For each class how many samples the first took for it, and on how many of them the second agrees. Empty if it
    generates nothing.
    """
    from relive._util.seeds import stream
    from relive.classifier.answers import most_likely_classes, without_forgotten
    from relive.networks import GenerativeClassifier

    if not isinstance(before.net, GenerativeClassifier):
        return {}
    x = without_forgotten(before, before.net.generate(ASKED, stream(seed, f"agreement {before.seen}")))
    counts: dict[int, tuple[int, int]] = {}
    for task in range(before.seen) if before.scenario.needs_task else [before.seen - 1]:
        then, now = most_likely_classes(before, x, task), most_likely_classes(after, x, task)
        for c in np.unique(then).tolist():
            n, agreed = counts.get(c, (0, 0))
            counts[c] = n + int((then == c).sum()), agreed + int(((then == c) & (now == c)).sum())
    return counts


def dreamt_counts(learner: Learner, seed: int) -> dict[int, int]:
    """Return how often each class is in what a learner would replay; empty if it generates nothing, or in Task-IL."""
    from relive._util.seeds import stream
    from relive.classifier.answers import most_likely_classes, without_forgotten
    from relive.networks import GenerativeClassifier

    if not isinstance(learner.net, GenerativeClassifier) or learner.scenario.needs_task:
        return {}
    x = without_forgotten(learner, learner.net.generate(ASKED, stream(seed, "report")))
    classes, counts = np.unique(most_likely_classes(learner, x, learner.seen - 1), return_counts=True)
    return {int(c): int(n) for c, n in zip(classes, counts, strict=True)}


def memories(labels: Sequence[Any], lessons: Sequence[Lesson], counts: Mapping[int, float]) -> list[Memory]:
    """Return what is known of each class; ``counts`` are of what is dreamt, by position, and none if nothing is."""
    dreamt = {p: n / sum(counts.values()) for p, n in counts.items()}
    return [_memory(label, c, lessons, dreamt) for c, label in enumerate(labels)]


def _memory(label: Any, c: int, lessons: Sequence[Lesson], dreamt: Mapping[int, float]) -> Memory:
    counts = [dict(zip(lesson.classes, lesson.counts, strict=True)).get(c, 0) for lesson in lessons]
    taught = [k for k, count in enumerate(counts) if count]
    later = [lesson.agreement.get(c, (0, 0)) for lesson in lessons[taught[-1] + 1 :]]
    shares = [agreed / n if n else None for n, agreed in later]  # None: it was not dreamt of, so nobody can say
    known = [share for share in shares if share is not None]
    return Memory(
        label=label,
        tasks=tuple(lessons[k].name for k in taught),
        n_samples=sum(counts),
        agreement=shares[-1] if shares else None,
        kept=math.prod(known) if shares and len(known) == len(shares) else None,
        dreamt=dreamt.get(c, 0.0) if dreamt else None,
    )
