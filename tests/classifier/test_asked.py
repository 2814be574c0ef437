"""Scores kept for rejection: shares by a plain loop, what is refused, and that a class's scores are removed with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import relive
from relive import ContinualClassifier
from relive._util.errors import InputError
from relive.classifier import asked as module
from relive.classifier.asked import Asked
from relive.classifier.labels import with_unknown
from relive.inference.predictor import predictor_of
from tests.classifier.digits import X, Y

SETTINGS = {"numbers": 5e4}
TRAIN, TEST = np.arange(len(X)) % 3 > 0, np.arange(len(X)) % 3 == 0


def asked_about(scores: list[list[float]], classes: list[int]) -> Asked:
    n = len(scores)
    p = np.full((n, 2), 0.5)
    return Asked.nothing().with_more(p, np.zeros(n, int), np.array(classes), np.array(scores), 100, 0)


def taught(*tasks: tuple[int, ...], **parameters: Any) -> ContinualClassifier:
    model = ContinualClassifier("discriminant", settings=SETTINGS, **parameters)
    for classes in tasks:
        rows = TRAIN & np.isin(Y, classes)
        model.partial_fit(X[rows], np.array([f"c{c}" for c in Y[rows]]))
    return model


def test_familiarity_by_a_plain_loop() -> None:
    known = [[1.0, 5.0], [2.0, 1.0], [3.0, 9.0], [4.0, 0.0]]
    asked = asked_about(known, [0, 0, 1, 1])

    def strange(row: list[float], itself: int) -> float:
        shares = [(itself + sum(k[j] >= row[j] for k in known)) / 5 for j in range(2)]
        beyond = max(row[0] - 4, 0) / (4 - 2.5) + max(row[1] - 9, 0) / (9 - 3)
        return beyond - float(np.log(shares).sum())

    for row in ([2.5, 2.0], [10.0, 10.0], [0.0, -1.0], [100.0, -1.0]):
        mine = strange(row, 1)
        expected = (1 + sum(strange(k, 0) >= mine - 1e-12 for k in known)) / 5
        expected *= min(1, max(strange(k, 0) for k in known) / mine) if mine else 1
        assert asked.familiarity(np.array([row]))[0] == pytest.approx(expected)


def test_what_is_far_beyond_everything_in_one_way_is_refused_however_usual_it_is_in_others() -> None:
    rng = np.random.default_rng(0)
    asked = asked_about(rng.normal(size=(100, 4)).tolist(), [0] * 50 + [1] * 50)
    far, further, usual = asked.familiarity(np.array([[100.0, -3, -3, -3], [200.0, -3, -3, -3], [-3.0, -3, -3, -3]]))
    assert further < far < 1 / 101, "samples beyond everything known are ranked too"
    assert usual == 1


def test_a_file_with_other_kinds_of_scores_begins_anew() -> None:
    asked = asked_about([[1.0, 2.0], [2.0, 1.0]], [0, 1])
    with pytest.raises(InputError, match=r"keeps 2 kinds of scores, and relive now uses 3: .* learned one more task"):
        asked.familiarity(np.zeros((1, 3)))
    p = np.full((1, 2), 0.5)
    more = asked.with_more(p, np.zeros(1, int), np.array([1]), np.zeros((1, 3)), 101, 0)
    assert (more.scores.shape, more.owner.tolist()) == ((1, 3), [1])
    assert more.count.tolist() == [1, 2]
    assert 0 < more.familiarity(np.zeros((1, 3)))[0] <= 1


def test_of_many_samples_some_scores_are_kept_and_each_counts_for_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEPT", 10)
    scores = [[float(i)] for i in range(1000)]
    asked = asked_about(scores, [0] * 990 + [1] * 10)
    assert np.bincount(asked.owner).tolist() == [10, 10]
    assert asked.count.tolist() == [990, 10]
    assert asked.scores[asked.owner == 0].mean() == pytest.approx(495, abs=300)  # not the first or last ten
    rows_of_one = 10 * 20 / 1000  # ten of twenty rows, but 1 % of the samples that they represent
    assert asked.familiarity(np.array([[995.5]]))[0] == pytest.approx((1 + rows_of_one) / 21)


def test_what_was_learned_is_refused_as_often_as_said_and_unknown_classes_more() -> None:
    model = taught((0, 1, 2), (3, 4, 5))
    known, unknown = TEST & (Y < 6), Y > 5
    for share in (0.05, 0.2):
        assert (model.predict(X[known], reject=share) == "unknown").mean() == pytest.approx(share, abs=0.6 * share)
        assert (model.predict(X[unknown], reject=share) == "unknown").mean() > 4 * share
    assert (model.familiarity(X[known]) >= 0.05).mean() == (model.predict(X[known], reject=0.05) != "unknown").mean()
    answers, refused = model.predict(X), model.predict(X, reject=0.05)
    np.testing.assert_array_equal(refused[refused != "unknown"], answers[refused != "unknown"])


def test_calibration_changes_no_answer_and_nothing_that_was_learned() -> None:
    one, other = taught((0, 1, 2), (3, 4, 5)), taught((0, 1, 2), (3, 4, 5), calibrate=False)
    assert one.temperature_ > other.temperature_ == 1
    np.testing.assert_array_equal(one.predict(X), other.predict(X))
    for name, tensor in other.learner_.state().items():
        np.testing.assert_array_equal(one.learner_.state()[name].numpy(), tensor.numpy(), err_msg=name)
    rows = TEST & (Y < 6)
    truth = np.array([f"c{c}" for c in Y[rows]])
    assert one.evaluate(X[rows], truth).calibration_error < other.evaluate(X[rows], truth).calibration_error


def test_a_forgotten_class_takes_along_what_was_asked_about_it_and_others_keep_theirs() -> None:
    model = taught((0, 1, 2), (3, 4, 5))
    before = model.asked_
    model.rename("c0", "zero").merge(["c1", "c2"], into="c1")
    assert model.asked_ is before
    model.forget("c3")
    gone = np.flatnonzero(before.count)[3]
    assert model.asked_.count[gone] == 0
    assert not model.asked_.losses[gone].any()
    assert gone not in model.asked_.owner
    np.testing.assert_array_equal(model.asked_.scores, before.scores[before.owner != gone])
    assert model.asked_.numbers < before.numbers


def test_what_was_asked_last_counts_most() -> None:
    p, zero = np.full((10, 2), 0.5), np.zeros(10, int)
    low, high = np.zeros((10, 1)), np.ones((10, 1))
    asked = Asked.nothing().with_more(p, zero, zero, low, 10, 0).with_more(p, zero, zero + 1, high, 20, 0)
    assert asked.familiarity(np.array([[0.5]]))[0] == pytest.approx((1 + 20 * 2 / 3) / 21)  # weights 1/2 and 1, of 20


def test_ten_at_a_time_is_asked_now_and_then() -> None:
    model = ContinualClassifier("slda")
    rows = np.random.default_rng(0).permutation(np.flatnonzero(Y < 4))[:640]
    times = set()
    for i in range(0, 640, 10):
        model.partial_fit(X[rows[i : i + 10]], Y[rows[i : i + 10]])
        times.add(model.asked_.learned)
    assert sorted(times) == [10, 20, 40, 80, 160, 320, 640]
    assert 40 < model.asked_.count.sum() <= 70


def test_a_network_is_asked_about_what_it_held_out_and_learns_the_same_bits() -> None:
    rows = TRAIN & (Y < 3)
    short: dict[str, Any] = {"iterations": 30, "hidden": 20}
    nothing = ContinualClassifier("none", **short).fit(X[rows], Y[rows])
    assert nothing.temperature_ == 1
    assert not len(nothing.asked_.scores)
    with pytest.raises(InputError, match="holdout"):
        nothing.predict(X, reject=0.05)
    held_out: list[dict[str, Any]] = [{"holdout": 0.2}, {"early_stopping": True, "validation_fraction": 0.2}]
    for more in held_out:
        asked, not_asked = (ContinualClassifier("none", **short, **more, calibrate=c) for c in (True, False))
        asked.fit(X[rows], Y[rows])
        not_asked.fit(X[rows], Y[rows])
        assert asked.asked_.count.sum() > 20
        assert asked.asked_.scores.shape[1] == 2  # distance and density, by portraits
        for name, tensor in not_asked.learner_.state().items():
            np.testing.assert_array_equal(asked.learner_.state()[name].numpy(), tensor.numpy(), err_msg=name)
        assert (asked.predict(X[TEST & (Y < 3)], reject=0.1) == -1).mean() < 0.3


@pytest.mark.parametrize("forgettable", [False, True])
@pytest.mark.parametrize("method", ["discriminant", "analytic", "slda", "ncm"])
def test_a_file_refuses_the_same_without_torch(method: str, forgettable: bool, tmp_path: Path) -> None:
    settings = SETTINGS if method in ("discriminant", "analytic") else {}
    model = ContinualClassifier(method, settings=settings, forgettable=forgettable)
    for classes in ((0, 1, 2), (3, 4)):
        rows = TRAIN & np.isin(Y, classes)
        model.partial_fit(X[rows], Y[rows])
    model.forget(1).save(tmp_path / "m.safetensors")
    plain = predictor_of(tmp_path / "m.safetensors")
    loaded = relive.load(tmp_path / "m.safetensors")
    some = X[:200]
    assert plain.temperature_ == model.temperature_ == loaded.temperature_
    np.testing.assert_allclose(plain.predict_proba(some), model.predict_proba(some), atol=1e-5)
    np.testing.assert_array_equal(loaded.familiarity(some), model.familiarity(some))
    assert abs(plain.familiarity(some) - model.familiarity(some)).mean() < 0.005
    assert (plain.predict(some, reject=0.05) == model.predict(some, reject=0.05)).mean() > 0.98


def test_what_cannot_be_refused_says_why() -> None:
    model = taught((0, 1), (2, 3))
    for share in (0, 1, -0.1, "5%", True):
        with pytest.raises(InputError, match="between 0 and 1"):
            model.predict(X, reject=share)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="too few"):
        model.predict(X, reject=1e-6)
    with pytest.raises(InputError, match="class of that name"):
        model.rename("c0", "unknown").predict(X, reject=0.05)


def test_numbers_are_refused_with_minus_one_and_booleans_with_none() -> None:
    no = np.array([True, False])
    assert with_unknown(np.array([1.5, 2.5]), no, np.array([1.5, 2.5])).tolist() == [-1, 2.5]
    assert with_unknown(np.array([True, False]), no, np.array([True, False])).tolist() == [None, False]
    with pytest.raises(InputError, match="rename"):
        with_unknown(np.array([1, -1]), no, np.array([1, -1]))


@pytest.mark.parametrize("n", [9, 15, 20, 99, 130])
def test_the_smallest_share_that_is_named_is_taken(n: int) -> None:
    asked = asked_about([[float(i)] for i in range(n)], [i % 3 for i in range(n)])
    with pytest.raises(InputError, match="use at least") as refused:
        asked.check_share(0.001)
    named = float(str(refused.value).rpartition(" ")[2])
    assert asked.check_share(named) == named
    assert named <= 1 / (n + 1) + 0.001
