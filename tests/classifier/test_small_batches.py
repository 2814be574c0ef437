"""Small batches: exact and bounded in closed form, gathered for networks; and what is held out of a task."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relive import ContinualClassifier, load
from relive._util.errors import InputError
from relive._util.seeds import stream
from relive.classifier.bookkeeping import MOST
from relive.classifier.training import choose_tested
from tests.classifier.digits import SMALL, X, Y, rows

CLOSED = ["ncm", "slda", "analytic", "discriminant"]


def closed(method: str, scenario: str = "class") -> ContinualClassifier:
    settings = {"numbers": 3e4} if method in ("analytic", "discriminant") else None
    return ContinualClassifier(method, scenario, settings=settings, calibrate=False)  # it depends on the batches


@pytest.mark.parametrize("method", CLOSED)
def test_ten_at_a_time_is_one_fit(method: str) -> None:
    x, y = rows(0, 1, 2, 3)
    order = np.random.default_rng(0).permutation(len(x))  # old and new classes mixed
    x, y = x[order], y[order]
    first, ten = closed(method).fit(x[:20], y[:20]), closed(method).fit(x[:20], y[:20])
    first.partial_fit(x[20:], y[20:])
    for start in range(20, len(x), 10):
        ten.partial_fit(x[start : start + 10], y[start : start + 10])
    np.testing.assert_allclose(ten.predict_proba(X[:200]), first.predict_proba(X[:200]), atol=1e-5)


@pytest.mark.parametrize("scenario", ["task", "domain"])
@pytest.mark.parametrize("method", CLOSED)
def test_the_order_of_tasks_makes_no_difference(method: str, scenario: str) -> None:
    """Where tasks are separate they stay so, one lesson each; predictions for one are the same."""
    found = []
    for order in [("a", "b", "c"), ("a", "c", "b")]:
        model = closed(method, scenario)
        for name in order:
            skip = 10 * "abc".index(name)
            chosen = np.concatenate([np.flatnonzero(c == Y)[skip : skip + 10] for c in (0, 1, 2)])
            model.partial_fit(X[chosen], Y[chosen], task=name)
        assert [lesson.name for lesson in model.lessons_] == list(order)
        found.append(model.predict_proba(X[:200], "b" if scenario == "task" else None))
    np.testing.assert_allclose(found[0], found[1], atol=1e-5)


def test_many_small_batches_make_few_lessons(tmp_path: Path) -> None:
    model, path = closed("ncm"), tmp_path / "m.safetensors"
    names: list[Any] = []
    for k in range(3 * MOST):
        x, y = rows(k % 7, (k + 1) % 7, n=5)
        model.partial_fit(x, y, task="named" if k == 30 else None)
        names.append(model.lessons_[-1].name)
        assert len(model.lessons_) <= MOST + 3, "a named lesson stays, and so do those before and after it"
    assert len(set(names)) == len(names), "every task has its own name"
    assert "named" in [lesson.name for lesson in model.lessons_]
    assert model.n_tasks_ == 3 * MOST
    assert sum(sum(lesson.counts) for lesson in model.lessons_) == 3 * MOST * 10
    model.save(path)
    again = load(path)
    assert again.lessons_ == model.lessons_
    np.testing.assert_array_equal(again.predict_proba(X[:50]), model.predict_proba(X[:50]))


def test_a_failed_batch_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for method in CLOSED:
        model = closed(method).fit(*rows(0, 1))
        before = model.predict_proba(X[:50])
        monkeypatch.setattr("relive.classifier.learning.digest_of", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):  # after the sums were added up
            model.partial_fit(*rows(1, 2))
        monkeypatch.undo()
        model.learner_.method.settled_ = False  # type: ignore[attr-defined]  # solved anew from the sums
        np.testing.assert_array_equal(model.predict_proba(X[:50]), before)
        assert model.classes_.tolist() == [0, 1]


def test_a_network_learns_what_has_gathered_as_one_task() -> None:
    x, y = rows(0, 1, 2)
    model = ContinualClassifier("rtf", consolidate_every=50, **SMALL)
    for start in range(0, 40, 10):
        model.partial_fit(x[start : start + 10], y[start : start + 10])
    assert model.pending_ == 40
    assert not model.__sklearn_is_fitted__()
    model.partial_fit(x[40:60], y[40:60])
    assert (model.pending_, model.n_tasks_) == (0, 1)
    at_once = ContinualClassifier("rtf", **SMALL).partial_fit(x[:60], y[:60])
    np.testing.assert_array_equal(model.predict_proba(x), at_once.predict_proba(x))
    model.partial_fit(x[60:], y[60:] + 5)
    assert (model.pending_, model.n_tasks_) == (0, 2)


def test_samples_that_wait_are_not_written_unless_that_is_allowed(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    x, y = rows(0, 1)
    model = ContinualClassifier("rtf", consolidate_every=50, **SMALL).partial_fit(x, y)
    model.partial_fit(x[:7], y[:7] + 3)
    assert model.pending_ == 7
    assert 3 not in model.classes_
    with pytest.raises(InputError, match="7 samples are waiting to be learned"):
        model.save(path)
    with pytest.raises(InputError, match="consolidate"):
        model.forget(0)
    assert not path.exists()
    model.set_params(allow_stored_data=True).save(path)
    again = load(path)
    assert again.pending_ == 7
    for m in (model, again):
        m.consolidate()
    np.testing.assert_array_equal(again.predict_proba(x), model.predict_proba(x))
    assert (again.pending_, 3 in again.classes_) == (0, True)
    model.set_params(allow_stored_data=False).save(path)
    assert b"waiting" not in path.read_bytes()


def test_a_closed_form_waits_for_nothing() -> None:
    model = ContinualClassifier("ncm", consolidate_every=50).partial_fit(*rows(0, 1, n=3))
    assert (model.pending_, model.n_tasks_) == (0, 1)


@pytest.mark.parametrize(("scenario", "task"), [("task", None), ("class", "a")])
def test_tasks_that_are_gathered_cannot_be_given(scenario: str, task: str | None) -> None:
    with pytest.raises(InputError, match="consolidate_every"):
        ContinualClassifier("rtf", scenario, consolidate_every=50, **SMALL).partial_fit(*rows(0, 1, n=3), task=task)


def test_batches_that_wait_must_be_alike() -> None:
    model = ContinualClassifier("rtf", consolidate_every=50, **SMALL).partial_fit(*rows(0, 1, n=3))
    x, y = rows(0, n=3)
    for bad in [((x * 255).astype(np.uint8), y), (x, y.astype(str)), (x[:, :5], y)]:
        with pytest.raises(ValueError, match=r"bytes|labels|features"):
            model.partial_fit(*bad)
        assert model.pending_ == 6


@pytest.mark.parametrize("early_stopping", [False, True])
@pytest.mark.parametrize("method", ["discriminant", "rtf"])
def test_what_is_held_out_is_tested_and_not_learned(method: str, early_stopping: bool, tmp_path: Path) -> None:
    x, y = rows(0, 1, 2)
    small = SMALL | {"calibrate": False}  # calibration would use the held-out samples
    model = ContinualClassifier(method, holdout=0.25, early_stopping=early_stopping, **small).partial_fit(x, y)
    lesson, tested = model.lessons_[0], choose_tested(y, 0.25, stream(0, "tested 0"))
    assert (lesson.counts, lesson.test[0]) == ((30, 30, 30), 30)
    expected = {int(c): (10, int((model.predict(x[tested & (y == c)]) == c).sum())) for c in range(3)}
    assert lesson.tested == expected
    without = ContinualClassifier(method, early_stopping=early_stopping, **small).partial_fit(x[~tested], y[~tested])
    np.testing.assert_array_equal(model.predict_proba(x), without.predict_proba(x))
    model.save(tmp_path / "m.safetensors")
    assert load(tmp_path / "m.safetensors").lessons_ == model.lessons_
    model.merge([0, 1], 7)
    assert model.lessons_[0].test == lesson.test


@pytest.mark.parametrize("fraction", [1, -0.1, "a", None])
def test_a_share_is_a_share(fraction: Any) -> None:
    with pytest.raises(InputError, match="holdout"):
        ContinualClassifier("ncm", holdout=fraction).fit(*rows(0, 1))


def test_classes_too_small_for_the_share_are_learned_whole() -> None:
    model = ContinualClassifier("ncm", holdout=0.1).fit(*rows(0, 1, n=9))
    assert (model.lessons_[0].tested, model.lessons_[0].counts) == ({}, (9, 9))
