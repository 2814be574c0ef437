"""The benchmark on real data: its learners compute what their names say."""

from __future__ import annotations

import doctest
import importlib
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from benchmarks.own_data.courses import COURSES, PICTURES
from benchmarks.own_data.learner import Learner, Scaled, Setting
from benchmarks.own_data.learners import LEARNERS, RIVER
from benchmarks.own_data.samples import Array
from benchmarks.own_data.sums import Gaussians, NearestMean, RandomConvolutions, RandomFeatures, Ridge
from scipy.stats import multivariate_normal
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.naive_bayes import GaussianNB

from relive import ContinualClassifier
from relive.classifier.choice import choose
from tests.own_data_benchmark.samples import blobs

SETTING = Setting(seed=3, classes=np.arange(3), shape=(4, 5))
MAKERS: dict[str, Callable[[], Learner]] = {
    "nearest mean": NearestMean,
    "naive Bayes": lambda: Gaussians(diagonal=True, shrinkage=0.1),
    "LDA": lambda: Gaussians(shared=True, shrinkage=0.1),
    "Gaussians": lambda: Gaussians(shrinkage=0.1),
    "features": lambda: Ridge(RandomFeatures(SETTING, 30), 0.1),
    "convolutions": lambda: Ridge(RandomConvolutions(SETTING, 5, 2), 0.1),
}


@pytest.mark.parametrize("name", MAKERS)
def test_sums_know_no_order(name: str) -> None:
    X, y = blobs()
    at_once, in_tasks = MAKERS[name](), MAKERS[name]()
    at_once.learn(X, y)
    order = np.random.default_rng(1).permutation(len(y))
    for rows in (order[y[order] == 2][:5], order[y[order] == 0], order[y[order] == 2][5:], order[y[order] == 1]):
        in_tasks.learn(X[rows], y[rows])
        in_tasks.predict(X[:2])  # predicting in between changes nothing
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
    X[:, 3] = 5.0  # constant
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
