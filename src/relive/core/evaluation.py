"""How well every task is remembered: the accuracy matrix and the usual measures derived from it."""

from __future__ import annotations

from collections.abc import Sequence

from relive.core.learner import Learner
from relive.data.tasks import Task

Matrix = Sequence[Sequence[float]]


def accuracy(learner: Learner, task: Task, index: int, limit: int | None = None, chunk: int = 1000) -> float:
    """Return the accuracy on the task's test rows (at most ``limit`` of them)."""
    n = len(task.test) if limit is None else min(limit, len(task.test))
    scenario, seen = learner.scenario, max(learner.seen, 1)
    if not set(scenario.unit_numbers(index)) & set(scenario.active_numbers(index, seen)):
        return 0.0  # its classes are still unknown: no row can be right
    units, right = scenario.units(index).cpu(), 0
    for start in range(0, n, chunk):
        rows = slice(start, min(start + chunk, n))
        predicted = learner.predict(task.test.inputs(rows), index)
        right += int((predicted == units[task.test.labels[rows]]).sum())
    return right / n


def average_accuracy(matrix: Matrix) -> float:
    """Return the unweighted mean over tasks of the final model's accuracy.

    >>> average_accuracy([[1.0, 0.5], [0.5, 1.0]])
    0.75
    """
    return sum(matrix[-1]) / len(matrix[-1])


def forgetting(matrix: Matrix) -> float:
    """Return how far, on average, earlier tasks have fallen from their best accuracy.

    Chaudhry et al. (2018), "Riemannian walk for incremental learning", ECCV.

    >>> forgetting([[1.0, 0.5], [0.75, 0.9]])
    0.25
    """
    last = len(matrix) - 1
    falls = [max(matrix[i][j] for i in range(last)) - matrix[last][j] for j in range(last)]
    return sum(falls) / len(falls) if falls else 0.0


def backward_transfer(matrix: Matrix) -> float:
    """Return how much, on average, learning later tasks changed the earlier ones; negative is forgetting.

    Lopez-Paz & Ranzato (2017), "Gradient episodic memory for continual learning", NeurIPS.

    >>> backward_transfer([[1.0, 0.5], [0.75, 0.9]])
    -0.25
    """
    last = len(matrix) - 1
    changes = [matrix[last][j] - matrix[j][j] for j in range(last)]
    return sum(changes) / len(changes) if changes else 0.0
