"""What a model remembers about a task that it has learned."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Name = str | int


@dataclass(frozen=True)
class Lesson:
    """What is remembered about a learned task; of its data, only a digest.

    Attributes
    ----------
    name
        The name the user gave it, or its number.
    classes
        The possible answers: positions in ``labels_``.
    counts
        How many samples of each of these were learned.
    iterations, seconds
        How long training took.
    learned_at
        When, in UTC.
    digest
        SHA-256 of its samples and labels, independent of their order.
    tested
        For each class with held-out samples: how many, and how many were predicted correctly after learning.
    batches
        How many tasks it stands for: old small ones are merged.
    """

    name: Name
    classes: tuple[int, ...]
    counts: tuple[int, ...]
    iterations: int
    seconds: float
    learned_at: str
    digest: str
    tested: dict[int, tuple[int, int]] = field(default_factory=dict)
    batches: int = 1

    @property
    def test(self) -> tuple[int, int]:
        """How many held-out samples there were, and how many were predicted correctly."""
        return sum(n for n, _ in self.tested.values()), sum(right for _, right in self.tested.values())


@dataclass(frozen=True)
class Change:
    """A change to classes after they were learned.

    Attributes
    ----------
    what
        ``"forget"``, ``"rename"`` or ``"merge"``.
    labels
        The classes, by their names at the time.
    into
        Their name since; None if they were forgotten.
    changed_at
        When, in UTC.
    """

    what: str
    labels: tuple[Any, ...]
    into: Any
    changed_at: str
