"""Observers of a run's progress. No torch."""

from __future__ import annotations


class Observer:
    """Gets a run's progress, and is a context manager open during the run; this one ignores everything."""

    def __enter__(self) -> Observer:
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def resumed(self, done: int) -> None:
        """The run resumes from a checkpoint, after that many tasks."""

    def task_started(self, task: int) -> None:
        """A task starts (counted from 0)."""

    def stepped(self, task: int, iteration: int, loss: float) -> None:
        """One training step was taken."""

    def probed(self, task: int, accuracies: list[float]) -> None:
        """The accuracy on each task so far, measured in passing."""

    def task_finished(self, task: int, accuracies: list[float]) -> None:
        """A task is learned; its row of the accuracy matrix."""
