"""Changes to learned classes: forget, rename, merge. Functions from books to books."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from relive._util.errors import InputError, unknown
from relive.classifier.bookkeeping import GONE, Array, Bookkeeping
from relive.classifier.labels import joined, kind_of, label_array
from relive.classifier.lessons import Change, Lesson
from relive.core.scenarios import SCENARIOS


def forgotten(books: Bookkeeping, labels: Sequence[Any]) -> Bookkeeping:
    """Return books without these labels: their classes lose their label, and no lesson counts their samples."""
    positions = _positions(books, labels)
    if len(positions) == len(books.labels):
        raise InputError(
            f"a model needs at least one class, and {_listed(books, positions)} would remove the last: start a "
            "new model instead"
        )
    if SCENARIOS[books.scenario].needs_task:
        _check_tasks(books, positions)
    left = [p for p in range(len(books.labels)) if p not in positions]
    moved = {p: i for i, p in enumerate(left)}
    gone = {books.labels[p].item() for p in positions}
    return replace(
        books,
        labels=books.labels[left],
        declared=books.declared[[label not in gone for label in books.declared.tolist()]],
        lessons=tuple(_relabelled(lesson, moved) for lesson in books.lessons),
        meaning=tuple(moved.get(p, GONE) for p in books.meaning),
        changes=(*books.changes, _change(books, "forget", positions, None)),
    )


def renamed(books: Bookkeeping, old: Any, new: Any) -> Bookkeeping:
    """Return books in which a class has another name."""
    positions = _positions(books, [old])
    name = _new_name(books, new, positions)
    if name[0] == books.labels[positions[0]]:
        raise InputError(f"class {name[0].item()!r} already has that name")
    return _with_name(books, positions[0], name, _change(books, "rename", positions, name.item()))


def merged(books: Bookkeeping, labels: Sequence[Any], into: Any) -> Bookkeeping:
    """Return books in which several classes share one label, that of the oldest of them, renamed."""
    positions = _positions(books, labels)
    if len(positions) < 2:
        raise InputError(f"merge needs at least two different classes, but got {_listed(books, positions)}")
    name = _new_name(books, into, positions)
    change = _change(books, "merge", positions, name.item())
    target, others = min(positions), set(positions) - {min(positions)}
    left = [p for p in range(len(books.labels)) if p not in others]
    moved = {p: i for i, p in enumerate(left)} | dict.fromkeys(others, left.index(target))
    old = {books.labels[p].item() for p in others}
    books = replace(
        books,
        labels=books.labels[left],
        declared=books.declared[[label not in old for label in books.declared.tolist()]],
        lessons=tuple(_relabelled(lesson, moved) for lesson in books.lessons),
        meaning=tuple(moved.get(p, GONE) for p in books.meaning),
    )
    return _with_name(books, moved[target], name, change)


def classes_of(books: Bookkeeping, label: Any) -> list[int]:
    """Return the classes that have a label, the oldest first."""
    position = _positions(books, [label])[0]
    return [c for c, p in enumerate(books.meaning) if p == position]


def _positions(books: Bookkeeping, labels: Sequence[Any]) -> list[int]:
    """Return the positions of these labels, each once, in the order given."""
    if not len(labels):
        raise InputError("no class given: name at least one")
    given, known = label_array(list(labels)), books.labels.tolist()
    if kind_of(given) != kind_of(books.labels):
        raise InputError(
            f"{given[0].item()!r} is one of {kind_of(given)}, but this model's labels are "
            f"{kind_of(books.labels)} ({known[0]!r}): name a class the way it was learned"
        )
    for label in given.tolist():
        if label not in known and label in books.declared.tolist():
            raise InputError(f"class {label!r} was declared but never learned: there is nothing to change")
        if label not in known:
            quoted = [f"{name!r}" if " " in str(name) else str(name) for name in known]
            raise unknown("class", str(label), quoted)
    return list(dict.fromkeys(known.index(label) for label in given.tolist()))


def _new_name(books: Bookkeeping, name: Any, positions: list[int]) -> Array:
    """Return a new label, (1,), of the right type, which no class other than these has."""
    given = label_array([name])
    joined(books.labels, given)  # refuses labels of another kind
    taken = set(books.classes.tolist()) - {books.labels[p].item() for p in positions}
    if given[0].item() in taken:
        hint = "" if given[0].item() not in books.labels.tolist() else " (relive merge makes one class of two)"
        raise InputError(f"there is already a class {given[0].item()!r}{hint}: choose another name")
    return given


def _with_name(books: Bookkeeping, position: int, name: Array, change: Change) -> Bookkeeping:
    """Return books in which the label at a position is replaced."""
    old = books.labels[position].item()

    def with_name(labels: Array, chosen: Array) -> Array:
        both = joined(labels, name)[: len(labels)].copy() if len(labels) else labels
        both[chosen] = name[0]
        return both

    labels = with_name(books.labels, np.arange(len(books.labels)) == position)
    declared = with_name(books.declared, np.array([label == old for label in books.declared.tolist()], dtype=bool))
    return replace(books, labels=labels, declared=declared, changes=(*books.changes, change))


def _relabelled(lesson: Lesson, moved: dict[int, int]) -> Lesson:
    """Return a lesson with its labels at new positions: counts of merged labels are added, others dropped.

    If something in it was forgotten, the lesson loses its digest, which no longer describes its data.
    """
    counts: dict[int, int] = {}
    for p, count in zip(lesson.classes, lesson.counts, strict=True):
        if p in moved:
            counts[moved[p]] = counts.get(moved[p], 0) + count
    lost = any(count and p not in moved for p, count in zip(lesson.classes, lesson.counts, strict=True))
    return replace(
        lesson,
        classes=tuple(counts),
        counts=tuple(counts.values()),
        tested=_moved(lesson.tested, moved),
        digest="" if lost else lesson.digest,
    )


def _moved(pairs: dict[int, tuple[int, int]], moved: dict[int, int]) -> dict[int, tuple[int, int]]:
    """Return pairs of counts by position at the labels' new positions."""
    found: dict[int, tuple[int, int]] = {}
    for p, (n, right) in pairs.items():
        if p in moved:
            before = found.get(moved[p], (0, 0))
            found[moved[p]] = before[0] + n, before[1] + right
    return found


def _check_tasks(books: Bookkeeping, positions: list[int]) -> None:
    for lesson in books.lessons:
        if lesson.classes and set(lesson.classes) <= set(positions):
            raise InputError(
                f"task {lesson.name!r} would have no class left, and in Task-IL a task needs at least one: "
                "start a new model without it"
            )


def _change(books: Bookkeeping, what: str, positions: list[int], into: Any) -> Change:
    labels = tuple(books.labels[p].item() for p in positions)
    return Change(what, labels, into, datetime.now(UTC).isoformat(timespec="seconds"))


def _listed(books: Bookkeeping, positions: list[int]) -> str:
    return ", ".join(repr(books.labels[p].item()) for p in positions)
