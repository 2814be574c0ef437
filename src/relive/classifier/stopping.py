"""Early stopping: when accuracy on a held-out part of a task no longer grows."""

from __future__ import annotations

import torch
from torch import Tensor

from relive.core.learner import Learner
from relive.data.tasks import Examples

LOOK = 50  # steps between two looks at held-out data


def choose_held_out(target: Tensor, fraction: float, rng: torch.Generator) -> Tensor:
    """Choose samples to judge by, (n,) bool; every class keeps at least one to learn from."""
    order = torch.randperm(len(target), generator=rng)
    left, wanted = torch.bincount(target), max(1, int(fraction * len(target)))
    chosen = torch.zeros(len(target), dtype=torch.bool)
    for i in order.tolist():
        if wanted and left[target[i]] > 1:
            chosen[i] = True
            left[target[i]] -= 1
            wanted -= 1
    return chosen


class Watch:
    """Counts the steps, and says when to stop: when accuracy on held-out rows has not grown for some looks."""

    def __init__(self, learner: Learner, held_out: Examples, task: int, patience: int) -> None:
        self.learner = learner
        self.held_out = held_out
        self.task = task
        self.patience = patience
        self.best, self.looks_since, self.taken = -1.0, 0, 0

    def __call__(self, iteration: int) -> bool:
        self.taken = iteration
        if not len(self.held_out) or iteration % LOOK:
            return False
        answers = self.learner.predict(self.held_out.inputs(slice(None)), self.task)
        right = self.learner.scenario.units(self.task)[self.held_out.labels]
        accuracy = float((answers == right).float().mean())
        self.looks_since = 0 if accuracy > self.best else self.looks_since + 1
        self.best = max(self.best, accuracy)
        return self.looks_since >= self.patience
