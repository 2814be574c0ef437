"""What a model remembers about a task that it has learned."""

from __future__ import annotations

from dataclasses import dataclass, field
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
        How many samples were learned of each of these.
    iterations, seconds
        How long it was learned.
    learned_at
        When, in UTC.
    digest
        SHA-256 of its samples and labels, whatever their order.
    tested
        For each class that had held-out samples: how many, and how many were answered right after learning.
    batches
        How many tasks it stands for: small ones of long ago are gathered.
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
        """How many held-out samples there were, and how many were answered right."""
        return sum(n for n, _ in self.tested.values()), sum(right for _, right in self.tested.values())


@dataclass(frozen=True)
class Change:
    """What was done to classes after they were learned.

    Attributes
    ----------
    what
        ``"forget"``, ``"rename"`` or ``"merge"``.
    labels
        The classes, as they were called then.
    into
        What they are called since; None if they were forgotten.
    changed_at
        When, in UTC.
    """

    what: str
    labels: tuple[Any, ...]
    into: Any
    changed_at: str
