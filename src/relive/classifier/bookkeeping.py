"""Which labels and tasks a model has met, in which order, and so which class each output unit stands for."""

from __future__ import annotations

import itertools
import numbers
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from relive._util.errors import InputError
from relive.classifier.labels import joined
from relive.classifier.lessons import Lesson, Name
from relive.core.scenarios import SCENARIOS, Scenario, scenario_of

Array = npt.NDArray[Any]


def read_only(array: Array) -> Array:
    """Return an array that cannot be written to, of the same values."""
    view = array.view()
    view.flags.writeable = False
    return view


@dataclass(frozen=True)
class NewTask:
    """A task that is about to be learned.

    Attributes
    ----------
    name
        How it is called.
    classes
        What it may be answered with: positions in the labels met so far.
    names
        How people call these classes.
    target
        (n,) the class of each sample: a position in ``classes``.
    """

    name: Name
    classes: tuple[int, ...]
    names: tuple[str, ...]
    target: Array

    @property
    def counts(self) -> tuple[int, ...]:
        """How many samples there are of each class."""
        return tuple(np.bincount(self.target, minlength=len(self.classes)).tolist())


@dataclass(frozen=True, eq=False)
class Bookkeeping:
    """Labels and tasks so far. A class is a label's position in ``labels``; nothing here is changed in place.

    Attributes
    ----------
    scenario
        The scenario's name.
    labels
        (classes,) in the order in which they were met.
    declared
        Labels that were said to come, in the order in which that was said; they may have come meanwhile.
    lessons
        What is remembered about each task.
    """

    scenario: str
    labels: Array
    declared: Array
    lessons: tuple[Lesson, ...] = ()

    @property
    def classes(self) -> Array:
        """All labels, met or declared, sorted; to read only."""
        return read_only(np.sort(joined(self.labels, self.declared)))

    def with_labels(self, labels: Array, declared: Array) -> Bookkeeping:
        """Return the books with labels that a new task has, and labels that are now known to come."""
        return replace(self, labels=joined(self.labels, labels), declared=joined(self.declared, declared))

    def with_lesson(self, lesson: Lesson) -> Bookkeeping:
        """Return the books with one more task learned."""
        return replace(self, lessons=(*self.lessons, lesson))

    def new_task(self, y: Array, name: Any) -> NewTask:
        """Return the task that samples with these labels, all of them known here, are."""
        labels, position = np.unique(y, return_inverse=True)
        class_of = {label: c for c, label in enumerate(self.labels.tolist())}
        present = [class_of[label] for label in labels.tolist()]
        classes = list(range(len(self.labels))) if SCENARIOS[self.scenario].shares_units else present
        target = np.array([classes.index(c) for c in present])[position]
        return NewTask(self.name_for(name), tuple(classes), tuple(str(self.labels[c]) for c in classes), target)

    def scenario_with(self, *new: tuple[int, ...]) -> Scenario:
        """Return the scenario of all tasks so far and a new one, with units for the declared classes after theirs."""
        tasks = [*(lesson.classes for lesson in self.lessons), *new]
        n, of_all = len(self.labels), len(self.classes)
        reserved = tuple(range(0 if SCENARIOS[self.scenario].shares_units else n, of_all))
        return scenario_of(self.scenario, [*tasks, reserved] if of_all > n else tasks)

    def name_for(self, task: Any) -> Name:
        """Return how a new task is called: as the user says, or by the next free number."""
        taken = [lesson.name for lesson in self.lessons]
        if task is None:
            return next(k for k in itertools.count(len(taken)) if k not in taken)
        name = int(task) if isinstance(task, numbers.Integral) and not isinstance(task, bool) else task
        if not isinstance(name, str | int) or isinstance(name, bool):
            raise InputError(f"task = {task!r}: a task's name is a string or a whole number")
        if isinstance(name, str) and not name.strip():
            raise InputError(
                f"task = {task!r}: a task's name cannot be empty; leave it out to have a number for a name"
            )
        if SCENARIOS[self.scenario].needs_task and name in taken:
            raise InputError(
                f"task {name!r} was learned already, and in Task-IL a task is learned once: give it a name of its own"
            )
        return str(name) if isinstance(name, str) else name

    def rows_by_task(self, task: Any, n: int) -> Iterator[tuple[int, Array]]:
        """Yield a task's number and which of n samples are asked about it; ``task`` is as the user gives it."""
        scenario = SCENARIOS[self.scenario]
        if not scenario.needs_task:
            if task is not None:
                raise InputError(f"task = {task!r}: in {scenario.title} the task is not given, leave it out")
            yield len(self.lessons) - 1, np.arange(n)
            return
        number_of = {lesson.name: k for k, lesson in enumerate(self.lessons)}
        known = ", ".join(map(repr, number_of))
        if task is None:
            raise InputError(
                f"{scenario.title} needs to know the task: give task=, one of {known}, or one for each sample"
            )
        given = task.tolist() if isinstance(task, np.generic | np.ndarray | Tensor) else task
        names: list[Any] = [given] * n if isinstance(given, str | numbers.Integral) else list(given)
        if len(names) != n:
            raise InputError(f"task has {len(names)} names for {n} samples: give one name, or one for each sample")
        for name in dict.fromkeys(names):
            if name not in number_of:
                raise InputError(f"task {name!r} was never learned: known are {known}")
            yield number_of[name], np.array([i for i, other in enumerate(names) if other == name])
