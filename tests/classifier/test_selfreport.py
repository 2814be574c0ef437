"""What can be said of each class from the lessons alone."""

from __future__ import annotations

import pytest

from relive.classifier.lessons import Lesson
from relive.classifier.selfreport import memories


def lesson(name: str, counts: dict[int, int], agreement: dict[int, tuple[int, int]]) -> Lesson:
    return Lesson(name, tuple(counts), tuple(counts.values()), 1, 0.0, "", "", agreement)


def test_what_is_kept_is_the_product_of_what_each_task_left() -> None:
    lessons = [
        lesson("first", {0: 5, 1: 6}, {}),
        lesson("second", {2: 7}, {0: (10, 8), 1: (4, 4)}),
        lesson("third", {1: 3}, {0: (20, 10), 2: (5, 4)}),
    ]
    old, again, dreamless = memories(["a", "b", "c"], lessons, {0: 0.6, 1: 0.4})
    assert old.agreement == 0.5
    assert old.kept == pytest.approx(0.8 * 0.5)
    assert (old.tasks, old.n_samples, old.dreamt) == (("first",), 5, 0.6)
    assert (again.tasks, again.n_samples) == (("first", "third"), 9)
    assert (again.agreement, again.kept) == (None, None), "nothing came after it was last taught"
    assert (dreamless.agreement, dreamless.kept, dreamless.dreamt) == (0.8, 0.8, 0.0)


def test_what_was_not_replayed_once_is_not_known() -> None:
    lessons = [lesson("a", {0: 1}, {}), lesson("b", {1: 1}, {}), lesson("c", {2: 1}, {0: (2, 1)})]
    first, second, _ = memories([0, 1, 2], lessons, {})
    assert (first.agreement, first.kept, first.dreamt) == (0.5, None, None)
    assert (second.agreement, second.kept) == (None, None)
