"""The benchmark on real data: its learners are what they are called, its tasks are fair, its tables are right."""

from __future__ import annotations

import doctest
import importlib
import itertools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas
import pytest
from benchmarks.own_data import courses, results, tables
from benchmarks.own_data.courses import COURSES, EMBEDDING, PICTURES, TABLE, Course, lessons
from benchmarks.own_data.figures import figure
from benchmarks.own_data.learner import Learner, Scaled, Setting
from benchmarks.own_data.learners import LEARNERS, RIVER, Entry
from benchmarks.own_data.report import cells, page, shared, summaries
from benchmarks.own_data.results import Run, limited, missing, read, run_all
from benchmarks.own_data.samples import Array, Samples, checked, load
from benchmarks.own_data.sums import Gaussians, NearestMean, RandomConvolutions, RandomFeatures, Ridge
from matplotlib.text import Annotation, Text
from scipy.stats import multivariate_normal
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.naive_bayes import GaussianNB

from relive import ContinualClassifier
from relive.classifier.choice import choose

SETTING = Setting(seed=3, classes=np.arange(3), shape=(4, 5))
MAKERS: dict[str, Callable[[], Learner]] = {
    "nearest mean": NearestMean,
    "naive Bayes": lambda: Gaussians(diagonal=True, shrinkage=0.1),
    "LDA": lambda: Gaussians(shared=True, shrinkage=0.1),
    "Gaussians": lambda: Gaussians(shrinkage=0.1),
    "features": lambda: Ridge(RandomFeatures(SETTING, 30), 0.1),
    "convolutions": lambda: Ridge(RandomConvolutions(SETTING, 5, 2), 0.1),
}


def blobs(n: int = 40, features: int = 20, classes: int = 3) -> tuple[Array, Array]:
    """Return classes that overlap, of unequal sizes and shapes."""
    random = np.random.default_rng(0)
    sizes = [n + 7 * c for c in range(classes)]
    parts = [random.normal(c * 0.4, 1 + 0.3 * c, (size, features)) for c, size in enumerate(sizes)]
    X = np.concatenate(parts) @ random.normal(size=(features, features)) / 4
    return X, np.repeat(np.arange(classes), sizes)


@pytest.mark.parametrize("name", MAKERS)
def test_sums_know_no_order(name: str) -> None:
    X, y = blobs()
    at_once, in_tasks = MAKERS[name](), MAKERS[name]()
    at_once.learn(X, y)
    order = np.random.default_rng(1).permutation(len(y))
    for rows in (order[y[order] == 2][:5], order[y[order] == 0], order[y[order] == 2][5:], order[y[order] == 1]):
        in_tasks.learn(X[rows], y[rows])
        in_tasks.predict(X[:2])  # being asked in between changes nothing
    questions, _ = blobs(n=50)
    np.testing.assert_array_equal(at_once.predict(questions), in_tasks.predict(questions))
    assert at_once.numbers_kept == in_tasks.numbers_kept


def test_a_shared_covariance_is_linear_discriminant_analysis() -> None:
    X, y = blobs()
    ours = Gaussians(shared=True, shrinkage=0.2)
    ours.learn(X, y)
    theirs = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.2).fit(X, y)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


def test_independent_features_are_naive_bayes() -> None:
    X, y = blobs()
    ours = Gaussians(diagonal=True, shrinkage=0)
    ours.learn(X, y)
    np.testing.assert_array_equal(ours.predict(X), GaussianNB(var_smoothing=0).fit(X, y).predict(X))


def test_a_gaussian_per_class_is_bayes_rule() -> None:
    X, y = blobs()
    ours = Gaussians(shrinkage=0.2)
    ours.learn(X, y)
    scores = []
    for c in range(3):
        S = np.cov(X[y == c].T, bias=True)
        shrunken = 0.8 * S + 0.2 * np.trace(S) / len(S) * np.eye(len(S))
        scores.append(np.log((y == c).mean()) + multivariate_normal(X[y == c].mean(0), shrunken).logpdf(X))
    np.testing.assert_array_equal(ours.predict(X), np.argmax(scores, 0))


def test_ridge_from_sums_is_ridge_on_samples() -> None:
    X, y = blobs()
    features = RandomFeatures(SETTING, 30)
    ours = Ridge(features, 0.5)
    ours.learn(X, y)
    ours.predict(X[:1])
    phi = features(X)
    stacked = np.vstack([phi, np.sqrt(0.5) * np.eye(phi.shape[1])])  # |φ W − Y|² + λ |W|² as one least-squares problem
    targets = np.vstack([np.eye(3)[y], np.zeros((phi.shape[1], 3))])
    assert ours.W is not None
    np.testing.assert_allclose(ours.W, np.linalg.lstsq(stacked, targets)[0], atol=1e-8)


def test_convolutions_are_filters_over_the_picture() -> None:
    features = RandomConvolutions(Setting(0, np.arange(2), (4, 4)), n=2, parts=2)
    picture = np.random.default_rng(0).random((4, 4))
    padded, slow = np.pad(picture, 1), np.empty((2, 4, 4))
    for k in range(2):
        weights, bias = features.filters[k, 0].numpy(), float(features.bias[k])
        for i in range(4):
            for j in range(4):
                slow[k, i, j] = max((padded[i : i + 3, j : j + 3] * weights).sum() + bias, 0)
    pooled = slow.reshape(2, 2, 2, 2, 2).mean((2, 4)).ravel()
    np.testing.assert_allclose(features(picture.reshape(1, -1))[0], [*pooled, 1], atol=1e-6)


def test_inputs_are_scaled_as_the_classifier_scales_them() -> None:
    X, y = blobs()
    X[:, 3] = 5.0  # does not vary
    later = 40 * X + 100
    model = ContinualClassifier("none", iterations=1, hidden=3).fit(X, y)
    seen: list[Array] = []

    class Spy(Learner):
        def learn(self, X: Array, y: Array) -> None:
            seen.append(X)

        def predict(self, X: Array) -> Array:
            return X

        @property
        def numbers_kept(self) -> int:
            return 0

    learner = Scaled(Spy())
    learner.learn(X, y)
    np.testing.assert_allclose(seen[0], model.features_.inputs(X).numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(learner.predict(later), model.features_.inputs(later).numpy(), rtol=1e-5, atol=1e-6)


# ---- tasks -----------------------------------------------------------------------------------------------------------


def numbered(n: int = 60, classes: int = 5) -> Samples:
    """Return samples that are their own number."""
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


# ---- data sets -------------------------------------------------------------------------------------------------------


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


# ---- learners, runs and tables ---------------------------------------------------------------------------------------


def quick(model: Any) -> Any:
    return lambda *arguments, **parameters: model(
        *arguments, **(parameters | {"iterations": 3, "hidden": 5, "latent": 2})
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", LEARNERS)
def test_every_learner_learns_and_says_what_it_keeps(name: str) -> None:
    if LEARNERS[name].family == RIVER:
        pytest.importorskip("river", reason="River is of the extra 'bench'")
    X, y = blobs(n=30)
    with (
        patch("benchmarks.own_data.own.ContinualClassifier", quick(ContinualClassifier)),
        patch("benchmarks.own_data.whole.ContinualClassifier", quick(ContinualClassifier)),
    ):
        learner = LEARNERS[name].make(SETTING)
        for c in (2, 0, 1):
            learner.learn(X[y == c], y[y == c])
        answer = learner.predict(X)
    assert answer.shape == y.shape
    assert set(answer.tolist()) <= {0, 1, 2}
    kept_data = learner.numbers_kept >= X.size
    assert learner.numbers_kept > 0
    assert kept_data or not LEARNERS[name].keeps_data


class Broken(Learner):
    """Can do nothing."""

    def __init__(self, setting: Setting) -> None:
        pass

    def learn(self, X: Array, y: Array) -> None:
        raise ArithmeticError("no")

    def predict(self, X: Array) -> Array:
        return X

    @property
    def numbers_kept(self) -> int:
        return 0


def test_runs_are_stored_and_not_done_twice(tmp_path: Path) -> None:
    Samples(*blobs()).save(tmp_path / "iris.npz")
    output = tmp_path / "runs.jsonl"
    keys = missing([], ["iris"], ["nearest class mean", "streaming LDA"], seeds=2)
    assert len(keys) == 4
    first = list(run_all(keys[:3], output, tmp_path, jobs=1))
    assert read(output) == first
    assert missing(read(output), ["iris"], ["nearest class mean", "streaming LDA"], seeds=2) == keys[3:]
    run = first[0]
    assert isinstance(run, Run)
    assert 1 / 3 < run.accuracy <= 1
    assert run.numbers == 3 * 21 + 2 * 20  # three sums and counts; what inputs are scaled by


def test_a_run_that_fails_is_told_and_not_stored(tmp_path: Path) -> None:
    Samples(*blobs()).save(tmp_path / "iris.npz")
    with patch.dict(LEARNERS, {"broken": Entry(Broken, "nobody")}):
        said = list(run_all([("iris", "broken", 0)], tmp_path / "runs.jsonl", tmp_path, jobs=1))
    assert said == ["('iris', 'broken', 0): ArithmeticError: no"]
    assert not read(tmp_path / "runs.jsonl")


def test_accuracy_and_macro_accuracy_differ_where_classes_do(tmp_path: Path) -> None:
    X = np.array([[0.0]] * 90 + [[1.0]] * 10)
    y = np.array([0] * 90 + [1] * 10)
    Samples(X, y, (X, y)).save(tmp_path / "iris.npz")

    class Zero(Broken):
        def learn(self, X: Array, y: Array) -> None:
            pass

        def predict(self, X: Array) -> Array:
            return np.zeros(len(X), dtype=int)

    run = results.measure(("iris", "zero", 0), tmp_path, entry=Entry(Zero, "nobody"))
    assert (run.accuracy, run.macro) == (0.9, 0.5)


def test_convolutions_are_for_pictures_only() -> None:
    assert not missing([], ["iris"], ["random convolutions + ridge"], seeds=1)
    assert missing([], ["digits"], ["random convolutions + ridge"], seeds=1)


def fake(
    course: str, learner: str, seed: int, accuracy: float, data: str = "d", seconds: float = 2.0, numbers: int = 100
) -> Run:
    return Run(course, learner, seed, accuracy, accuracy / 2, seconds, numbers, data=data, code="c")


FAKES = [
    fake("iris", "rtf", 0, 0.80),
    fake("iris", "rtf", 1, 0.90),
    fake("iris", "streaming LDA", 0, 0.95, seconds=0.5),
    fake("wine", "rtf", 0, 0.70, numbers=10_000),
    fake("wine", "streaming LDA", 0, 0.60, seconds=1.0),
    fake("wine", "everything at once: SVC", 0, 0.99),
]


def test_a_summary_compares_with_the_best_that_keeps_no_data() -> None:
    found = summaries(cells(FAKES))
    assert found["rtf"].behind == pytest.approx(15)  # on the seed that both have
    assert found["rtf"].where == "iris"
    assert found["rtf"].rank == 1.5
    assert found["rtf"].accuracy == pytest.approx(77.5)
    assert found["rtf"].numbers == pytest.approx((100 * 100 * 10_000) ** (1 / 3), rel=1e-3)
    assert found["streaming LDA"].ratio == pytest.approx(0.375)  # between 1/4 and 1/2 of rtf's time
    assert (found["everything at once: SVC"].rank, found["everything at once: SVC"].courses) == (1, 1)
    assert found["everything at once: SVC"].behind == pytest.approx(-29)


def test_means_are_over_courses_that_all_took() -> None:
    more = [*FAKES, fake("zoo", "streaming LDA", 0, 0.0)]  # rtf did not take it
    found = summaries(cells(more))
    assert found["streaming LDA"].accuracy == pytest.approx(77.5)
    assert math.isnan(found["everything at once: SVC"].accuracy)  # it did not take iris
    assert set(shared(cells(more))) == {"iris", "wine"}
    alone = [*more, fake("zoo", "rtf", 0, 0.5), fake("zoo", "ewc", 0, 0.5), fake("dna", "rtf", 0, 0.5)]
    assert set(shared(cells(alone))) == {"iris", "wine", "zoo"}  # nobody else took dna
    assert "| everything at once: SVC † (keeps data) | everything at once | 1 | – |" in page(more)


def test_the_page_has_every_cell_and_marks_learners_that_got_less() -> None:
    text = page(FAKES)
    assert "| rtf | 85.0 ± 5.0 [2] | **70.0 [1]** |" in text
    assert "| everything at once: SVC † | – | 99.0 [1] |" in text
    assert "| rtf | 85.0 ± 1.6 |" in page([*FAKES, *(fake("iris", "rtf", seed, 0.85) for seed in (2, 3, 4))])


def test_the_page_tells_where_a_method_is_behind() -> None:
    text = page(FAKES)
    assert "| iris | 80.0 [1] | 95.0 [1] | streaming LDA | 15.0 |" in text
    assert "| wine | 70.0" not in text  # it is the best there
    close = [fake("iris", "rtf", 0, 0.80), fake("iris", "streaming LDA", 0, 0.809)]
    assert "`rtf` is nowhere more than 1 point behind" in page(close)


def test_different_data_are_not_mixed() -> None:
    with pytest.raises(ValueError, match="iris was run on different data"):
        cells([*FAKES, fake("iris", "rtf", 2, 0.9, data="other")])


def test_the_figure_names_every_learner_where_no_name_hides_another() -> None:
    names = ("naive Bayes", "nearest class mean", "GaussianNB", "Perceptron", "MLPClassifier", "si", "ewc")
    crowd = [fake(course, name, 0, 0.775) for course in ("iris", "wine") for name in names]  # where rtf is
    axis = figure(cells([*FAKES, *crowd]), "seconds", "time").axes[0]
    labels = [label for label in axis.texts if isinstance(label, Annotation)]
    assert {label.get_text() for label in labels} == {*names, "rtf", "streaming LDA"}
    boxes = [Text.get_window_extent(label) for label in labels]
    assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))


@pytest.mark.parametrize("course", COURSES)
def test_auto_takes_the_same_method_on_every_course(course: str) -> None:
    given = {"method": "auto", "scenario": "class", "encoder": None, "shape": (8, 8)}
    shape = given["shape"] if COURSES[course].kind == PICTURES else None
    assert choose(given | {"shape": shape}, 64, "gaussian").method == "discriminant"


MODULES = ("figures", "learner", "report", "samples", "texts")


@pytest.mark.parametrize("module", MODULES)
def test_its_examples_are_true(module: str) -> None:
    outcome = doctest.testmod(importlib.import_module(f"benchmarks.own_data.{module}"))
    assert outcome.attempted
    assert not outcome.failed
