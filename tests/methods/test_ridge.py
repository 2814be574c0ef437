"""The search for the best strength of a ridge regression, against an exhaustive search."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from sklearn.datasets import load_digits
from torch import Tensor

from relive._util.seeds import stream
from relive.methods import ridge
from relive.methods.ridge import best_fit, chosen_ridge, estimate, fit
from relive.methods.scaled import Scaled
from relive.methods.sums import Sums

PLACES = [half / 2 for half in range(2 * ridge.LOWEST, 2 * ridge.HIGHEST + 1)]


def random_features(x: Tensor, n: int) -> Tensor:
    rng = torch.Generator().manual_seed(1)
    weight = torch.randn(x.shape[1], n, generator=rng, dtype=x.dtype) / x.shape[1] ** 0.5
    return torch.relu(x @ weight + torch.randn(n, generator=rng, dtype=x.dtype))


@pytest.fixture(autouse=True)
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if 600 features were many."""
    monkeypatch.setattr(ridge, "LARGE", 600)


@pytest.fixture(scope="module", params=[600, 1200], ids=["few samples", "many samples"])
def features(request: pytest.FixtureRequest) -> Scaled:
    """The digits as 660 random features: 600 samples use the evidence as criterion, 1,200 use cross-validation."""
    x, y = load_digits(return_X_y=True)
    h = random_features(torch.from_numpy(x[: request.param] / 16 - 0.3), 660)
    sums = Sums(torch.zeros(10).double(), torch.zeros(10, 660).double(), torch.zeros(660, 660).double())
    sums.add(h, torch.from_numpy(y[: request.param]))
    return Scaled.of(sums)


def test_the_search_finds_what_trying_every_strength_finds(features: Scaled) -> None:
    every = {place: fit(features, 10.0**place) for place in PLACES}
    best = min(PLACES, key=lambda place: (every[place].error, every[place].misfit))
    strength, found = best_fit(features)
    assert strength == pytest.approx(10.0**best)
    assert torch.equal(found.weight, every[best].weight)
    assert chosen_ridge(features) == strength


def test_an_estimate_is_three_times_the_best_strength_for_a_third_of_the_features(
    features: Scaled, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []

    def counted(some: Scaled, strength: float) -> ridge.Fit:
        sizes.append(len(some.covariance))
        return fit(some, strength)

    monkeypatch.setattr(ridge, "fit", counted)
    strength = estimate(features)
    assert set(sizes) == {220}  # no fit with all features
    third = torch.randperm(660, generator=stream(0, "ridge"))[:220]
    fewer = replace(features, covariance=features.covariance[third][:, third], means=features.means[:, third])
    every = {place: fit(fewer, 10.0**place) for place in PLACES}
    assert strength == pytest.approx(3 * 10.0 ** min(PLACES, key=lambda p: (every[p].error, every[p].misfit)))
    assert chosen_ridge(features, roughly=True) == strength
    best_fit(features)
    assert sizes.count(660) <= 6  # a local search from the default strength or the estimate, instead of trying all 17


def test_few_features_are_not_estimated(features: Scaled, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ridge, "LARGE", 661)
    assert estimate(features) == best_fit(features)[0]
