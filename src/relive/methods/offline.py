"""Offline: train on the data of all tasks so far. It stores every input, and is the upper bound.

The model is trained further with each task. If all tasks share one softmax, rows are drawn from all of them together;
in Task-IL every task gets an equal share of rows, each through its own head.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from relive.core.method import Method
from relive.core.sources import Source, Together
from relive.data.tasks import Task
from relive.methods.catalogue import METHODS


class Offline(Method):
    """Joint training on everything so far."""

    facts: ClassVar = METHODS["offline"]

    def source(self, stream: Source) -> Source:
        groups = stream.scenario.groups(len(stream.tasks))
        return Together(stream.scenario, stream.tasks, stream.size, stream.rng, groups)

    def stored_numbers(self, tasks: Sequence[Task]) -> int:
        return sum(len(task.train) * task.n_inputs for task in tasks)
