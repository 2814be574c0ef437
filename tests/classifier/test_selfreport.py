"""What is reported about each class, from lessons and portraits, and what is warned about."""

from __future__ import annotations

import numpy as np

from relive.classifier.lessons import Lesson
from relive.classifier.portraits import Portrait
from relive.classifier.selfreport import memories, warnings_of

NOTHING = np.zeros(1, np.float32)


def lesson(name: str, counts: dict[int, int], tested: dict[int, tuple[int, int]]) -> Lesson:
    return Lesson(name, tuple(counts), tuple(counts.values()), 1, 0.0, "", "", tested)


def portrait(then: float, now: float) -> Portrait:
    return Portrait(0, 0, NOTHING, NOTHING, NOTHING[None], then, now)


def test_lessons_and_portraits_make_an_account() -> None:
    lessons = [
        lesson("first", {0: 5, 1: 6}, {0: (10, 9), 1: (4, 1)}),
        lesson("second", {2: 7}, {}),
        lesson("third", {1: 3}, {1: (4, 4)}),
    ]
    old, again, new = memories(["a", "b", "c"], lessons, {0: 6, 1: 4}, {0: portrait(0.8, 0.6), 1: portrait(0.5, 0.7)})
    assert (old.tasks, old.n_samples, old.tested, old.replayed) == (("first",), 5, 0.9, 0.6)
    assert (round(old.kept or 0, 6), round(old.lost or 0, 6)) == (0.75, 20.0)
    assert (again.tasks, again.n_samples, again.tested) == (("first", "third"), 9, 1.0)
    assert (again.kept, again.lost) == (1.0, 0.0), "nothing is more than kept"
    assert (new.tested, new.kept, new.lost, new.replayed) == (None, None, None, 0.0)


def test_what_is_not_replayed_or_has_faded_is_warned_of() -> None:
    lessons = [lesson("first", {0: 5, 1: 6, 2: 7}, {})]
    painted = {0: portrait(0.9, 0.82), 1: portrait(1.0, 0.5)}
    missed, faded = warnings_of(memories(["a", "b", "c"], lessons, {0: 500, 1: 500}, painted))
    assert missed.startswith("c missing from replay")
    assert "b (by 50)" in faded
    assert "a (" not in faded
    assert warnings_of(memories(["a"], lessons, {}, {0: portrait(0.0, 0.0)})) == []
