"""Split MNIST with relive, as its user would write it: one function for every method."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from relive import Learner, accuracy, make_method, scenario_of


def learner_of(method: str, scenario: str, tasks: Sequence[Any], seed: int) -> Learner:
    layout = scenario_of(scenario, [task.classes for task in tasks])
    return Learner(make_method(method), layout, tasks[0].n_inputs, seed=seed)


def learn(learner: Learner, tasks: Sequence[Any], iterations: int) -> list[float]:
    """Learn task after task, and return the final accuracy on each."""
    for k in range(len(tasks)):
        learner.learn(tasks[: k + 1], iterations)
    return [accuracy(learner, task, k) for k, task in enumerate(tasks)]
