"""How well a model remembers, by its own estimate: there are no data of earlier tasks to test on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from relive.classifier.lessons import Lesson, Name
from relive.classifier.portraits import Portrait

if TYPE_CHECKING:
    from relive.core.learner import Learner

ASKED = 1000  # replayed samples to count classes in
MUCH = 10.0  # points of accuracy; classes that lost more are named
MISSED = 0.005  # share of replay; less counts as missing


@dataclass(frozen=True)
class Memory:
    """How well a class is remembered, as far as can be known without its data.

    Attributes
    ----------
    label
        The class.
    tasks
        Names of the tasks that had samples of it.
    n_samples
        How many, in all.
    tested
        Accuracy on held-out samples of it when it was last learned; None if none were held out.
    kept
        An estimate of how much of that is left (:mod:`relive.classifier.portraits`); None if not known.
    lost
        The same as points of accuracy lost.
    replayed
        Its share of what the model would replay now; None if it replays nothing.
    """

    label: Any
    tasks: tuple[Name, ...]
    n_samples: int
    tested: float | None
    kept: float | None
    lost: float | None
    replayed: float | None


def replayed_counts(learner: Learner, seed: int) -> dict[int, int]:
    """Return how often each class occurs in a learner's replay; empty if it generates nothing, or in Task-IL."""
    from relive._util.seeds import stream
    from relive.classifier.answers import most_likely_classes, without_forgotten
    from relive.networks import GenerativeClassifier

    if not isinstance(learner.net, GenerativeClassifier) or learner.scenario.needs_task:
        return {}
    x = without_forgotten(learner, learner.net.generate(ASKED, stream(seed, "report")))
    classes, counts = np.unique(most_likely_classes(learner, x, learner.seen - 1), return_counts=True)
    return {int(c): int(n) for c, n in zip(classes, counts, strict=True)}


def memories(
    labels: Sequence[Any], lessons: Sequence[Lesson], counts: Mapping[int, float], portraits: Mapping[int, Portrait]
) -> list[Memory]:
    """Return what is known about each class.

    ``counts`` are of replayed samples, empty if there are none; they and ``portraits`` are indexed by label position.
    """
    replayed = {p: n / sum(counts.values()) for p, n in counts.items()}
    return [_memory(label, c, lessons, replayed, portraits.get(c)) for c, label in enumerate(labels)]


def _memory(
    label: Any, c: int, lessons: Sequence[Lesson], replayed: Mapping[int, float], portrait: Portrait | None
) -> Memory:
    counts = [dict(zip(lesson.classes, lesson.counts, strict=True)).get(c, 0) for lesson in lessons]
    taught = [k for k, count in enumerate(counts) if count]
    n, right = next((lessons[k].tested[c] for k in reversed(taught) if c in lessons[k].tested), (0, 0))
    return Memory(
        label=label,
        tasks=tuple(lessons[k].name for k in taught),
        n_samples=sum(counts),
        tested=right / n if n else None,
        kept=portrait.kept if portrait else None,
        lost=portrait.lost if portrait else None,
        replayed=replayed.get(c, 0.0) if replayed else None,
    )


def warnings_of(memories: Sequence[Memory]) -> list[str]:
    """Return warnings: classes that are practically not replayed, and classes that lost much accuracy."""
    said = []
    missed = [str(m.label) for m in memories if m.replayed is not None and m.replayed < MISSED]
    if missed:
        said.append(f"{', '.join(missed)} missing from replay: what is not replayed is forgotten with later tasks")
    faded = [f"{m.label} (by {m.lost:.0f})" for m in memories if m.lost is not None and m.lost > MUCH]
    if faded:
        said.append(
            f"estimated accuracy has fallen by more than {MUCH:.0f} points since learning for {', '.join(faded)}"
        )
    return said
