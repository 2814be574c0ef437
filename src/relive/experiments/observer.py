"""Who is told how a run is going. No torch."""

from __future__ import annotations


class Observer:
    """Is told how a run is going, and is open (a context manager) while it goes; this one ignores it all."""

    def __enter__(self) -> Observer:
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def resumed(self, done: int) -> None:
        """The run goes on from a checkpoint, after that many tasks."""

    def task_started(self, task: int) -> None:
        """A task begins (counted from 0)."""

    def stepped(self, task: int, iteration: int, loss: float) -> None:
        """One training step was taken."""

    def probed(self, task: int, accuracies: list[float]) -> None:
        """The accuracy on each task so far, measured in passing."""

    def task_finished(self, task: int, accuracies: list[float]) -> None:
        """A task is learned; its row of the accuracy matrix."""
