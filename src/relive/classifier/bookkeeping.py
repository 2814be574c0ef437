"""Which labels and tasks a model has seen, in which order, and hence which label each output unit stands for."""

from __future__ import annotations

import itertools
import numbers
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from relive._util.errors import InputError
from relive.classifier.labels import joined
from relive.classifier.lessons import Change, Lesson, Name
from relive.core.scenarios import SCENARIOS, Scenario, scenario_of

Array = npt.NDArray[Any]
GONE = -1  # where the label of a forgotten class would be
MOST = 100  # lessons that are kept one by one


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
        Its name.
    classes
        The possible answers.
    names
        The names of these classes.
    target
        (n,) the class of each sample: a position in ``classes``.
    labels
        The possible answers: positions in the labels seen so far.
    label
        (n,) the label of each sample: a position in the labels seen so far.
    """

    name: Name
    classes: tuple[int, ...]
    names: tuple[str, ...]
    target: Array
    labels: tuple[int, ...]
    label: Array

    @property
    def counts(self) -> tuple[int, ...]:
        """How many samples there are of each label."""
        return self.counts_of(np.ones(len(self.label), dtype=bool))

    def counts_of(self, chosen: Array) -> tuple[int, ...]:
        """Return how many of some samples, (n,) bool, there are of each label."""
        found = np.bincount(self.label[chosen], minlength=max(self.labels) + 1)
        return tuple(found[list(self.labels)].tolist())


def together(one: Lesson, other: Lesson) -> Lesson:
    """Return two lessons as one, without a digest, since nobody has their data together."""
    counts: dict[int, int] = {}
    for lesson in (one, other):
        for c, count in zip(lesson.classes, lesson.counts, strict=True):
            counts[c] = counts.get(c, 0) + count
    tested = dict(one.tested)
    for c, (n, right) in other.tested.items():
        tested[c] = tested.get(c, (0, 0))[0] + n, tested.get(c, (0, 0))[1] + right
    return replace(
        other,
        name=one.name,
        classes=tuple(counts),
        counts=tuple(counts.values()),
        iterations=one.iterations + other.iterations,
        seconds=one.seconds + other.seconds,
        digest="",
        tested=tested,
        batches=one.batches + other.batches,
    )


@dataclass(frozen=True, eq=False)
class Bookkeeping:
    """Labels and tasks so far; immutable.

    A class is a number, from 0, that the learner assigns to what it was taught under a new label. The number never
    changes: a label may be renamed, two classes may share a label, and a forgotten class has none.

    Attributes
    ----------
    scenario
        The scenario's name.
    labels
        In the order in which they were first seen.
    declared
        Labels that were announced, in that order; they may have been seen since.
    lessons
        What is remembered about each task.
    tasks
        The classes of each task.
    meaning
        The label of each class: a position in ``labels``, or ``GONE`` if it was forgotten.
    changes
        The changes to classes, oldest first.
    """

    scenario: str
    labels: Array
    declared: Array
    lessons: tuple[Lesson, ...] = ()
    tasks: tuple[tuple[int, ...], ...] = ()
    meaning: tuple[int, ...] = ()
    changes: tuple[Change, ...] = ()

    @property
    def classes(self) -> Array:
        """All labels, seen or declared, sorted; read-only."""
        return read_only(np.sort(joined(self.labels, self.declared)))

    def with_labels(self, labels: Array, declared: Array) -> Bookkeeping:
        """Return the books with the labels of a new task, and with announced labels."""
        known = joined(self.labels, labels)
        meaning = (*self.meaning, *range(len(self.labels), len(known)))
        return replace(self, labels=known, declared=joined(self.declared, declared), meaning=meaning)

    def with_lesson(self, lesson: Lesson, classes: tuple[int, ...]) -> Bookkeeping:
        """Return the books with one more task learned, given the task's classes."""
        return replace(self, lessons=(*self.lessons, lesson), tasks=(*self.tasks, classes))

    def new_task(self, y: Array, name: Any) -> NewTask:
        """Return the task formed by samples with these labels, all of them known here."""
        labels, position = np.unique(y, return_inverse=True)
        position_of = {label: p for p, label in enumerate(self.labels.tolist())}
        found = [position_of[label] for label in labels.tolist()]
        present = [self.meaning.index(p) for p in found]  # of two classes with one label, the older one
        shared = SCENARIOS[self.scenario].shares_units
        classes = list(range(len(self.meaning))) if shared else present
        target = np.array([classes.index(c) for c in present])[position]
        names = tuple(str(self.labels[self.meaning[c]]) if self.meaning[c] != GONE else "" for c in classes)
        answers = tuple(range(len(self.labels))) if shared else tuple(found)
        return NewTask(self.name_for(name), tuple(classes), names, target, answers, np.array(found)[position])

    def scenario_with(self, *new: tuple[int, ...]) -> Scenario:
        """Return the scenario of all tasks so far and a new one, with units for the declared classes after theirs."""
        tasks = [*self.tasks, *new]
        n, to_come = len(self.meaning), len(self.classes) - len(self.labels)
        reserved = tuple(range(0 if SCENARIOS[self.scenario].shares_units else n, n + to_come))
        gone = [c for c, position in enumerate(self.meaning) if position == GONE]
        return scenario_of(self.scenario, [*tasks, reserved] if to_come else tasks, gone)

    def gathered(self) -> Bookkeeping:
        """Return books with a limited number of lessons: the oldest adjacent unnamed ones are merged.

        Only for learners for which the division into tasks does not matter.
        """
        lessons, tasks = list(self.lessons), list(self.tasks)
        i = 0
        while len(lessons) > MOST and i + 1 < len(lessons):
            if isinstance(lessons[i].name, int) and isinstance(lessons[i + 1].name, int):
                lessons[i : i + 2] = [together(lessons[i], lessons[i + 1])]
                tasks[i : i + 2] = [tuple(dict.fromkeys((*tasks[i], *tasks[i + 1])))]
            else:
                i += 1
        return replace(self, lessons=tuple(lessons), tasks=tuple(tasks))

    def by_label(self, by_class: Mapping[int, tuple[int, ...]]) -> dict[int, tuple[int, ...]]:
        """Convert counts by class to counts by label position; classes that share a label are added up."""
        found: dict[int, tuple[int, ...]] = {}
        for c, counts in by_class.items():
            position = self.meaning[c]
            before = found.get(position, (0,) * len(counts))
            found[position] = tuple(a + b for a, b in zip(before, counts, strict=True))
        return found

    def name_for(self, task: Any) -> Name:
        """Return the name of a new task: the user's, or the next free number."""
        taken = [lesson.name for lesson in self.lessons]
        if task is None:
            learned = sum(lesson.batches for lesson in self.lessons)
            return next(k for k in itertools.count(learned) if k not in taken)
        name = int(task) if isinstance(task, numbers.Integral) and not isinstance(task, bool) else task
        if not isinstance(name, str | int) or isinstance(name, bool):
            raise InputError(f"task = {task!r}: a task's name must be a string or a whole number")
        if isinstance(name, str) and not name.strip():
            raise InputError(f"task = {task!r}: a task's name cannot be empty; leave it out to use a number")
        if SCENARIOS[self.scenario].needs_task and name in taken:
            raise InputError(
                f"task {name!r} was already learned, and in Task-IL each task is learned once: give it a new name"
            )
        return str(name) if isinstance(name, str) else name

    def rows_by_task(self, task: Any, n: int) -> Iterator[tuple[int, Array]]:
        """Yield a task's number and which of n samples belong to it; ``task`` is as the user gives it."""
        scenario = SCENARIOS[self.scenario]
        if not scenario.needs_task:
            if task is not None:
                raise InputError(f"task = {task!r}: in {scenario.title} the task is not given; leave it out")
            yield len(self.tasks) - 1, np.arange(n)
            return
        number_of = {lesson.name: k for k, lesson in enumerate(self.lessons)}
        known = ", ".join(map(repr, number_of))
        if task is None:
            raise InputError(f"{scenario.title} needs the task: pass task=, one of {known}, or one per sample")
        given = task.tolist() if isinstance(task, np.generic | np.ndarray) else task
        names: list[Any] = [given] * n if isinstance(given, str | numbers.Integral) else list(given)
        if len(names) != n:
            raise InputError(f"task has {len(names)} names for {n} samples: give a single name, or one per sample")
        for name in dict.fromkeys(names):
            if name not in number_of:
                raise InputError(f"task {name!r} was never learned; known tasks: {known}")
            yield number_of[name], np.array([i for i, other in enumerate(names) if other == name])
