"""What a model remembers about the tasks it has learned, and what can be said from it about each class."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Name = str | int


@dataclass(frozen=True)
class Lesson:
    """What is remembered about a task that was learned: of its data only a digest.

    Attributes
    ----------
    name
        How the user called it, or its number.
    classes
        What it may be answered with: positions in ``labels_``.
    counts
        How many samples there were of each of these.
    iterations, seconds
        How long it was learned.
    learned_at
        When, in UTC.
    digest
        SHA-256 of its samples and labels, whatever their order.
    agreement
        For each class met before: how many replayed samples the model of before took for it, and on how many of them
        this one agreed when the task was learned. Empty for methods that generate nothing.
    """

    name: Name
    classes: tuple[int, ...]
    counts: tuple[int, ...]
    iterations: int
    seconds: float
    learned_at: str
    digest: str
    agreement: dict[int, tuple[int, int]]


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


def memories(labels: Sequence[Any], lessons: Sequence[Lesson], dreamt: Mapping[int, float]) -> list[Memory]:
    """Return what is known of each class; ``dreamt`` has shares by position, and is empty if nothing is generated."""
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
