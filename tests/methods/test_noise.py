"""Noise on sums: of the documented size, never the same twice, and no sample's norm exceeds r."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from sklearn.datasets import load_iris

from relive import ContinualClassifier
from relive.methods.noise import add_noise, clipped, largest_noise, radius, repaired
from relive.methods.sums import Sums

D = 60


def empty() -> Sums:
    zeros = torch.zeros(4, D, dtype=torch.float64)
    return Sums(zeros[:, 0].clone() + 1000, zeros, torch.zeros(D, D, dtype=torch.float64))


def test_each_sum_has_the_noise_that_was_asked_for_and_others_none() -> None:
    sums, cells = empty(), torch.tensor([1, 3])
    add_noise(sums, [], cells, sigma=2.0)
    r = radius(D)
    assert sums.total[cells].std().item() == pytest.approx(2 * r, rel=0.3)
    assert not sums.total[[0, 2]].any()
    assert (sums.count[cells] != 1000).all()
    assert sums.count[[0, 2]].tolist() == [1000, 1000]
    products = sums.products
    assert products is not None
    assert torch.equal(products, products.T)
    assert products.std().item() == pytest.approx(2 * r**2, rel=0.1)
    assert products.diagonal().std().item() == pytest.approx(2 * r**2, rel=0.4)


def test_the_longest_direction_of_noise_is_as_long_as_is_said() -> None:
    sums = empty()
    for _ in range(5):
        add_noise(sums, [], torch.tensor([0]), sigma=0.2)
    assert sums.products is not None
    longest = float(torch.linalg.eigvalsh(sums.products).abs().max())
    assert longest == pytest.approx(largest_noise(0.2, D, 5), rel=0.2)


def test_noise_is_never_drawn_again() -> None:
    x, y = load_iris(return_X_y=True)
    one, other = (ContinualClassifier("slda", settings={"noise": 0.1}, random_state=0).fit(x, y) for _ in range(2))
    assert not np.array_equal(one.predict_proba(x), other.predict_proba(x))


def test_nothing_else_is_kept_of_samples_that_noise_hides() -> None:
    x, y = load_iris(return_X_y=True)
    hidden, plain = (ContinualClassifier("slda", settings={"noise": noise}).fit(x, y) for noise in (0.1, 0.0))
    assert hidden.asked_.numbers == 0 < plain.asked_.numbers


def test_where_classes_are_forgettable_each_one_s_products_have_noise() -> None:
    x, y = load_iris(return_X_y=True)
    fitted = [
        ContinualClassifier("slda", settings={"noise": noise}, forgettable=True).fit(x, y).learner_.method.state()
        for noise in (0.0, 0.1)
    ]
    assert (fitted[0]["products"] != fitted[1]["products"]).reshape(-1, 10)[:3].all()  # 3 classes, 4 features


def test_a_sample_far_away_counts_for_no_more_than_r() -> None:
    h = torch.tensor([[3.0, 4.0], [3e6, 4e6], [0.0, 0.0]]).double() / 10
    r = radius(2)
    torch.testing.assert_close(clipped(h), torch.stack([h[0], torch.tensor([0.6, 0.8]).double() * r, h[2]]))


def test_the_repaired_covariance_is_the_nearest_that_can_be() -> None:
    rng = torch.Generator().manual_seed(0)
    h = torch.randn(300, 6, generator=rng).double()
    sums = Sums(torch.zeros(2).double(), torch.zeros(2, 6).double(), torch.zeros(6, 6).double())
    sums.add(h, torch.arange(300) % 2)
    same = repaired(sums).products
    assert same is not None
    assert sums.products is not None
    torch.testing.assert_close(same, sums.products)  # nothing needed repair
    sums.products[0, 0] -= 900  # a negative variance
    mended = repaired(sums)
    apart = mended.means - mended.mean
    within = mended.covariance - (apart.T * (mended.count / mended.n)) @ apart
    assert torch.linalg.eigvalsh(within).min() > -1e-9


def test_many_samples_are_learned_through_the_noise_and_few_are_not() -> None:
    rng = np.random.default_rng(0)
    means = rng.normal(0, 2, (4, 8))

    def score(n: int) -> float:
        y = np.arange(n) % 4
        model = ContinualClassifier("slda", settings={"noise": 1.0}, likelihood="gaussian")
        model.fit(means[y] + rng.normal(0, 1, (n, 8)), y)
        y = np.arange(400) % 4
        return model.score(means[y] + rng.normal(0, 1, (400, 8)), y)

    assert score(40_000) > 0.95
    assert np.mean([score(12) for _ in range(8)]) < 0.8


def test_directions_that_hardly_vary_do_no_harm() -> None:
    rng = np.random.default_rng(0)
    mix, means, n = rng.normal(0, 1, (4, 36)), rng.normal(0, 1, (6, 4)), 480

    def score() -> float:
        y = np.arange(2 * n) % 6
        x = (means[y] + rng.normal(0, 0.4, (2 * n, 4))) @ mix + rng.normal(0, 0.3, (2 * n, 36))
        model = ContinualClassifier("slda", settings={"noise": 0.03})
        for k in range(3):
            rows = np.flatnonzero(y[:n] // 2 == k)
            model.partial_fit(x[rows], y[rows])
        return model.score(x[n:], y[n:])

    assert np.mean([score() for _ in range(4)]) > 0.8


def test_epsilon_by_summing_the_concentrated_privacy_of_three_releases() -> None:
    from relive.methods.noise import epsilon

    rho = sum(1 / (2 * 4.0**2) for _ in range(3))
    assert epsilon(4.0, 1e-6) == pytest.approx(rho + 2 * math.sqrt(rho * math.log(1e6)))
