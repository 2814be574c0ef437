"""Solving in the basis of few samples gives what solving with all features gives."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from relive._util.seeds import stream
from relive.methods import scaled
from relive.methods.ridge import best_fit, fit
from relive.methods.scaled import Scaled
from relive.methods.slda import linear_discriminant
from relive.methods.sums import Sums


def few_samples(n: int = 40, d: int = 200) -> tuple[Tensor, Tensor]:
    rng = stream(0, "few")
    h = torch.randn(n, 12, generator=rng).double() @ torch.randn(12, d, generator=rng).double()
    h = h.relu() + 0.1 * torch.randn(n, d, generator=rng).double()
    return h, torch.arange(n) % 3


def sums_of(h: Tensor, label: Tensor) -> Sums:
    d = h.shape[1]
    zeros = torch.zeros(3, d).double()
    sums = Sums(zeros[:, 0].clone(), zeros, torch.zeros(d, d).double())
    sums.add(h, label)
    return sums


def in_all_features(sums: Sums, monkeypatch: pytest.MonkeyPatch) -> Scaled:
    with monkeypatch.context() as patched:
        patched.setattr(scaled, "FEWER", float("inf"))
        features = Scaled.of(sums)
    assert features.axes.basis is None
    return features


@pytest.mark.parametrize("ridge", [1e-6, 1e-2, 10.0])
def test_both_closed_forms_are_the_same_in_the_basis(ridge: float, monkeypatch: pytest.MonkeyPatch) -> None:
    sums = sums_of(*few_samples())
    small, large = Scaled.of(sums), in_all_features(sums, monkeypatch)
    assert len(small.covariance) == 40 + scaled.SPARE
    for a, b in zip(linear_discriminant(small, ridge), linear_discriminant(large, ridge), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-6 * float(b.abs().max()))
    one, other = fit(small, ridge), fit(large, ridge)
    a, b = (features.axes.unscaled(found.weight.T) for features, found in ((small, one), (large, other)))
    torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-9)
    assert one.residual == pytest.approx(other.residual, rel=1e-6)
    assert one.misfit == pytest.approx(other.misfit, rel=1e-8)


def test_the_same_strength_is_best(monkeypatch: pytest.MonkeyPatch) -> None:
    sums = sums_of(*few_samples())
    assert best_fit(Scaled.of(sums))[0] == best_fit(in_all_features(sums, monkeypatch))[0]


def test_samples_that_are_the_same_are_no_more_dimensions(monkeypatch: pytest.MonkeyPatch) -> None:
    h, label = few_samples()
    h[20:], label[20:] = h[:20].clone(), label[:20].clone()
    sums = sums_of(h, label)
    small, large = (
        linear_discriminant(Scaled.of(sums), 0.1),
        linear_discriminant(in_all_features(sums, monkeypatch), 0.1),
    )
    torch.testing.assert_close(small[0], large[0], rtol=1e-7, atol=1e-9)


def test_no_basis_is_taken_that_would_leave_something_out() -> None:
    """As when two of three classes were forgotten whose share of the products is unknown."""
    sums = sums_of(*few_samples())
    left = Sums(sums.count / 4, sums.total / 4, None if sums.products is None else sums.products / 4)
    assert Scaled.of(sums).axes.basis is not None
    assert Scaled.of(left).axes.basis is None


def test_features_that_only_samples_taken_back_had_do_not_vary() -> None:
    """What is left of them is rounding error, which must not be amplified."""
    rng = torch.Generator().manual_seed(0)
    h = torch.randn(900, 200, generator=rng, dtype=torch.float64) + 3
    h[50:, 100:] = 0
    label = torch.arange(900) % 3
    sums = sums_of(h, label)
    sums.add(h[:50], label[:50], -1)
    assert torch.linalg.eigvalsh(Scaled.of(sums).covariance)[0] > -1e-6
