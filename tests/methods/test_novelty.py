"""Distances to the nearest class, against NumPy on the samples themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from relive.methods.novelty import Novelty
from relive.methods.scaled import Scaled
from relive.methods.sums import Sums


@pytest.mark.parametrize("d", [5, 300])  # with many features only the span of the few samples is used
def test_both_distances_from_sums_are_those_from_samples(d: int) -> None:
    rng = np.random.default_rng(0)
    h = rng.normal(size=(60, d)) @ rng.normal(size=(d, d))
    y = np.arange(60) % 3
    h[y == 1] += 4
    sums = Sums(torch.zeros(3).double(), torch.zeros(3, d).double(), torch.zeros(d, d).double())
    sums.add(torch.from_numpy(h), torch.from_numpy(y))
    asked = np.concatenate([h[:4], h[:2] + 30, rng.normal(size=(2, d))])
    features = Scaled.of(sums)
    assert (features.axes.basis is not None) == (d > 180)

    scale = h.std(0)
    within = sum((h[y == c] - h[y == c].mean(0)).T @ (h[y == c] - h[y == c].mean(0)) for c in range(3)) / 60
    total = np.cov(h.T, bias=True)

    def metric(covariance: Any, ridge: float) -> Any:
        return np.linalg.inv(covariance / np.outer(scale, scale) + ridge * np.eye(d))

    near_metric, own_metric, general_metric = metric(within, 0.01), metric(within, 1.0), metric(total, 1.0)
    for row, (near, relative) in zip(asked, Novelty.of(features)(torch.from_numpy(asked)).tolist(), strict=True):
        differences = [(row - h[y == c].mean(0)) / scale for c in range(3)]
        middle = (row - h.mean(0)) / scale
        own = min(d @ own_metric @ d for d in differences)
        np.testing.assert_allclose(near, min(d @ near_metric @ d for d in differences), rtol=1e-6)
        np.testing.assert_allclose(relative, own - middle @ general_metric @ middle, rtol=1e-6)


def test_what_lies_far_away_is_newer_than_what_was_learned() -> None:
    h = torch.randn(200, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    sums = Sums(torch.zeros(2).double(), torch.zeros(2, 8).double(), torch.zeros(8, 8).double())
    sums.add(h, torch.arange(200) % 2)
    found = Novelty.of(Scaled.of(sums))
    assert found(h + 10)[:, 0].min() > found(h)[:, 0].max()
