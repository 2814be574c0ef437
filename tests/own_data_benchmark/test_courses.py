"""The benchmark on real data: its tasks are fair, its data sets are those prepared."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas
import pytest
from benchmarks.own_data import courses, tables
from benchmarks.own_data.courses import COURSES, EMBEDDING, PICTURES, TABLE, Course, lessons
from benchmarks.own_data.results import limited
from benchmarks.own_data.samples import Array, Samples, checked, load

from tests.own_data_benchmark.samples import blobs


def numbered(n: int = 60, classes: int = 5) -> Samples:
    """Return samples whose only feature is their index."""
    return Samples(np.arange(n * classes, dtype=float)[:, None], np.repeat(np.arange(classes), n))


def rows(tasks: list[tuple[Array, Array]]) -> list[float]:
    return [float(x) for X, _ in tasks for x in X[:, 0]]


@pytest.mark.parametrize("validation", [False, True])
@pytest.mark.parametrize("again", [False, True])
def test_every_sample_is_learned_once_or_asked(again: bool, validation: bool) -> None:
    samples, course = numbered(100), Course("x", 2, again=again)
    taught = lessons(samples, course, seed=1, validation=validation)
    learned, asked = rows(taught.tasks), taught.X_test[:, 0].tolist()
    tested = lessons(samples, course, seed=1).X_test[:, 0].tolist()
    put_aside = tested if validation else []
    assert sorted([*learned, *asked, *put_aside]) == samples.X[:, 0].tolist()
    assert np.bincount(taught.y_test).tolist() == ([21] * 5 if validation else [30] * 5)  # 30 % of each class
    assert all(len(np.unique(y)) <= 2 for _, y in taught.tasks)
    assert all((X[:, 0] // 100 == y).all() for X, y in taught.tasks)


@pytest.mark.parametrize("validation", [False, True])
def test_nothing_of_a_group_that_is_asked_about_was_learned(validation: bool) -> None:
    group = np.tile(np.arange(10), 30)  # ten pages, each with texts of every class
    samples = Samples(np.arange(300.0)[:, None], np.repeat(np.arange(5), 60), group=group)
    course = Course("x", 2, new_groups=True)
    taught = lessons(samples, course, seed=1, validation=validation)

    def groups(numbers: list[float]) -> set[int]:
        return set(group[np.array(numbers, dtype=int)].tolist())

    learned, asked = groups(rows(taught.tasks)), groups(taught.X_test[:, 0].tolist())
    tested = groups(lessons(samples, course, seed=1).X_test[:, 0].tolist())
    assert learned
    assert asked
    assert not learned & asked
    assert not validation or not tested & (learned | asked)


def test_classes_return_with_other_samples_and_in_other_company() -> None:
    tasks = lessons(numbered(), Course("x", 2, again=True), seed=1).tasks
    groups = [set(np.unique(y).tolist()) for _, y in tasks]
    assert len(groups) == 6
    assert [label for group in groups for label in group].count(0) == 2
    assert groups[:3] != groups[3:]


def test_the_seed_decides_the_order() -> None:
    orders = [[y[0] for _, y in lessons(numbered(), Course("x"), seed).tasks] for seed in range(4)]
    assert orders[0] == [y[0] for _, y in lessons(numbered(), Course("x"), 0).tasks]
    assert len({tuple(order) for order in orders}) > 1


def test_a_rare_class_is_rare_in_training_only() -> None:
    taught = lessons(numbered(), Course("x", 2, rare=True), seed=2)
    counts = np.bincount(np.concatenate([y for _, y in taught.tasks]))
    assert sorted(counts.tolist()) == [2, 42, 42, 42, 42]
    assert np.bincount(taught.y_test).tolist() == [18] * 5


def test_a_test_set_that_belongs_to_the_data_is_left_as_it_is() -> None:
    own = np.array([[7.5]]), np.array([0])
    taught = lessons(Samples(*blobs(features=1), own), Course("x"), seed=0)
    assert taught.X_test is own[0]
    assert sum(len(y) for _, y in taught.tasks) == len(blobs()[1])
    aside = lessons(Samples(*blobs(features=1), own), Course("x"), seed=0, validation=True)
    assert 7.5 not in aside.X_test


def test_slow_learners_get_the_same_share_of_each_class() -> None:
    few = limited(lessons(numbered(), Course("x", 2), seed=0), most=50, seed=0)
    assert np.bincount(np.concatenate([y for _, y in few.tasks])).tolist() == [10] * 5
    assert np.bincount(few.y_test).tolist() == [10] * 5


def test_levels_become_numbers_and_rows_that_miss_one_are_left_out() -> None:
    frame = pandas.DataFrame(
        {
            "id": ["a", "b", "c"],
            "size": pandas.Categorical(["10", "2", None]),
            "wet": pandas.array([True, False, True], "boolean"),
            "kind": ["z", "k", "z"],
        }
    )
    with patch.object(tables, "mlbench", lambda name: frame):
        samples = tables.numeric("any", "kind", ("id",))
    assert samples.X.tolist() == [[10, 1], [2, 0]]
    assert samples.y.tolist() == [1, 0]


def test_a_missing_level_has_all_zeros() -> None:
    frame = pandas.DataFrame({"kind": ["z", "k", "z"], "vote": pandas.Categorical(["y", None, "n"])})
    with patch.object(tables, "mlbench", lambda name: frame):
        samples = tables.one_hot("any", "kind")
    assert samples.X.tolist() == [[0, 1], [0, 0], [1, 0]]


def test_a_file_that_is_another_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "data.rda"
    with pytest.raises(FileNotFoundError, match="apt-get install it"):
        checked(path, "0" * 64, "apt-get install it")
    path.write_bytes(b"other")
    with pytest.raises(ValueError, match="has SHA-256"):
        checked(path, "0" * 64, "apt-get install it")


def test_a_prepared_data_set_comes_back_whole(tmp_path: Path) -> None:
    X, y = blobs()
    for samples in (Samples(X, y), Samples(X, y, (X[:2], y[:2]), (4, 5), y + 1, "made of")):
        samples.save(tmp_path / "x.npz")
        found = load(tmp_path / "x.npz")
        assert (found.digest, found.shape, found.test is None) == (
            samples.digest,
            samples.shape,
            samples.test is None,
        )
        np.testing.assert_array_equal(found.X, X)
        np.testing.assert_array_equal(found.group, samples.group)
    assert Samples(X, y).digest != Samples(X + 1, y).digest


def test_every_course_has_a_source_and_all_kinds_and_changes_are_there() -> None:
    assert {course.source for course in COURSES.values()} == set(courses.SOURCES)
    assert {course.kind for course in COURSES.values()} == {TABLE, PICTURES, EMBEDDING}
    assert any(course.rare for course in COURSES.values())
    assert any(course.again for course in COURSES.values())
