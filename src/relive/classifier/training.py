"""Training on one task: the number of steps, held-out samples, early stopping."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from relive._util.errors import InputError
from relive.classifier.bookkeeping import NewTask
from relive.core.learner import Learner
from relive.data.tasks import Examples, Task

OnTrainingStep = Callable[[int, int, float], object]
"""Called after every step with its number, from 1, the maximum number, and the loss."""

CHECK_EVERY = 50  # steps between two checks on held-out data


def task_of(rows: Tensor, new: NewTask, held_out: float, rng: torch.Generator) -> Task:
    """Return a task's samples (n, inputs) for a learner, with a share of them held out for testing."""
    target = torch.from_numpy(new.target)
    chosen = choose_held_out(target, held_out, rng) if held_out else torch.zeros(len(target), dtype=torch.bool)
    train, test = (Examples(rows[some], target[some]) for some in (~chosen, chosen))
    return Task(train, test, new.classes, new.names, (1, rows.shape[1]))


def train(
    learner: Learner, task: Task, iterations: int | None, patience: int, on_step: OnTrainingStep | None = None
) -> int:
    """Let a learner learn one more task, and return the number of steps.

    Parameters
    ----------
    learner
        It already has units for the task.
    task
        Its test samples are those held out for early stopping; none to train to the end.
    iterations
        Steps, or None to derive it from the number of samples.
    patience
        Checks without progress after which to stop.
    on_step
        Called after each step.
    """
    steps = int(iterations or 0) or default_iterations(len(task.train), learner.problem.batch_size)
    stopping = EarlyStopping(learner, task.test, learner.seen, patience)

    def after_step(iteration: int, loss: float) -> bool:
        if on_step is not None:
            on_step(iteration, steps, loss)
        return stopping(iteration)

    learner.learn([*[_gone(task)] * learner.seen, task], steps, after_step)
    return stopping.steps_taken


def default_iterations(n_samples: int, batch_size: int) -> int:
    """Return the steps of 20 passes over the data, at least 500 and at most 5000.

    >>> default_iterations(10, 128), default_iterations(6400, 128), default_iterations(60_000, 128)
    (500, 1000, 5000)
    """
    return min(max(math.ceil(20 * n_samples / batch_size), 500), 5000)


def _gone(task: Task) -> Task:
    """Return a placeholder for an earlier task: no samples, and an error for methods that ask for some."""

    def refuse(rows: Tensor) -> NoReturn:
        raise InputError(
            "this method uses data of earlier tasks, which are gone: it must declare needs_earlier_tasks = "
            "True, and cannot be used here"
        )

    none = Examples(task.train.pixels[:0], task.train.labels[:0], transform=refuse)
    return Task(none, none, task.classes, task.names, task.shape)


def choose_held_out(target: Tensor, fraction: float, rng: torch.Generator) -> Tensor:
    """Choose validation samples, (n,) bool; every class keeps at least one to learn from."""
    order = torch.randperm(len(target), generator=rng)
    left, wanted = torch.bincount(target), max(1, int(fraction * len(target)))
    chosen = torch.zeros(len(target), dtype=torch.bool)
    for i in order.tolist():
        if wanted and left[target[i]] > 1:
            chosen[i] = True
            left[target[i]] -= 1
            wanted -= 1
    return chosen


def choose_tested(y: npt.NDArray[Any], fraction: float, rng: torch.Generator) -> npt.NDArray[np.bool_]:
    """Choose a share of each class's samples, rounded down, (n,) bool; every class keeps at least one to learn from.

    >>> choose_tested(np.repeat([3, 5], [20, 9]), 0.1, torch.Generator().manual_seed(0)).nonzero()[0].shape
    (2,)
    """
    chosen = np.zeros(len(y), dtype=bool)
    for label in np.unique(y) if fraction else ():
        mine = np.flatnonzero(y == label)
        order = torch.randperm(len(mine), generator=rng).numpy()
        chosen[mine[order[: min(int(fraction * len(mine)), len(mine) - 1)]]] = True
    return chosen


class EarlyStopping:
    """Counts the steps, and stops when the accuracy on held-out samples has not improved for some checks."""

    def __init__(self, learner: Learner, held_out: Examples, task: int, patience: int) -> None:
        self.learner = learner
        self.held_out = held_out
        self.task = task
        self.patience = patience
        self.best, self.looks_since, self.steps_taken = -1.0, 0, 0

    def __call__(self, iteration: int) -> bool:
        self.steps_taken = iteration
        if not len(self.held_out) or iteration % CHECK_EVERY:
            return False
        predicted = self.learner.predict(self.held_out.inputs(slice(None)), self.task)
        right = self.learner.scenario.units(self.task)[self.held_out.labels]
        accuracy = float((predicted == right).float().mean())
        self.looks_since = 0 if accuracy > self.best else self.looks_since + 1
        self.best = max(self.best, accuracy)
        return self.looks_since >= self.patience
