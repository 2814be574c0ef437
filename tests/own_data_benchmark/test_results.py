"""The benchmark on real data: runs are stored once, and its tables and figures are right."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from benchmarks.own_data import results
from benchmarks.own_data.figures import figure
from benchmarks.own_data.learner import Learner, Setting
from benchmarks.own_data.learners import LEARNERS, Entry
from benchmarks.own_data.report import cells, page, shared, summaries
from benchmarks.own_data.results import Run, missing, read, run_all
from benchmarks.own_data.samples import Array, Samples
from matplotlib.text import Annotation, Text

from tests.own_data_benchmark.samples import blobs


class Broken(Learner):
    """Always fails."""

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
    assert run.numbers == 3 * 21 + 2 * 20  # three sums and counts; the means and scales of the inputs


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
    assert found["rtf"].behind == pytest.approx(15)  # on their common seed
    assert found["rtf"].where == "iris"
    assert found["rtf"].rank == 1.5
    assert found["rtf"].accuracy == pytest.approx(77.5)
    assert found["rtf"].numbers == pytest.approx((100 * 100 * 10_000) ** (1 / 3), rel=1e-3)
    assert found["streaming LDA"].ratio == pytest.approx(0.375)  # between 1/4 and 1/2 of rtf's time
    assert (found["everything at once: SVC"].rank, found["everything at once: SVC"].courses) == (1, 1)
    assert found["everything at once: SVC"].behind == pytest.approx(-29)


def test_means_are_over_courses_that_all_took() -> None:
    more = [*FAKES, fake("zoo", "streaming LDA", 0, 0.0)]  # without rtf
    found = summaries(cells(more))
    assert found["streaming LDA"].accuracy == pytest.approx(77.5)
    assert math.isnan(found["everything at once: SVC"].accuracy)  # it did not run on iris
    assert set(shared(cells(more))) == {"iris", "wine"}
    alone = [*more, fake("zoo", "rtf", 0, 0.5), fake("zoo", "ewc", 0, 0.5), fake("dna", "rtf", 0, 0.5)]
    assert set(shared(cells(alone))) == {"iris", "wine", "zoo"}  # no other learner ran on dna
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
    crowd = [fake(course, name, 0, 0.775) for course in ("iris", "wine") for name in names]  # at rtf's point
    axis = figure(cells([*FAKES, *crowd]), "seconds", "time").axes[0]
    labels = [label for label in axis.texts if isinstance(label, Annotation)]
    assert {label.get_text() for label in labels} == {*names, "rtf", "streaming LDA"}
    boxes = [Text.get_window_extent(label) for label in labels]
    assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))
