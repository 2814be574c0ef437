"""Labels, classes and units: every target maps back to its label, and no unit ever changes its meaning."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relive._util.errors import InputError
from relive.classifier.bookkeeping import Bookkeeping, NewTask
from relive.classifier.lessons import Lesson

NONE = np.array([], dtype=np.int64)
tasks_of_labels = st.lists(st.lists(st.integers(-3, 9), min_size=1, max_size=8), min_size=1, max_size=5)


def lesson_of(task: NewTask) -> Lesson:
    return Lesson(task.name, task.classes, task.counts, 1, 0.0, "", "", {})


@given(st.sampled_from(["task", "domain", "class"]), tasks_of_labels, st.lists(st.integers(-3, 30), max_size=6))
def test_targets_lead_back_to_labels(scenario: str, tasks: list[list[int]], declared: list[int]) -> None:
    books, met = Bookkeeping(scenario, NONE, NONE), []
    meaning: dict[tuple[int, int], int] = {}  # of each unit; in Task-IL every task has its own units
    for k, labels in enumerate(tasks):
        y = np.array(labels)
        books = books.with_labels(np.unique(y), np.unique(np.array(declared, dtype=np.int64)) if k == 0 else NONE)
        met += [label for label in sorted(set(labels)) if label not in met]
        task = books.new_task(y, None)
        assert books.labels.tolist() == met
        assert books.classes.tolist() == sorted({*met, *declared})
        assert [met[task.classes[t]] for t in task.target] == labels
        assert task.names == tuple(str(met[c]) for c in task.classes)
        assert dict(zip(task.names, task.counts, strict=True)) == {n: labels.count(int(n)) for n in task.names}
        whole = books.scenario_with(task.classes)
        books = books.with_lesson(lesson_of(task), task.classes)
        for j, lesson in enumerate(books.lessons):
            for unit, c in zip(whole.units(j).tolist(), lesson.classes, strict=True):
                key = (j if scenario == "task" else 0), unit
                assert meaning.setdefault(key, met[c]) == met[c]
        unmet = set(declared) - set(met)
        n_units = sum(len(lesson.classes) for lesson in books.lessons) if scenario == "task" else len(met)
        assert whole.n_units == n_units + len(unmet)


def test_nothing_is_changed_in_place() -> None:
    first = Bookkeeping("class", NONE, NONE)
    second = first.with_labels(np.array([3, 1]), np.array([7]))
    task = second.new_task(np.array([1, 3]), "a")
    third = second.with_lesson(lesson_of(task), task.classes)
    assert (first.labels.tolist(), second.labels.tolist(), third.labels.tolist()) == ([], [3, 1], [3, 1])
    assert (len(second.lessons), len(third.lessons)) == (0, 1)


@pytest.mark.parametrize(
    ("task", "name"), [(None, 2), ("b", "b"), (np.int64(7), 7), (np.str_("c"), "c"), ("a", None), (0, None)]
)
def test_names_of_tasks_in_task_il(task: Any, name: Any) -> None:
    books = Bookkeeping("task", NONE, NONE).with_labels(np.array([0]), NONE)
    for known in ("a", 0):
        task_of_books = books.new_task(np.array([0]), known)
        books = books.with_lesson(lesson_of(task_of_books), task_of_books.classes)
    if name is None:
        with pytest.raises(InputError, match="was already learned"):
            books.name_for(task)
    else:
        assert (books.name_for(task), type(books.name_for(task))) == (name, type(name))
