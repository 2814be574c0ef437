"""The benchmark of trust: unknown classes are left out, means are over data sets, and tables match what is stored."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from benchmarks.common import ROOT
from benchmarks.own_data.courses import Lessons
from benchmarks.page import put
from benchmarks.trust import confidence, retention
from benchmarks.trust.confidence import Run, cells, with_unknown
from benchmarks.trust.retention import Row, cell


def test_the_last_fifth_of_the_classes_is_never_learned() -> None:
    X, y = np.zeros((6, 2)), np.array([3, 1, 4, 5, 2, 0])
    taught = Lessons([(X[i : i + 2], y[i : i + 2]) for i in (0, 2, 4)], X, y)
    less, unknown = with_unknown(taught)
    assert unknown.tolist() == [0]
    assert [task[1].tolist() for task in less.tasks] == [[3, 1], [4, 5], [2]]
    two = Lessons([(X[:2], np.array([0, 1]))], X, y)
    assert not len(with_unknown(two)[1])


def test_means_are_over_data_sets_whatever_the_number_of_seeds() -> None:
    def run(course: str, seed: int, error: float, auroc: float | None) -> Run:
        return Run(course, "auto", seed, 0.5, 0.5, error, 0.3, 0.05, auroc, None, None)

    runs = [run("a", 0, 0.1, 0.9), run("a", 1, 0.3, 0.7), run("b", 0, 0.4, None)]
    found = dict(zip((name for name, *_ in confidence.COLUMNS), cells(runs), strict=True))
    assert (found["AUROC"], found["unknown refused"]) == ("0.800", "–")
    assert cells(runs)[3] == "0.300"


def test_rank_correlation_and_mean_error() -> None:
    rows = [
        Row("a", "rtf", 0, 1, c, 1.0, now, None, 1.0, now - 0.1, None, None)
        for c, now in enumerate((0.2, 0.4, 0.5, 0.8, 0.9))
    ]
    assert cell(retention.kept, rows) == "1.00, 10.0 (n=5)"
    assert cell(lambda row: row.tested, rows) == "–"


def test_tables_in_the_docs_are_those_of_the_stored_results(tmp_path: Path) -> None:
    page, stored = ROOT / "docs/own-data.md", ROOT / "reproduction/own-data"
    copy = tmp_path / "page.md"
    shutil.copy(page, copy)
    put(copy, "confidence", confidence.tables(confidence.read(stored / "confidence.jsonl")))
    put(copy, "retention", retention.tables(retention.read(stored / "retention.jsonl")))
    assert copy.read_text(encoding="utf-8") == page.read_text(encoding="utf-8")


def test_a_page_without_a_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("nothing here")
    with pytest.raises(SystemExit, match="no marks"):
        put(tmp_path / "page.md", "confidence", "table")


def test_the_nearest_neighbour_knows_what_it_learned_and_finds_the_rest_strange() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), np.arange(60) % 2
    X[y == 1] += 20
    learner = confidence.Neighbour()
    learner.learn(Lessons([(X[y == c], y[y == c]) for c in (0, 1)], X, y))
    new = learner.answers(np.concatenate([X, X[:1] + 100, X[:1] + 200]))
    assert (new.after.argmax(1)[:60] == y).all()
    assert (new.familiarity[:60] == 1).all(), "each is its own neighbour"
    assert new.familiarity[61] < new.familiarity[60] < 1 / 60
