"""Classes independent of the scenario: in Domain-IL several classes share one output unit."""

from __future__ import annotations

from collections.abc import Collection

import torch
from torch import Tensor

from relive.core.batch import Batch
from relive.core.scenarios import ClassIL, Scenario


def count(scenario: Scenario, tasks: int | None = None) -> int:
    """Return how many classes the first tasks have in total, or all of them.

    >>> from relive.core.scenarios import DomainIL
    >>> count(DomainIL([(0, 1), (2, 3)])), count(DomainIL([(0, 1), (2, 3)]), tasks=1)
    (4, 2)
    """
    return ClassIL(scenario.classes[:tasks]).n_units


def numbers(scenario: Scenario, task: int) -> Tensor:
    """Return the number of each class of a task, (classes,); they are numbered in order of appearance."""
    return ClassIL(scenario.classes).units(task)


def numbers_of(scenario: Scenario, ids: Collection[int]) -> set[int]:
    """Return the numbers of the classes with these ids."""
    tasks = enumerate(scenario.classes)
    return {n for k, own in tasks for c, n in zip(own, numbers(scenario, k).tolist(), strict=True) if c in ids}


def of_units(scenario: Scenario, tasks: int) -> Tensor:
    """Return the class that an output unit stands for in a row of each of the first tasks, (tasks, units)."""
    here = scenario.to(torch.device("cpu"))
    table = torch.zeros(tasks, scenario.width, dtype=torch.long)
    for members in here.groups(tasks):
        for task in members:
            for other in (*members, task):  # its own classes last: if tasks share a unit, a row means its own
                table[task, here.units(other)] = numbers(here, other)
    return table.to(scenario.device)


def weights(batch: Batch, table: Tensor, n: int) -> Tensor:
    """Return the targets of rows as class probabilities, (rows, n), given ``of_units``."""
    return batch.target.new_zeros(len(batch), n).scatter_add_(1, table[batch.task], batch.target)
