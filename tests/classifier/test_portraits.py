"""Portraits of classes: drawn samples have the moments of real ones, and reveal what was forgotten."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.metrics import roc_auc_score

import relive
from relive import ContinualClassifier
from relive.classifier import portraits
from relive.classifier.portraits import Portrait, portraits_from, to_arrays
from relive.inference.about import remembered
from relive.inference.predictor import predictor_of
from tests.classifier.digits import X, Y

SHORT: dict[str, Any] = {"iterations": 150, "hidden": 50, "latent": 10, "learning_rate": 0.005}


def rows(*classes: int) -> tuple[Any, Any]:
    mine = np.isin(Y, classes) & (np.arange(len(Y)) % 2 == 0)
    return X[mine], Y[mine]


def test_drawn_samples_have_the_mean_deviation_and_axes_of_the_class(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(portraits, "DRAWN", 20000)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, 3)) @ rng.normal(size=(3, 6)) + rng.normal(size=(500, 6)) * 0.1 + np.arange(6)
    drawn = Portrait.of(1, 0, x).drawn(bounded=False)
    np.testing.assert_allclose(drawn.mean(0), x.mean(0), atol=0.06)
    np.testing.assert_allclose(np.cov(drawn.T), np.cov(x.T), atol=0.15)
    np.testing.assert_array_equal(drawn, Portrait.of(1, 0, x).drawn(bounded=False))


def test_distances_are_those_of_a_gaussian_with_the_covariance_of_drawn_samples() -> None:
    rng = np.random.default_rng(0)
    classes = [rng.normal(size=(40, 4)) @ rng.normal(size=(4, 15)) + k for k in range(3)]
    painted = tuple(Portrait.of(k, 0, x) for k, x in enumerate(classes))
    asked = rng.normal(size=(1001, 15)) * 3
    floor = 0.01 * np.mean([x.var(0).mean() for x in classes])
    expected = []
    for portrait in painted:
        covariance = portrait.axes.T @ portrait.axes + np.diag(portrait.rest) + floor * np.eye(15)
        away = asked - portrait.mean
        squared = (away @ np.linalg.inv(covariance) * away).sum(1)
        log_density = multivariate_normal(portrait.mean, covariance).logpdf(asked)
        expected.append([squared, -log_density - 15 / 2 * np.log(2 * np.pi)])
    found = portraits.novelty(painted, asked)
    assert found is not None
    np.testing.assert_allclose(found, np.min(expected, 0).T, rtol=1e-4)
    assert portraits.novelty((), asked) is None


@pytest.mark.parametrize("scenario", ["class", "domain"])
def test_a_network_tells_unknown_classes_by_portraits_and_so_does_its_file_without_torch(
    scenario: str, tmp_path: Path
) -> None:
    model = ContinualClassifier("rtf", scenario=scenario, holdout=0.2, **SHORT)
    for classes in ((0, 1), (2, 3)):
        x, y = rows(*classes)
        model.partial_fit(x, y if scenario == "class" else y % 2)
    assert model.asked_.scores.shape[1] == (2 if scenario == "class" else 1)  # in Domain-IL only its confidence
    model.save(tmp_path / "m.safetensors")
    some, unknown = X[1::2], Y[1::2] > 3
    np.testing.assert_allclose(
        predictor_of(tmp_path / "m.safetensors").familiarity(some), model.familiarity(some), atol=0.02
    )
    if scenario == "class":
        assert roc_auc_score(unknown, -model.familiarity(some)) > 0.95
        assert roc_auc_score(unknown, -model.predict_proba(some).max(1)) < 0.95


def test_few_samples_have_few_axes_and_very_few_no_portrait() -> None:
    model = ContinualClassifier("none", **SHORT)
    x, y = rows(0, 1, 2)
    chosen = np.concatenate([np.flatnonzero(y == c)[:n] for c, n in ((0, 60), (1, 12), (2, 9))])
    model.partial_fit(x[chosen], y[chosen])
    assert [(p.identity, len(p.axes)) for p in model.portraits_] == [(0, 10), (1, 2)]
    assert [m.kept for m in model.report()] == [1.0, 1.0, None]


def test_what_is_forgotten_is_said_and_what_is_replayed_is_said_to_be_kept() -> None:
    forgets, replays = (ContinualClassifier(method, **SHORT) for method in ("none", "rtf"))
    for model in (forgets, replays):
        for task in ((0, 1), (2, 3)):
            model.partial_fit(*rows(*task))
        real = {c: model.score(*rows(c)) for c in (0, 1)}
        for memory in model.report()[:2]:
            assert memory.kept == pytest.approx(real[memory.label], abs=0.15)
    assert [m.kept for m in forgets.report()] == [0.0, 0.0, 1.0, 1.0]


def test_a_class_that_comes_again_is_painted_again_and_a_forgotten_one_is_gone() -> None:
    model = ContinualClassifier("none", **SHORT).partial_fit(*rows(0, 1)).partial_fit(*rows(2, 0))
    assert [(p.identity, p.task) for p in model.portraits_] == [(1, 0), (0, 1), (2, 1)]
    model.rename(2, 7).merge([0, 7], into=7)
    assert {m.label: m.kept for m in model.report()}[7] == pytest.approx(1, abs=0.05)
    model.forget(7)
    assert [(p.identity, p.now) for p in model.portraits_] == [(1, 1.0)], "what is alone is always right"


def test_task_il_keeps_every_task_s_and_domain_il_and_closed_forms_none() -> None:
    model = ContinualClassifier("none", "task", **SHORT).partial_fit(*rows(0, 1)).partial_fit(*rows(0, 2))
    assert [(p.identity, p.task) for p in model.portraits_] == [(0, 0), (1, 0), (0, 1), (2, 1)]
    assert ContinualClassifier("none", "domain", **SHORT).fit(*rows(0, 1)).portraits_ == ()
    assert ContinualClassifier("slda").fit(*rows(0, 1)).portraits_ == ()


def test_a_file_has_them_and_tells_the_same_without_torch(tmp_path: Path) -> None:
    model = ContinualClassifier("rtf", **SHORT).partial_fit(*rows(0, 1)).partial_fit(*rows(2))
    model.save(tmp_path / "m")
    assert remembered(predictor_of(tmp_path / "m").header) == model.report() == relive.load(tmp_path / "m").report()


@pytest.mark.parametrize("change", ["of", "shares", "moments", "axes"])
def test_portraits_that_lie_are_refused(change: str) -> None:
    model = ContinualClassifier("none", **SHORT).partial_fit(*rows(0, 1))
    arrays = to_arrays(model.portraits_)
    assert len(portraits_from(arrays, 64, model.bookkeeping_)) == 2
    wrong = {"of": arrays["of"] + 5, "shares": arrays["shares"] + 2, "moments": arrays["moments"] * np.float32(np.nan)}
    wrong["axes"] = arrays["axes"][1:]
    with pytest.raises(ValueError, match="portraits"):
        portraits_from(arrays | {change: wrong[change]}, 64, model.bookkeeping_)
