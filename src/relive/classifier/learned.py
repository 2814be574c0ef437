"""What can be said of a model from its books alone: the estimator has it, and so has who answers without torch."""

from __future__ import annotations

from abc import ABC

from relive.classifier.bookkeeping import Array, Bookkeeping, read_only
from relive.classifier.lessons import Change, Lesson


class Learned(ABC):
    """A model with books."""

    bookkeeping_: Bookkeeping

    @property
    def classes_(self) -> Array:
        """The labels met so far, and those declared, sorted; to read only."""
        return self.bookkeeping_.classes

    @property
    def labels_(self) -> Array:
        """The labels met so far, in the order in which they were met; to read only."""
        return read_only(self.bookkeeping_.labels)

    @property
    def lessons_(self) -> tuple[Lesson, ...]:
        """What is remembered about each task."""
        return self.bookkeeping_.lessons

    @property
    def n_tasks_(self) -> int:
        """How many tasks were learned."""
        return sum(lesson.batches for lesson in self.lessons_)

    @property
    def changes_(self) -> tuple[Change, ...]:
        """What was done to classes after they were learned."""
        return self.bookkeeping_.changes
